"""What the rows of an index were encoded as: texts, documents, or by mistake queries."""

from __future__ import annotations

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import IN_ORDER, EmbeddingFunction
from embaudit.questions.vectors.encode import encode_rows, role_of_rows
from embaudit.questions.vectors.forms import form_of_index
from embaudit.questions.vectors.sample import SomeRows
from embaudit.stores.store import Rounded

# Rows that tell what all were encoded as.
TOLD_BY = 64
TRIED: tuple[TextKind, ...] = ("text", "document")
PLURAL: dict[TextKind, str] = {"text": "texts that are neither", "query": "queries", "document": "documents"}
ROLE = Rule("role_of_rows", reason="`ok`: rows were encoded as documents, with the prompt that the checkpoint declares")


def as_rows_were_built(
    function: EmbeddingFunction, sample: SomeRows, rounded: Rounded | None, role: TextKind | None = None
) -> EmbeddingFunction:
    """A checkpoint as the program used it that built an index: some encode rows plainly, some as documents.

    It matters where the checkpoint declares something to put before documents. Rows that lack it are told by the search
    for another use, and so are plain rows with it.

    Args:
        role: what they were encoded as, where other rows of the index have told.
    """
    if not isinstance(function, CheckpointFunction) or function.alike("document") == function.alike("text"):
        return function
    if role is not None:
        return function if role == "text" else function.read_as(role)
    some = sample.with_text
    some = some.at(np.arange(min(TOLD_BY, len(some))))
    texts = [text or "" for text in some.texts]
    fit: dict[TextKind, tuple[int, float]] = {}
    for tried in TRIED:
        ours = encode_rows(function, texts, role=tried)
        form = form_of_index(ours, some.vectors, rounded)
        if form is None or not len(some):
            return function
        distances = form.distance(ours, some.vectors)
        # Of coarse codes no row may be near enough: then the nearer are.
        own = int((distances <= form.tolerance(distances)).sum())
        fit[tried] = own, -float(np.nan_to_num(distances, nan=2.0).mean())
    return function.read_as("document") if fit["document"] > fit["text"] else function


def finding_of_role(function: EmbeddingFunction) -> Finding | None:
    """Says that rows were encoded as documents, where that is told; None where it makes no difference."""
    checkpoint = function.checkpoint
    if checkpoint is None or checkpoint.kind == "text":
        return None
    return ROLE.finding(
        "ok",
        f"Rows were encoded as {PLURAL[checkpoint.kind]}: with {checkpoint.prompt.text!r} before each text, as the "
        "checkpoint declares it.",
    )


def other_roles(function: EmbeddingFunction) -> list[TextKind]:
    """What else rows may have been encoded as by a function that is asked for these in other ways; queries first.

    Of a checkpoint, the search for another use names the prompt.
    """
    if function.checkpoint is not None:
        return []
    ways = {function.alike(role): role for role in reversed(IN_ORDER)}
    ways.pop(function.alike(role_of_rows(function)), None)
    return sorted(ways.values(), key=lambda role: role != "query")
