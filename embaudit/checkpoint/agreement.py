"""Compares how embaudit reads a checkpoint with how sentence-transformers does: the same texts, vector by vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint.encoder import Encoder
from embaudit.checkpoint.hard_texts import KINDS, long_text
from embaudit.checkpoint.load import Checkpoint
from embaudit.checkpoint.model import quiet_transformers
from embaudit.checkpoint.prompts import INSTRUCTORS, TextKind
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.errors import EmbauditError, UsageError, one_line

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Float32 rounding in another order of sums; above it, something is read differently.
SAME = 1e-5
# Limits beyond this are not exceeded by the long texts, which would take minutes. Without one, a whole text is read.
LONGEST_TRIED, WITHOUT_LIMIT = 8_192, 150
METHODS: dict[TextKind, str] = {"text": "encode", "query": "encode_query", "document": "encode_document"}
Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class Agreement:
    """How far two readings of the texts of one kind are apart.

    Attributes:
        method: of sentence-transformers.
        difference: the largest difference of a component of two unit vectors; infinite if embaudit fails without a
            reason, None if it refuses the texts by name or sentence-transformers fails.
        failure: who does, and why.
    """

    method: str
    kind: str
    texts: int
    difference: float | None
    failure: str = ""

    @property
    def is_same(self) -> bool:
        return self.difference is None or self.difference <= SAME


def compare_readings(checkpoint: Checkpoint, *, trust_remote_code: bool = False) -> Iterator[Agreement]:
    """Encode texts of every kind both ways, in batches of one kind and then all in one.

    Args:
        checkpoint: loaded in float32 as declared, without overrides.

    Raises:
        UsageError: if sentence-transformers is not installed, or cannot load the checkpoint.
    """
    model = _reference(checkpoint, trust_remote_code)
    for kind, method in METHODS.items():
        encoder = Encoder(checkpoint.reading(kind))
        limit = encoder.checkpoint.max_length
        longest = WITHOUT_LIMIT if limit >= NO_LIMIT else min(limit, LONGEST_TRIED)
        texts = dict(KINDS) | {"long": tuple(long_text(2 * words) for words in sorted({20, longest}))}
        texts["mixed batch"] = tuple(text for some in texts.values() for text in some if text.strip())

        def theirs(some: Sequence[str], method: str = method) -> np.ndarray:
            return np.asarray(getattr(model, method)(list(some), show_progress_bar=False), dtype=np.float64)

        for name, some in texts.items():
            yield _compare(method, name, some, encoder.encode_texts, theirs)


def _compare(method: str, kind: str, texts: Sequence[str], ours: Encode, theirs: Encode) -> Agreement:
    failures: dict[str, Exception] = {}
    vectors = []
    for who, encode in (("embaudit", ours), ("sentence-transformers", theirs)):
        try:
            vectors.append(encode(texts))
        except Exception as error:  # whatever a model of a stranger raises
            failures[who] = error
    if not failures:
        return Agreement(method, kind, len(texts), _difference(*vectors))
    said = "; ".join(
        f"{who}: " + ("" if isinstance(error, EmbauditError) else f"{type(error).__name__}: ") + one_line(error)
        for who, error in failures.items()
    )
    is_refused = isinstance(failures.get("embaudit"), EmbauditError) or "sentence-transformers" in failures
    return Agreement(method, kind, len(texts), None if is_refused else float("inf"), said)


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of unit vectors; infinite if they are not of one shape, or only one has NaN."""
    if ours.shape != theirs.shape:
        return float("inf")
    units = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (ours, theirs)]
    difference = float(np.abs(units[0] - units[1]).max(initial=0.0))
    return float("inf") if np.isnan(difference) else difference


def _reference(checkpoint: Checkpoint, trust_remote_code: bool) -> SentenceTransformer:
    import torch

    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UsageError(
            "Comparing with sentence-transformers needs that package, which is not installed.",
            next_step="Type: pip install 'embaudit[sentence-transformers]'",
        ) from error
    arguments: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    try:
        with quiet_transformers():
            model = SentenceTransformer(
                str(checkpoint.resolved.folder),
                device=checkpoint.device,
                model_kwargs={"dtype": torch.float32},
                **arguments,
            )
    except Exception as error:  # whatever a model of a stranger raises
        raise UsageError(
            f"sentence-transformers cannot load {checkpoint.resolved.ref}: {type(error).__name__}: {one_line(error)}",
            kept="embaudit can: nothing else compares the two.",
            next_step="Check the checkpoint with the version of sentence-transformers that serves it.",
        ) from error
    if checkpoint.resolved.ref.kind == "hub" and checkpoint.resolved.ref.name in INSTRUCTORS:
        model.set_pooling_include_prompt(False)
    return model
