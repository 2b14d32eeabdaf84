"""Compares how embaudit reads a checkpoint with how sentence-transformers does: the same texts, vector by vector.

Texts that two readings of one checkpoint disagree on first: a few of each kind, each there because something breaks.

Plain sentences agree almost anywhere. Readings part at capitals (lost lower-casing), accents and scripts (another
normalizer or vocabulary), texts of no or one token (special tokens), and long texts (limits and sides of truncation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint.encoder import Encoder
from embaudit.checkpoint.load import Checkpoint
from embaudit.checkpoint.model import quiet_transformers
from embaudit.checkpoint.prompts import INSTRUCTORS, TextKind
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.words.errors import CheckpointError, EmbauditError, UsageError, one_line

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


KINDS: dict[str, tuple[str, ...]] = {
    "plain": (
        "The river is long.",
        "A town in the north built its first school beside the old bridge.",
        "Three ships were found in 1923; one of them had no crew, and all of its books were burned.",
    ),
    "capitals": ("HEART AND BRAIN", "Apple sued the US over IT taxes.", "aLtErNaTe CaSe"),
    "accents": ("café naïve Łódź Ångström", "cafe\u0301 nai\u0308ve", "résumé"),
    "scripts": ("今日は雨です。", "Привет, мир", "مرحبا بالعالم", "नमस्ते दुनिया", "안녕하세요"),
    "emoji": ("😀 👩‍👩‍👧 🏳️‍🌈", "ok 👍🏽"),
    "code": (
        "def f(x):\n\treturn {'a': x[0] ** 2}  # square",
        '<div class="a">&amp;</div>',
        "SELECT * FROM t WHERE a <> 'b';",
    ),
    "digits": ("3.14159", "10,000,000 km at 09:30 on 2024-02-29"),
    "punctuation": ("?!…—“”", "a.b,c;d:e"),
    "one token": ("gold", "a"),
    "blank": (" ", "\n\t "),
    "empty": ("",),
    "control characters": ("a\u200bb\u00adc\ufeff", "a\x00b"),
    "special tokens": ("[CLS] gold [SEP] </s> <s> <|endoftext|>", "[MASK] <mask> <pad>"),
    "spaces": ("  gold   iron  ", "gold\n\niron\n"),
}
WORDS = ("river", "Stone", "old", "Bridge", "north", "town", "Water", "iron", "school", "light")


def long_text(words: int) -> str:
    """Distinct sentences of a number of words, so that it matters which end is read."""
    return " ".join(
        f"{WORDS[place % len(WORDS)]} {place}." if place % 7 == 6 else WORDS[place % 10] for place in range(words)
    )


# Float32 rounding in another order of sums; above it, something is read differently.
SAME = 1e-5
# Limits beyond this are not exceeded by the long texts, which would take minutes. Without one, a whole text is read.
LONGEST_TRIED, WITHOUT_LIMIT = 8_192, 150
# A model in memory may be on another device and in another precision than what is audited.
IN_MEMORY, IN_MEMORY_HALF = 1e-3, 5e-2
FEW = ("plain", "capitals", "accents", "special tokens", "spaces")
FEW_LONGEST = 512
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

        for name, some in texts.items():
            yield _compare(method, name, some, encoder.encode_texts, _theirs(model, method))


@contextmanager
def left_as_it_is(model: Any) -> Iterator[None]:
    """Encoding puts a model out of training mode."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, is_training in modes:
            module.training = is_training


def require_same(model: SentenceTransformer, checkpoint: Checkpoint) -> None:
    """Compare a model in memory with the folder that it was saved to, on a few texts.

    Args:
        model: left as it is, in training mode if it was.
        checkpoint: that folder, loaded as declared, without overrides.

    Raises:
        CheckpointError: if they give other vectors: saving has lost a part of the model.
    """
    dtypes = f"{getattr(model, 'dtype', '')} {checkpoint.dtype}"
    tolerance = IN_MEMORY_HALF if "float16" in dtypes else IN_MEMORY  # bfloat16, too
    with left_as_it_is(model):
        for kind, method in METHODS.items():
            encoder = Encoder(checkpoint.reading(kind))
            longest = min(encoder.checkpoint.max_length, FEW_LONGEST)
            texts = [*(text for name in FEW for text in KINDS[name]), long_text(2 * longest)]
            row = _compare(method, "few", texts, encoder.encode_texts, _theirs(model, method))
            if row.difference is not None and row.difference > tolerance:
                raise CheckpointError(
                    f"The model's {method} gives other vectors than the folder that it was saved to (unit vectors "
                    f"differ by {row.difference:.2g}): something in it is not saved, such as a hook, a method of its "
                    "own, or the side on which its tokenizer truncates.",
                    kept=f"The folder is {checkpoint.resolved.folder}.",
                    next_step="Build that into the modules or the files, or audit a folder without it.",
                )


def _theirs(model: SentenceTransformer, method: str) -> Encode:
    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.asarray(getattr(model, method)(list(texts), show_progress_bar=False), dtype=np.float64)

    return encode


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
