"""Makes the passport of a checkpoint, or of a function whose files nobody sees.

Which texts a passport has: parity's short ones of every kind, and some lengths around the limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions
from embaudit.checkpoint.agreement import KINDS, long_text
from embaudit.checkpoint.prompts import NO_PROMPTS
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.embedders.function import AS_SUCH, EmbeddingFunction
from embaudit.measures.integrity.not_computed import prompts_not_picked
from embaudit.questions.parity.compare import (
    FAR_BEYOND,
    LENGTHS_IN_WORDS,
    LONGEST_TRIED,
    MORE_KINDS,
    NOT_IN_ROLES,
    ROLES,
    USUAL_LIMITS,
    text_of,
)
from embaudit.questions.parity.parity import asked_alone
from embaudit.questions.parity.roles import TOLD_BY, with_prompt
from embaudit.questions.passport.passport import (
    Canary,
    PassedCheckpoint,
    PassedPrompts,
    PassedReading,
    PassedSettings,
    Passport,
    PromptNotPicked,
    Tolerances,
    as_base64,
)
from embaudit.words.errors import MeasureError

# What breaks on the texts of a kind.
PURPOSES = {
    "plain": "pooling, weights, prompts and special tokens; hardly anything else",
    "capitals": "lower-casing that is lost or added",
    "accents": "accents that are stripped, kept or composed otherwise",
    "scripts": "other encodings, and letters outside ASCII that are dropped",
    "emoji": "characters outside the basic plane: dropped, split, or NaN",
    "code": "newlines, quotes and HTML that clients escape or strip",
    "digits": "numbers that are split otherwise",
    "punctuation": "punctuation that is dropped or normalised",
    "one token": "special tokens and pooling, which such texts have most of",
    "blank": "texts that are stripped, or left out of a batch",
    "empty": "a text of special tokens alone",
    "control characters": "characters that clients remove, and servers fail on",
    "special tokens": "special tokens in texts, read as such or as letters",
    "spaces": "white space that is stripped or merged",
    "newlines": "newlines that are stripped, or replaced by spaces",
    "forms of letters": "Unicode normalisation (NFKC, NFC)",
    "quotes and entities": "texts that are escaped or unescaped on the way",
    "accents in words": "accents that are stripped or kept in ordinary words",
    "prompts in texts": "prompts that are added, stripped, or added twice",
}
OF_A_ROLE = "what only queries or only documents get: a prompt, or a step of the client"
# Used where a checkpoint declares none.
USUAL_PROMPTS = {"query": "query: ", "document": "passage: "}
ASKED = {"query": "where is the old bridge", "document": "The old bridge stands in the north of the town."}
SHORTER = (24, 60)
# Of texts that are longer than parity encodes, the longest that takes no more multiplications is held: a passport is
# made once, and this is about twenty seconds of two cores.
AFFORDABLE = 1e12
# A text just behind such a limit has this part of it more.
BEHIND = 8


@dataclass(frozen=True)
class CanaryText:
    kind: str
    text: str
    purpose: str


def canary_texts(checkpoint: Checkpoint | None, *, in_roles: bool = False) -> list[CanaryText]:
    """Some 55 distinct texts; long ones are made to the checkpoint's own limit in tokens, else in words.

    Args:
        in_roles: with the first of each kind once more as a query, and as a document.
    """
    prompts = checkpoint.recipe.prompts if checkpoint is not None else NO_PROMPTS
    own = {"query": prompts.query, "document": prompts.document}
    kinds = {
        **KINDS,
        **MORE_KINDS,
        "prompts in texts": tuple((own[kind] or usual) + ASKED[kind] for kind, usual in USUAL_PROMPTS.items()),
    }
    short = [CanaryText(kind, text, PURPOSES[kind]) for kind, texts in kinds.items() for text in texts]
    found = {one.text: one for one in [*_long(checkpoint), *short]}
    order = [*kinds, "lengths", "at the limit", "beyond the limit"]
    canaries = sorted(found.values(), key=lambda one: order.index(one.kind))
    if not in_roles:
        return canaries
    first = {one.kind: one.text for one in reversed(canaries) if one.kind not in NOT_IN_ROLES}
    asked = [CanaryText(role, text, OF_A_ROLE) for role in ROLES for text in reversed(first.values())]
    return [*canaries, *asked]


def asked_as_well(passport: Passport, roles: Collection[str]) -> Passport:
    """The passport of what takes all texts alike, with the first canary of each kind asked for as queries, say, too."""
    first = {one.kind: one for one in reversed(passport.canaries) if one.kind not in NOT_IN_ROLES}
    more = [
        one.model_copy(update={"kind": role, "purpose": OF_A_ROLE})
        for role in roles
        for one in reversed(first.values())
    ]
    return passport.model_copy(update={"canaries": (*passport.canaries, *more)})


def longest_affordable(checkpoint: Checkpoint) -> int:
    """The longest text in tokens, up to the declared limit, of which a vector takes no more than ``AFFORDABLE``."""
    model, limit = checkpoint.model, checkpoint.max_length
    config = model.config.get_text_config()
    in_words = int(model.get_input_embeddings().weight.numel())
    weights = sum(parameter.numel() for parameter in model.parameters()) - in_words
    layers, width = (int(getattr(config, name, 0) or 0) for name in ("num_hidden_layers", "hidden_size"))
    lengths = [LONGEST_TRIED << doubled for doubled in range(1, 8) if LONGEST_TRIED << doubled < limit]
    # Each token meets each weight, and in every layer each other token twice: to attend to it, and to take from it.
    can = [n for n in (*lengths, limit) if n * weights + 2 * layers * width * n * n <= AFFORDABLE]
    return max(can, default=LONGEST_TRIED)


def _long(checkpoint: Checkpoint | None) -> Iterator[CanaryText]:
    """One token more than servers usually cut at, the limit itself, and what is beyond it."""
    if checkpoint is None:
        for words in LENGTHS_IN_WORDS:
            yield CanaryText("lengths", long_text(words), f"a limit below {words} words")
        return
    limit, known = checkpoint.max_length, dict[int, int]()
    beyond = [usual + 1 for usual in USUAL_LIMITS]
    for length in sorted({*SHORTER, *beyond}):
        if length < min(limit, LONGEST_TRIED):
            purpose = f"a limit below {length} tokens" if length in beyond else "padding, beside shorter texts"
            yield CanaryText("lengths", text_of(checkpoint, length, known=known), purpose)
    if limit >= NO_LIMIT:
        return
    if limit > LONGEST_TRIED:
        longest = longest_affordable(checkpoint)
        if longest < limit:
            yield CanaryText("lengths", text_of(checkpoint, longest, known=known), f"a limit below {longest} tokens")
        else:
            # So much beyond it that it moves a vector of thousands of tokens.
            for length, kind, side in (
                (limit, "at the limit", "below"),
                (limit + limit // BEHIND, "beyond the limit", "above"),
            ):
                purpose = f"a limit {side} the declared {limit}"
                yield CanaryText(kind, text_of(checkpoint, length, known=known), purpose)
        return
    yield CanaryText("at the limit", text_of(checkpoint, limit, known=known), f"a limit below the declared {limit}")
    for length in (limit + 1, limit * FAR_BEYOND):
        purpose = f"a limit above the declared {limit}, the other end, or windows"
        yield CanaryText("beyond the limit", text_of(checkpoint, length, known=known), purpose)


AS_DECLARED = LoadOptions()
VERSIONS_OF = ("embaudit", "torch", "transformers")


def make_passport(function: EmbeddingFunction, options: LoadOptions = AS_DECLARED) -> Passport:
    """Encode the canaries; those that the function gives no vector, or zeros, are left out.

    Args:
        function: a checkpoint loaded in float32, or any other.
        options: how a checkpoint was loaded.

    Raises:
        MeasureError: if it gives no canary a vector.
    """
    checkpoint = function.checkpoint
    # Of a checkpoint, the prompts say what is asked for alike; of others, nothing in the file would.
    in_roles = function.takes_roles if checkpoint is None else any(function.alike(role) != "text" for role in AS_SUCH)
    texts = canary_texts(checkpoint, in_roles=in_roles)
    by_kind: dict[str, list[str]] = {}
    for one in texts:
        by_kind.setdefault(one.kind, []).append(one.text)
    rows = np.concatenate([answers.vectors for answers in asked_alone(function, by_kind).values()])
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    kept = np.flatnonzero(np.isfinite(lengths) & (lengths > 0))
    if not len(kept):
        raise MeasureError(
            f"{function.name} gives none of {len(texts)} texts a vector.",
            next_step=f"See what is wrong with it: embaudit check {function.typed}",
        )
    tolerances = Tolerances()
    is_normalised = bool(np.abs(lengths[kept] - 1).max() <= tolerances.length)
    if checkpoint is None:
        tokens = [len(one.text.split()) for one in texts]
        passed, reading = _of_a_function(function, rows.shape[1], is_normalised)
    else:
        tokens = [len(checkpoint.with_special_tokens(ids)) for ids in checkpoint.own_ids([one.text for one in texts])]
        passed, reading = _checkpoint(checkpoint), _reading(checkpoint, is_normalised)
    canaries = tuple(
        Canary(
            kind=texts[place].kind,
            text=texts[place].text,
            purpose=texts[place].purpose,
            tokens=tokens[place],
            vector=as_base64(rows[place]),
        )
        for place in kept
    )
    return Passport(
        made_with={name: version(name) for name in VERSIONS_OF},
        checkpoint=passed,
        reading=reading,
        settings=PassedSettings(pooling=options.pooling, max_length=options.max_length, prompt=options.prompts.text),
        tolerances=tolerances,
        canaries=canaries,
        not_picked=() if checkpoint is None else tuple(_not_picked(checkpoint, canaries)),
    )


def _not_picked(checkpoint: Checkpoint, canaries: Sequence[Canary]) -> Iterator[PromptNotPicked]:
    """The prompts that clients may put though nothing picks them, with the first canary of each kind behind them."""
    first = {one.kind: one for one in reversed(canaries) if one.kind not in (*NOT_IN_ROLES, *ROLES)}
    of_kinds = [*reversed(first.values())]
    for role, (name, prompt) in prompts_not_picked(checkpoint).items():
        kind = next(kind for kind, one in ROLES.items() if one == role)
        prompted = with_prompt(checkpoint, role, prompt).reading(role)
        texts = [*TOLD_BY, *(one.text for one in of_kinds)]
        rows = Encoder(prompted).encode_texts(texts)
        yield PromptNotPicked(
            role=role,
            name=name,
            prompt=prompt,
            canaries=tuple(
                Canary(
                    kind=kind,
                    text=text,
                    purpose=OF_A_ROLE,
                    tokens=len(prompted.with_special_tokens(prompted.own_ids([text])[0])),
                    vector=as_base64(row),
                )
                for text, row in zip(texts, rows, strict=True)
            ),
        )


def _of_a_function(
    function: EmbeddingFunction, dimension: int, is_normalised: bool
) -> tuple[PassedCheckpoint, PassedReading]:
    """What is known of a function whose inside is not: its name and what its vectors show."""
    passed = PassedCheckpoint(
        id=function.identity,
        source=function.typed,
        revision=None,
        **dict.fromkeys(("weights_sha256", "tokenizer_sha256", "config_sha256", "modules_sha256"), ""),
        architecture=function.kind,
    )
    reading = PassedReading(
        dimension=dimension,
        is_normalised=is_normalised,
        pooling="",
        modules=(),
        max_length=function.limit,
        prompts=PassedPrompts(text="", query="", document=""),
        pools_prompt=False,
        counted_in="words",
    )
    return passed, reading


def _checkpoint(checkpoint: Checkpoint) -> PassedCheckpoint:
    return PassedCheckpoint(
        id=checkpoint.checkpoint_id,
        source=str(checkpoint.resolved.ref),
        revision=checkpoint.resolved.revision,
        **asdict(checkpoint.identity),
        architecture=type(checkpoint.model).__name__,
    )


def _reading(checkpoint: Checkpoint, is_normalised: bool) -> PassedReading:
    recipe = checkpoint.recipe
    return PassedReading(
        dimension=checkpoint.dimension,
        is_normalised=is_normalised,
        pooling="+".join(recipe.pooling),
        modules=tuple(module.kind for module in recipe.modules),
        max_length=checkpoint.max_length if checkpoint.max_length < NO_LIMIT else None,
        prompts=PassedPrompts(**recipe.prompts.as_json()),
        pools_prompt=recipe.pools_prompt,
    )
