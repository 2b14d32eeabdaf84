"""Whether vectors are finite, and other than zero, in float32 and in the half precisions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, ResolvedCheckpoint, load_checkpoint
from embaudit.checkpoint.files import read_object
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.measures.integrity.hard import HardTexts
from embaudit.words.errors import MeasureError, is_of_interrupt, one_line

HALVES = ("float16", "bfloat16")
# A processor without half-precision units takes ten times as long: few and short texts.
HALF_TEXTS, HALF_TOKENS = 24, 64
NOT_FINITE = Rule(
    "not_finite",
    problem_if="NaN, infinity or an error in float32, or a zero vector",
    reason="such vectors break an index, or are near nothing",
)
ZERO_VECTOR = NOT_FINITE.named("zero_vector")
HALF = Rule(
    "runs_in_{dtype}",
    look=0.99,
    worse="lower",
    look_if="a cosine below {look} to float32, or overflow",
    problem_if="the same in the precision that config.json declares",
    reason="of bfloat16 and float16; rounding alone leaves .9999 and .999999. `not measured` if it does not run here",
)


@dataclass(frozen=True)
class InFloat32:
    """What half precision is held against: texts' ids, and their vectors (N, D) in float32."""

    resolved: ResolvedCheckpoint
    declared: str
    ids: list[list[int]]
    vectors: np.ndarray


def numeric_findings(encoder: Encoder, options: LoadOptions, hard: HardTexts | None = None) -> list[Finding]:
    """What is wrong with the numbers: in float32, then in each half precision, of which one is in memory beside it.

    Args:
        encoder: of the checkpoint in float32.
        options: how it was loaded.
        hard: its hard texts, if they are encoded already.
    """
    findings, exact = full_findings(encoder, hard)
    return findings if exact is None else [*findings, *half_findings(exact, options)]


def full_findings(encoder: Encoder, hard: HardTexts | None = None) -> tuple[list[Finding], InFloat32 | None]:
    """What is wrong with the numbers in float32, and what half precision is held against; None if there is nothing."""
    hard = hard or HardTexts(encoder)
    texts = hard.texts
    vectors, broken = _encoded(hard)
    if broken:
        return [
            NOT_FINITE.finding(
                "problem",
                f"{len(broken)} of {len(texts)} texts get NaN, infinity or an error in float32, "
                f"{broken[0][0]!r} first: {broken[0][1]}",
                "Such vectors break an index, or are found by nothing.",
                "Audit an earlier revision, or train again from one that is finite.",
                value=float(len(broken)),
            )
        ], None
    short = [place for place, row in enumerate(hard.ids) if len(row) <= HALF_TOKENS][:HALF_TEXTS]
    ids, checkpoint = [hard.ids[place] for place in short], encoder.checkpoint
    exact = InFloat32(checkpoint.resolved, _declared(checkpoint), ids, vectors[short]) if ids else None
    return [_usable(vectors)], exact


def _encoded(hard: HardTexts) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """(N, D) vectors, and the texts that fail, each with the reason."""
    try:
        return hard.vectors, []
    except MeasureError:
        broken = []
        for text, ids in zip(hard.texts, hard.ids, strict=True):
            try:
                hard.encoder.encode_ids([ids])
            except MeasureError as error:
                broken.append((text, one_line(error)))
        return np.empty((0, hard.encoder.checkpoint.dimension)), broken


def _usable(vectors: np.ndarray) -> Finding:
    lengths = np.linalg.norm(vectors, axis=1)
    if float(lengths.min()) == 0.0:
        zero = int((lengths == 0).sum())
        return ZERO_VECTOR.finding(
            "problem",
            f"{zero} of {len(vectors)} hard texts get a vector of length 0.",
            "Such vectors are near nothing, or near everything.",
            "Look at which tokens its pooling takes: of these texts it takes none, or their states cancel out.",
            value=float(zero),
        )
    return NOT_FINITE.finding("ok", f"All {len(vectors)} hard texts get finite vectors.", value=0.0)


def half_findings(exact: InFloat32, options: LoadOptions) -> list[Finding]:
    """Whether it runs in each half precision, one after another: none is in memory when this ends."""
    return [_half_finding(dtype, exact, options) for dtype in HALVES]


def _half_finding(dtype: str, exact: InFloat32, options: LoadOptions) -> Finding:
    is_declared = dtype == exact.declared
    try:
        half = load_checkpoint(exact.resolved, replace(options, dtype=dtype), is_kept=False, may_stay_in_files=True)
        found = Encoder(half).encode_ids(exact.ids)
    except MeasureError:
        return _overflows(dtype, is_declared=is_declared)
    except Exception as error:  # a kernel that this processor lacks
        if is_of_interrupt(error):
            raise
        sentence = f"It does not run in {dtype} here: {one_line(error)}"
        return HALF.finding("not measured", sentence, advice="Here, serve it in float32.", dtype=dtype)
    cosine = float(_cosines(exact.vectors, found).min())
    level: Level = "ok" if cosine >= HALF.look else "problem" if is_declared else "look"
    return HALF.finding(
        level,
        f"In {dtype} its vectors keep a cosine of at least {cosine:.5f} with float32.",
        f"Served in {dtype}, some texts get other neighbours.",
        "Serve it in float32.",
        dtype=dtype,
        value=cosine,
    )


def _overflows(dtype: str, *, is_declared: bool) -> Finding:
    return HALF.finding(
        "problem" if is_declared else "look",
        f"In {dtype} some texts get NaN or infinity"
        + (", and config.json declares that precision." if is_declared else "."),
        "Servers choose half precision on their own.",
        "Serve it in float32" + (" or bfloat16." if dtype == "float16" else "."),
        dtype=dtype,
    )


def _declared(checkpoint: Checkpoint) -> str:
    """The precision that config.json declares, in which servers run it."""
    config = read_object(checkpoint.resolved.folder / checkpoint.recipe.transformer_path / "config.json")
    return str(config.get("dtype") or config.get("torch_dtype") or "float32").removeprefix("torch.")


def _cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(N,) cosines of corresponding rows (N, D)."""
    dots = (first.astype(np.float64) * second).sum(1)
    lengths = np.linalg.norm(first, axis=1).astype(np.float64) * np.linalg.norm(second, axis=1)
    return dots / np.maximum(lengths, 1e-30)
