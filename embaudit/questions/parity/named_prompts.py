"""Prompts for queries, or documents, that a checkpoint declares under names that nothing picks: a client may put them.

Some declare "passage", others "search_document": sentence-transformers' ``encode_document`` reads neither. A client
that puts them does what the checkpoint says.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, TextKind
from embaudit.checkpoint.prompts import prompt_tokens
from embaudit.declared.rule import Finding
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.integrity.not_computed import PROMPT_NOT_PICKED, prompts_not_picked
from embaudit.questions.parity.compare import HALF, apart
from embaudit.questions.parity.texts import FRESH
from embaudit.words.errors import EmbauditError

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
