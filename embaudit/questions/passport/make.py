"""Makes the passport of a checkpoint, or of a function whose files nobody sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.embedders.function import AS_SUCH, EmbeddingFunction
from embaudit.measures.integrity.not_computed import prompts_not_picked
from embaudit.questions.parity.named_prompts import TOLD_BY, with_prompt
from embaudit.questions.parity.parity import asked_alone
from embaudit.questions.parity.texts import NOT_IN_ROLES, ROLES
from embaudit.questions.passport.canaries import OF_A_ROLE, canary_texts
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
    identity = checkpoint.identity
    return PassedCheckpoint(
        id=checkpoint.checkpoint_id,
        source=str(checkpoint.resolved.ref),
        revision=checkpoint.resolved.revision,
        weights_sha256=identity.weights_sha256,
        tokenizer_sha256=identity.tokenizer_sha256,
        config_sha256=identity.config_sha256,
        modules_sha256=identity.modules_sha256,
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
