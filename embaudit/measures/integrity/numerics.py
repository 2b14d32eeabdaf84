"""Whether vectors are finite, and other than zero, in float32 and in the half precisions.

Hard texts of every kind with their vectors: encoded once, whoever asks.

Gains and biases that stand at their first values in a network that was trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, ResolvedCheckpoint, load_checkpoint
from embaudit.checkpoint.agreement import KINDS
from embaudit.checkpoint.files import read_object
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.declared.rule import Finding, Level, Rule, percent
from embaudit.measures.integrity.blocks import Block
from embaudit.words.errors import MeasureError, is_of_interrupt, one_line
from embaudit.words.sentences import first_of

if TYPE_CHECKING:
    import torch


class HardTexts:
    """The hard texts that have a token."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        texts = [text for some in KINDS.values() for text in some]
        return {text: ids for text, ids in zip(texts, self.encoder.tokenize(texts), strict=True) if ids}

    @property
    def texts(self) -> list[str]:
        return list(self._by_text)

    @property
    def ids(self) -> list[list[int]]:
        return list(self._by_text.values())

    @cached_property
    def vectors(self) -> np.ndarray:
        """(N, D) float32.

        Raises:
            MeasureError: if one is not finite; it is asked again whenever somebody else asks.
        """
        return self.encoder.encode_ids(self.ids)


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


# Of norms: from this share on, they were not left out of training on purpose.
MOST = 0.5
RULE = Rule(
    "reset_gains",
    look_if="gains of exactly 1 or biases of exactly 0 in norms that were trained otherwise, or whose neighbours "
    "were; vectors of one value in a few layers",
    problem_if=f"the gains of {percent(MOST)} of the norms",
    reason="training moves both; norms without biases, or untouched as a whole, are innocent",
)
# Standard deviation of a vector that training has moved; biases of keys stay at 0, or nearly.
MOVED = 1e-3


def vector_findings(checkpoint: Checkpoint, blocks: Sequence[Block]) -> list[Finding]:
    """Gains of norms that are all 1 beside trained biases, and vectors of a few layers that are constant; else none."""
    # Layers of random numbers are a finding of their own.
    fresh = tuple(f"{block.name}." for block in blocks if block.looks and 2 * len(block.noisy) >= len(block.looks))
    blocks = [block for block in blocks if not f"{block.name}.".startswith(fresh)] if fresh else blocks
    vectors = {
        name: tensor.detach()
        for name, tensor in checkpoint.model.named_parameters()
        if tensor.dim() == 1 and tensor.numel() > 1 and not name.startswith((*UNUSED_WEIGHTS, *fresh))
    }
    gains, biases, norms = _reset_norms(vectors)
    if gains or biases:
        reset = [f"the gains of {len(gains)} are all exactly 1"] if gains else []
        reset += [f"the biases of {len(biases)} are all exactly 0"] if biases else []
        return [
            RULE.finding(
                "problem" if len(gains) >= MOST * norms else "look",
                f"Of {norms} norms, {' and '.join(reset)}, though these or most others were trained: "
                f"{first_of([*gains, *biases])}.",
                meaning="Training moves both gains and biases. They were lost, or set back when the model was loaded "
                "and saved: names such as gamma that were not found do this.",
                advice="Compare these tensors with those of the checkpoint that this one was made from.",
                value=float(len(gains or biases)),
            )
        ]
    constant = _constant_in_few(blocks)
    if not constant:
        return []
    return [
        RULE.finding(
            "look",
            f"{len(constant)} gains or biases hold one value throughout, though other layers' were trained: "
            f"{first_of(constant)}.",
            meaning="They are as a new model has them: lost, or set back when the model was loaded and saved.",
            advice="Compare these tensors with those of the checkpoint that this one was made from.",
            value=float(len(constant)),
        )
    ]


def _reset_norms(vectors: Mapping[str, torch.Tensor]) -> tuple[list[str], list[str], int]:
    """Names of gains that are all 1, and of biases that are all 0, in norms that were trained; and how many norms."""
    norms = {
        gain: bias
        for gain in vectors
        if gain.endswith(".weight")
        and (bias := f"{gain.removesuffix('weight')}bias") in vectors
        and vectors[bias].shape == vectors[gain].shape
    }
    trained = {name for pair in norms.items() for name in pair if float(vectors[name].float().std()) > MOVED}
    most_gains = 2 * sum(gain in trained for gain in norms) > len(norms)
    most_biases = 2 * sum(bias in trained for bias in norms.values()) > len(norms)
    gains = [
        gain for gain, bias in norms.items() if (most_gains or bias in trained) and bool((vectors[gain] == 1).all())
    ]
    biases = [
        bias for gain, bias in norms.items() if (most_biases or gain in trained) and not bool(vectors[bias].any())
    ]
    return gains, biases, len(norms)


def _constant_in_few(blocks: Sequence[Block]) -> list[str]:
    """Names of vectors of one value in less than half of a stack's layers, while the others' have moved."""
    found = []
    for stack in {block.stack for block in blocks}:
        layers = [block for block in blocks if block.stack == stack]
        for name in [name for name, tensor in layers[0].tensors.items() if tensor.dim() == 1 and tensor.numel() > 1]:
            having = [block for block in layers if name in block.tensors]
            still = [block for block in having if bool((block.tensors[name] == block.tensors[name][0]).all())]
            moved = sum(float(block.tensors[name].float().std()) > MOVED for block in having)
            if still and moved == len(having) - len(still) > len(still):
                found += [f"{block.name}.{name}" for block in still]
    return sorted(found)
