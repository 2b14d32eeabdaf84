"""Similarity by length under four conditions, to separate the possible causes of a rise.

The mean cosine over all pairs of texts in a length bin rises with length for several reasons. Natural long texts also
differ from short ones in topic and kind; mean pooling alone raises it (for i.i.d. tokens with mean m and covariance Σ,
cos ≈ ‖m‖²/(‖m‖² + tr Σ/n)); only the rest can be due to attention. So, in addition to natural texts, for one span of
each text:

    truncation         the span's first L tokens, encoded
    windows            the same tokens in windows of w, encoded separately and averaged: no attention across windows
    input_embeddings   the same tokens' input embeddings, averaged: no attention at all

at the lengths of the bins. (arXiv 2410.24200, §3; the controls are ours.) A control reproduces of the rise

    share explained = (rise of the control) / (rise of the curve)

between the same two bins. A share above 1 means that averaging alone would collapse more than the model does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.checkpoint.tokenizer import position_limit
from embaudit.measures.length import Condition, Rise
from embaudit.measures.length.spans import (
    LengthBin,
    MeanCosine,
    evenly,
    longest_common,
    mean_cosine,
    spans_of,
    windows_of,
)
from embaudit.statistics import jackknife_half_width
from embaudit.words.estimate import Estimate

CONTROLS: tuple[Condition, ...] = ("truncation", "windows", "input_embeddings")
CONDITIONS: tuple[Condition, ...] = ("natural", *CONTROLS)
# A model with 8 192 positions has 82 bins: encoding every span at each of them would cost forty times its length.
MAX_CONTROL_BINS = 8


@dataclass(frozen=True)
class BinValue:
    """One condition in one bin.

    Attributes:
        low, high: edges of the bin, without special tokens.
        length: mean length of its texts (natural), or the length they are cut to (controls).
        beyond_limit: whether it exceeds the checkpoint's configured limit, though there are positions for it.
    """

    condition: Condition
    low: int
    high: int
    length: float
    beyond_limit: bool
    cosine: MeanCosine


@dataclass(frozen=True)
class Limits:
    """Longest texts that are read, without special tokens.

    Attributes:
        configured: by the checkpoint as deployed.
        positions: by the size of the position table, without special tokens and the prompt; None if there is no table.
        read: by this measure.
    """

    configured: int
    positions: int | None
    read: int


def limits_of(encoder: Encoder, longest: int) -> Limits:
    """The limits of a checkpoint; ``longest`` applies if the position table is longer, or there is none."""
    checkpoint = encoder.checkpoint
    table = position_limit(checkpoint.model)
    positions = None if table is None else table - len(checkpoint.with_special_tokens([]))
    return Limits(checkpoint.content_limit, positions, min(longest, longest if positions is None else positions))


def natural_curve(
    encoder: Encoder,
    contents: Sequence[Sequence[int]],
    bins: Sequence[LengthBin],
    progress: Progress = no_progress,
) -> tuple[list[BinValue], np.ndarray]:
    """Whole texts by length bin; texts longer than the last bin are not on the curve.

    Args:
        contents: token ids of each text without special tokens, not truncated, none empty.

    Returns:
        The bins' values, and all texts' vectors, (N, D); longer texts are truncated.
    """
    lengths = np.array([len(ids) for ids in contents], dtype=np.int64)
    limit = bins[-1].high
    sequences = [encoder.checkpoint.with_special_tokens(ids[:limit]) for ids in contents]
    vectors = encoder.encode_ids(sequences, progress)
    values = []
    for one in bins:
        inside = (lengths >= one.low) & (lengths < one.high + (one is bins[-1]))
        length = float(lengths[inside].mean()) if inside.any() else float(one.length)
        values.append(_value("natural", encoder, one, length, mean_cosine(vectors[inside])))
    return values, vectors


def control_curves(
    encoder: Encoder,
    contents: Sequence[Sequence[int]],
    bins: Sequence[LengthBin],
    *,
    most_texts: int,
    window: int,
    seed: int,
    progress: Progress = no_progress,
) -> list[BinValue]:
    """Truncations, windows and input embeddings of the same spans at the bins' lengths.

    All lengths are measured on the same texts: the first ``most_texts`` that reach the longest length
    (``spans.longest_common``). Bins beyond it have no texts.
    """
    chosen = evenly(bins, MAX_CONTROL_BINS)
    longest = longest_common([len(ids) for ids in contents], [one.length for one in chosen])
    spans = [] if longest is None else spans_of(contents, longest, most_texts, seed)
    reached = [one for one in chosen if longest is not None and one.length <= longest]
    beyond = [one for one in chosen if one not in reached]
    averaged = _averaged_windows(encoder, spans, [one.length for one in reached], window, progress)
    values = []
    for one, windows in zip(reached, averaged, strict=True):
        cut = [span[: one.length] for span in spans]
        encoded = encoder.encode_ids([encoder.checkpoint.with_special_tokens(ids) for ids in cut], progress)
        for condition, vectors in zip(CONTROLS, (encoded, windows, _input_embeddings(encoder, cut)), strict=True):
            values.append(_value(condition, encoder, one, float(one.length), mean_cosine(vectors)))
    nothing = mean_cosine(np.empty((0, 1)))
    return [
        *values,
        *(_value(condition, encoder, one, float(one.length), nothing) for one in beyond for condition in CONTROLS),
    ]


def _averaged_windows(
    encoder: Encoder, spans: Sequence[list[int]], lengths: Sequence[int], window: int, progress: Progress
) -> list[np.ndarray]:
    """For each length, (N, D): the windows' vectors averaged by their tokens. Lengths share full windows."""
    pieces: dict[tuple[int, ...], int] = {}
    for span in spans:
        for length in lengths:
            for piece in windows_of(span[:length], window):
                pieces.setdefault(tuple(piece), len(pieces))
    encoded = encoder.encode_ids([encoder.checkpoint.with_special_tokens(piece) for piece in pieces], progress)
    averaged = []
    for length in lengths:
        rows = []
        for span in spans:
            parts = windows_of(span[:length], window)
            weights = np.array([len(piece) for piece in parts], dtype=np.float64)
            vectors = encoded[[pieces[tuple(piece)] for piece in parts]].astype(np.float64)
            rows.append(weights @ vectors / weights.sum())
        averaged.append(np.array(rows).reshape(len(spans), encoder.checkpoint.dimension))
    return averaged


