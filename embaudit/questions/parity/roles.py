"""What is done to queries, or to documents, alone: a prompt of theirs, or a step of the client that only one has.

Prompts for queries, or documents, that a checkpoint declares under names that nothing picks: a client may put them.

Some declare "passage", others "search_document": sentence-transformers' ``encode_document`` reads neither. A client
that puts them does what the checkpoint says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, TextKind
from embaudit.checkpoint.prompts import prompt_tokens
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.integrity.not_computed import PROMPT_NOT_PICKED, prompts_not_picked
from embaudit.questions.parity.compare import (
    FRESH,
    HALF,
    LEFT,
    ROLES,
    SAME,
    KindDifference,
    apart,
    compare_kind,
    moved,
    texts_by_kind,
)
from embaudit.questions.parity.findings import asked_for
from embaudit.words.errors import EmbauditError
from embaudit.words.sentences import quoted

if TYPE_CHECKING:
    from embaudit.questions.parity.explain import Explanation


# (n, D) vectors of texts that are asked for as something; NaN where there is none.
Ask = Callable[[Sequence[str], "TextKind"], np.ndarray]
# The rule of what is said of roles that only one of two can be asked for.
UNTOLD = Rule(
    "roles",
    look_if="a function gives queries, or documents, other vectors than texts asked for as neither, and the other one "
    "takes all alike",
    reason="one takes the other's place in a search only if its callers do the same. `not measured` of a checkpoint's "
    "prompts, if the other is asked for texts alone",
)


def explain_roles(
    checkpoint: Checkpoint,
    texts: Mapping[str, Sequence[str]],
    differing: Sequence[KindDifference],
    theirs: Mapping[str, np.ndarray],
    plainly: Explanation | None,
    ask: Ask,
) -> dict[str, Explanation]:
    """By role, how the checkpoint would have to be used to give the other's vectors of queries, or of documents.

    Args:
        texts: by kind.
        differing: the kinds that differ; those that are asked for as something are explained.
        theirs: (n, D) the other's vectors by kind.
        plainly: what explains the texts that are asked for as nothing in particular. It is not looked for again where
            it explains these, too.
        ask: the other's (n, D) vectors of texts that are asked for as something.
    """
    from embaudit.questions.parity.explain import explain

    found: dict[str, Explanation] = {}
    own_kind = {text: kind for kind, some in texts.items() if kind not in ROLES for text in some}
    for one in differing:
        if one.kind not in ROLES:
            continue
        vectors, reading = theirs[one.kind], checkpoint.reading(ROLES[one.kind])
        if not np.isfinite(vectors).all(axis=1).any():
            continue
        if (remembered := _remembered(reading, texts, one.kind, theirs, ask)) is not None:
            found[one.kind] = remembered
            continue
        # What fits without the role's own prompt leaves that prompt out, too.
        has_own_prompt = reading.prompt.text != checkpoint.prompt.text
        if not has_own_prompt and plainly is not None and plainly.leaves is not None and plainly.sentences:
            left = plainly.leaves(one.texts, vectors)
            known = left[np.isfinite(left)]
            if len(known) and known.max() <= LEFT:
                told = replace(plainly, left={one.kind: float(known.max())})
                found[one.kind] = left_on_fresh_texts(told, ask, ROLES[one.kind])
                continue
        places: dict[str, list[int]] = {}
        for place, text in enumerate(one.texts):
            places.setdefault(own_kind[text], []).append(place)
        told = explain(
            reading,
            {kind: [one.texts[place] for place in some] for kind, some in places.items()},
            {kind: vectors[some] for kind, some in places.items()},
        )
        found[one.kind] = left_on_fresh_texts(told, ask, ROLES[one.kind])
    return found


def left_on_fresh_texts(told: Explanation, ask: Ask, role: TextKind = "text") -> Explanation:
    """The explanation, with what it leaves on texts that nobody has asked for yet, if it is more than it may leave."""
    if not told.is_complete or told.leaves is None:
        return told
    left = told.leaves(FRESH[role], ask(FRESH[role], role))
    worst = float(np.nanmax(left)) if np.isfinite(left).any() else 0.0
    more = replace(told, left={**told.left, "texts that were not asked for before": worst})
    return told if more.is_complete else more


def _remembered(
    reading: Checkpoint, texts: Mapping[str, Sequence[str]], kind: str, theirs: Mapping[str, np.ndarray], ask: Ask
) -> Explanation | None:
    """Whether a text that is asked for as a query, say, gets the vector that it had before as none: a cache's.

    Told by texts that are asked for as queries first: these have queries' vectors, and then keep them as documents.
    """
    from embaudit.questions.parity.explain import Explanation

    before = {
        text: row for each in texts if each not in ROLES for text, row in zip(texts[each], theirs[each], strict=True)
    }
    own = np.array([before[text] for text in texts[kind]])
    vectors = theirs[kind]
    if vectors.shape != own.shape:
        return None
    same, both = apart(vectors, own), np.isfinite(vectors).all(axis=1) & np.isfinite(own).all(axis=1)
    if not both.any() or not np.nan_to_num(same[both]).max() <= SAME:
        return None
    role = ROLES[kind]
    new = FRESH[role]
    first, wanted = ask(new, role), Encoder(reading).encode_texts(list(new))
    if first.shape != wanted.shape or not np.nan_to_num(apart(first, wanted), nan=2.0).max() <= HALF:
        return None
    if not np.nan_to_num(apart(ask(new, "text"), first), nan=2.0).max() <= SAME:
        return None
    sentence = (
        f"gives the vector that the same text had before, asked for otherwise: what keeps vectors does not tell "
        f"{asked_for(kind)} apart, and new texts get the right one"
    )
    return Explanation((sentence,), {kind: float(np.nan_to_num(same[both]).max())})


def told_by_one(
    first: EmbeddingFunction, second: EmbeddingFunction, plainly: Sequence[Mapping[str, np.ndarray]]
) -> Iterator[Finding]:
    """What is to know where one of two takes all texts alike, and the other does something of its own to queries.

    Args:
        plainly: of each of the two, its vectors of texts that are asked for as nothing in particular, by text.
    """
    if first.takes_roles == second.takes_roles:
        return
    teller, other, own = (first, second, plainly[0]) if first.takes_roles else (second, first, plainly[1])
    kinds = [kind for kind, role in ROLES.items() if teller.alike(role) != "text"]
    if not kinds:
        return
    if teller.checkpoint is None:
        yield from does_otherwise(teller, kinds, own, f"the {other.kind} {other.name} takes all texts alike")
        return
    prompts = {asked_for(kind): teller.checkpoint.reading(ROLES[kind]).prompt.text for kind in kinds}
    said = ", ".join(f"{repr(prompt) if prompt else 'nothing'} before {of}" for of, prompt in prompts.items())
    options = " ".join(f"--{ROLES[f'as {of}']}-prompt {prompt!r}" for of, prompt in prompts.items())
    yield UNTOLD.finding(
        "not measured",
        f"The {other.kind} is asked for texts alone, so what queries and documents get as such was not compared: the "
        f"checkpoint puts {said}.",
        "Its callers have to put it there.",
        f"As its callers ask it: {options}",
    )


def does_otherwise(
    teller: EmbeddingFunction, kinds: Sequence[str], own: Mapping[str, np.ndarray], but: str
) -> Iterator[Finding]:
    """Whether a function gives queries, or documents, other vectors than the same texts asked for as neither.

    Args:
        own: its vectors of such texts.
        but: what does not tell them apart.
    """
    from embaudit.questions.parity.parity import asked_alone

    texts = texts_by_kind(None, roles=[ROLES[kind] for kind in kinds])
    asked = {kind: [text for text in texts[kind] if text in own] for kind in kinds}
    answers = asked_alone(teller, asked)
    for kind, some in asked.items():
        vectors = np.array([own[text] for text in some])
        difference = compare_kind(kind, some, vectors, answers[kind].vectors, answers[kind].failures)
        refused = [place for place in difference.failures if difference.is_known[place]]
        if not moved([difference]) and not refused:
            continue
        how = (
            f"gives no vector of {len(refused)} of {len(some)} texts ({difference.failures[refused[0]]})"
            if refused
            else f"gives other vectors than for texts (1 − cosine up to {difference.worst:.2g}, for "
            f"{quoted(difference.worst_text)})"
        )
        yield UNTOLD.finding(
            "look",
            f"Asked for {asked_for(kind)}, the {teller.kind} {teller.name} {how}; {but}.",
            "Texts that are asked for as neither were compared. One takes the other's place in a search only if its "
            "callers do the same.",
            "See what it does to them. What callers put before them can be said: --query-prompt, --document-prompt",
            difference.worst if np.isfinite(difference.worst) else None,
        )


# Distinct from what is asked for later: a cache would keep it.
TOLD_BY = tuple(f"{text} Or so." for text in FRESH["document"])


def as_named(known: EmbeddingFunction, other: EmbeddingFunction) -> tuple[EmbeddingFunction, tuple[Finding, ...]]:
    """The checkpoint with those of its prompts that the other one puts, by whatever name they are declared."""
    checkpoint = known.checkpoint
    if not isinstance(known, CheckpointFunction) or checkpoint is None or not other.takes_roles:
        return known, ()
    found = []
    for role, (name, text) in prompts_not_picked(checkpoint).items():
        prompted = with_prompt(checkpoint, role, text)
        if _fits(prompted, other, role) and not _fits(checkpoint, other, role):
            checkpoint = prompted
            found.append(told_of_prompt(role, name, text, other))
    return (CheckpointFunction(checkpoint, known.name) if found else known), tuple(found)


def with_prompt(checkpoint: Checkpoint, role: TextKind, text: str) -> Checkpoint:
    """The checkpoint with a prompt before texts of a role."""
    recipe = checkpoint.recipe
    tokens = prompt_tokens(text, checkpoint.tokenizer, recipe.call, is_pooled=recipe.pools_prompt)
    return replace(
        checkpoint,
        prompts={**checkpoint.prompts, role: tokens},
        recipe=replace(recipe, prompts=replace(recipe.prompts, **{role: text})),
    )


def _fits(checkpoint: Checkpoint, other: EmbeddingFunction, role: TextKind) -> bool:
    """Whether the other's vectors of a few texts in a role are the checkpoint's."""
    try:
        theirs = other.encode(TOLD_BY, role, most=1).vectors
    except EmbauditError:
        return False
    ours = Encoder(checkpoint.reading(role)).encode_texts(list(TOLD_BY))
    return theirs.shape == ours.shape and bool(np.nan_to_num(apart(theirs, ours), nan=2.0).max() <= HALF)


def told_of_prompt(role: TextKind, name: str, text: str, other: EmbeddingFunction) -> Finding:
    """A client puts a prompt that the checkpoint declares under a name which nothing picks."""
    plural = "queries" if role == "query" else "documents"
    return PROMPT_NOT_PICKED.finding(
        "look",
        f"{other.name} puts {text!r} before {plural}, which the checkpoint declares as {name!r}: they were compared "
        "with it.",
        f"sentence-transformers' encode_{role} looks for {role!r} and puts nothing: it gives other vectors.",
        f"Have the checkpoint declare it as {role!r}, too, in config_sentence_transformers.json.",
    )
