"""Sticky tokens as steps, second half: validation in shards, early stopping, effects, thresholds, verdicts."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.intervals import resample_clusters
from embaudit.measures.sticky import MEASURE_VERSION
from embaudit.measures.sticky.effects import measure_effects, near_u
from embaudit.measures.sticky.scores import Protocol
from embaudit.measures.sticky.search import undecided_tokens
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickySummaryRow, StickyValidationRow
from embaudit.measures.sticky.validation import ValidationInputs, common_points, prepare_validation, validate_tokens
from embaudit.measures.sticky.verdicts import TokenEffects, common_thresholds, summary_rows, validation_rows
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, Staged, encoder_of
from embaudit_tasks.steps import Outputs, step
from embaudit_tasks.sticky_files import read_pairs, read_similarity, read_validation

# Every candidate gets the common points; the rest only those that could still be flagged, and the controls.
Part = Literal["common", "rest"]
# Which points there are, and which of them are common.
POINTS = ("copies", "rotate_operators", "search", "common_pairs")


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=("validation",),
    name="validate tokens",
    run_name="validate, {part} points, shard {shard}",
    not_in_key=("shard", "total"),
    reads=POINTS,
)
def validate_shard(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    similarity: Staged,
    token_ids: list[int],
    part: Part,
    settings: StickySettings,
    seed: int,
    shard: int,
    total: int,
) -> None:
    """Similarities of candidates and controls on one part of the validation points."""
    encoder = encoder_of(spec)
    inputs = _inputs(encoder, pairs, similarity, settings, seed)
    points = _points(inputs, settings, part)
    shared = encoder.texts
    ids = np.array(token_ids, dtype=np.int64)
    label = "validate candidates and controls" if part == "common" else "validate those that may be flagged"
    with tracked(label, len(ids) * len(points), of_all=total) as advance:
        after = validate_tokens(encoder, inputs.at(points), ids, settings.copies, seed, advance)
    names = [f"point_{point}" for point in points]
    block = {"token_id": ids, **{name: after[:, index] for index, name in enumerate(names)}}
    schema = {"token_id": "int32", **dict.fromkeys(names, "float32")}
    out.columns("validation", [block], schema, encodes=encoder.texts - shared)


@step("sticky", version=MEASURE_VERSION, tables=("undecided",), name="stop early", reads=(*POINTS, "resamples"))
def stop_early(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    similarity: Staged,
    shortlists: dict[Protocol, list[int]],
    controls: list[int],
    common: list[Staged],
    settings: StickySettings,
    seed: int,
) -> None:
    """The candidates that more pairs could still flag, or call moderate or strong; the others are done."""
    every = _inputs(encoder_of(spec), pairs, similarity, settings, seed)
    inputs = every.at(_points(every, settings, "common"))
    ids, after = read_validation(common)
    weights = resample_clusters(inputs.clusters, settings.resamples, seed)
    undecided = undecided_tokens(inputs, ids, after, shortlists, controls, weights)
    out.rows("undecided", [{"token_id": token} for token in undecided], {"token_id": "int32"})


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=(StickyValidationRow, StickySummaryRow),
    name="judge tokens",
    reads=(*POINTS, "resamples", "basis"),
)
def judge(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    similarity: Staged,
    scored: Staged,
    common: list[Staged],
    rest: list[Staged],
    plan: dict[str, Any],
    settings: StickySettings,
    seed: int,
) -> None:
    """Effects, intervals, thresholds and verdicts (tables ``sticky_validation`` and ``sticky_summary``).

    Args:
        plan: ``controls`` (ids) and the columns of the summary that earlier steps know.
    """
    baseline = read_similarity(similarity)
    inputs = _inputs(encoder_of(spec), pairs, similarity, settings, seed)
    common_at, rest_at = (_points(inputs, settings, part) for part in ("common", "rest"))
    ids, on_common = read_validation(common)
    controls, known = plan["controls"], {name: value for name, value in plan.items() if name != "controls"}

    def effects_of(tokens: np.ndarray, after: np.ndarray, points: np.ndarray) -> dict[int, Any]:
        found = measure_effects(inputs.at(points), after, np.isin(tokens, controls), settings.resamples, seed)
        return dict(zip(tokens.tolist(), found, strict=True))

    on_common_points = effects_of(ids, on_common, common_at)
    effects = on_common_points
    if rest:
        further, on_rest = read_validation(rest)
        order = np.argsort(np.concatenate([common_at, rest_at]), kind="stable")
        whole = np.concatenate([on_common[np.searchsorted(ids, further)], on_rest], axis=1)[:, order]
        effects = {**on_common_points, **effects_of(further, whole, np.arange(len(inputs.points)))}
    shortlists = scored.detail["shortlists"]
    thresholds = common_thresholds(shortlists, on_common_points)
    judged = TokenEffects(shortlists, frozenset(controls), effects, thresholds)
    before = near_u(inputs.before, inputs.u)
    summary = summary_rows(
        judged,
        shared={
            **{name: baseline[name] for name in ("u", "u_ids", "u_input_embeddings")},
            **known,
            "scanned": scored.rows,
            "rungs": scored.detail["rungs"],
            "validation_pairs": len(inputs.pairs),
            "pairs_below_u": len(
                {pair for (pair, _), x in zip(inputs.points, inputs.before, strict=True) if x < inputs.u}
            ),
            "controls": len(controls),
            "near_u_05_before": float(before[0]),
            "near_u_10_before": float(before[1]),
            "threshold_points": len(common_at),
            "validation_points": len(inputs.points),
            "basis": settings.basis,
        },
        scan=scored.detail,
    )
    out.rows(StickyValidationRow, validation_rows(judged, settings.basis))
    out.rows(StickySummaryRow, summary)


def _inputs(
    encoder: Encoder, pairs: Staged, similarity: Staged, settings: StickySettings, seed: int
) -> ValidationInputs:
    return prepare_validation(
        encoder,
        read_pairs(pairs, "validation"),
        read_similarity(similarity)["u"],
        settings.copies,
        seed,
        rotate_operators=settings.rotate_operators,
    )


def _points(inputs: ValidationInputs, settings: StickySettings, part: Part) -> np.ndarray:
    every = np.arange(len(inputs.points))
    if settings.search == "exhaustive":
        return every if part == "common" else every[:0]
    common = common_points(inputs, settings.common_pairs)
    return common if part == "common" else np.setdiff1d(every, common)