def _input_embeddings(encoder: Encoder, spans: Sequence[list[int]]) -> np.ndarray:
    """(N, d) float64: the mean input embedding of each span."""
    table = encoder.checkpoint.model.get_input_embeddings().weight.detach()
    return np.stack([table[span].double().mean(dim=0).cpu().numpy() for span in spans])


def _value(condition: Condition, encoder: Encoder, one: LengthBin, length: float, cosine: MeanCosine) -> BinValue:
    beyond = length > encoder.checkpoint.content_limit
    return BinValue(condition, one.low, one.high, length, beyond, cosine)


# Below this rise, shares are meaningless.
MIN_RISE = 0.01


def rises(values: Iterable[BinValue]) -> list[Rise]:
    """The rises of the four conditions, in the order of CONDITIONS."""
    by_condition: dict[Condition, dict[int, BinValue]] = {name: {} for name in CONDITIONS}
    for value in values:
        if value.cosine.mean is not None:
            by_condition[value.condition][value.low] = value
    natural, truncation = by_condition["natural"], by_condition["truncation"]
    found = []
    for name, curve in by_condition.items():
        ends = _ends(curve, curve)
        first, last = (curve[low] for low in ends) if ends else (None, None)
        of_natural = Estimate() if name == "natural" else _share(curve, natural)
        of_truncation = Estimate() if name in ("natural", "truncation") else _share(curve, truncation)
        found.append(
            Rise(
                condition=name,
                first_length=first.length if first else None,
                last_length=last.length if last else None,
                first_cosine=first.cosine.mean if first else None,
                last_cosine=last.cosine.mean if last else None,
                rise=_mean(curve, ends[1]) - _mean(curve, ends[0]) if ends else None,
                share_of_natural=of_natural.value,
                **of_truncation.columns("share_of_truncation"),
            )
        )
    return found


def _ends(curve: dict[int, BinValue], other: dict[int, BinValue]) -> tuple[int, int] | None:
    """The first and the last bin that both curves have; None if there are fewer than two."""
    both = sorted(set(curve) & set(other))
    return (both[0], both[-1]) if len(both) > 1 else None


def _share(control: dict[int, BinValue], curve: dict[int, BinValue]) -> Estimate:
    ends = _ends(control, curve)
    if ends is None:
        return Estimate(None)
    part, whole = (_mean(values, ends[1]) - _mean(values, ends[0]) for values in (control, curve))
    if whole < MIN_RISE:
        return Estimate(None)
    share = part / whole
    four = [values[low].cosine.without for values in (control, curve) for low in ends]
    same_texts = "natural" not in {value.condition for value in curve.values()}
    if not same_texts or min(map(len, four)) == 0:
        return Estimate(share)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (four[1] - four[0]) / (four[3] - four[2])
    return Estimate.around(share, jackknife_half_width(without))


def _mean(values: dict[int, BinValue], low: int) -> float:
    mean = values[low].cosine.mean
    assert mean is not None  # only bins with a mean are kept
    return mean
