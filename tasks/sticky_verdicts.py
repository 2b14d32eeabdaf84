"""Sticky tokens as tasks, second half: validation in shards, early stopping, effects, thresholds, verdicts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from prefect import task

from embaudit.measures.sticky.scores import Protocol
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickySummaryRow, StickyValidationRow
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import MEASURE, read_pairs, read_similarity, read_validation, stage

if TYPE_CHECKING:
    import numpy as np

    from embaudit.measures.sticky.validation import ValidationInputs

# Every candidate gets the common points; the rest only those that could still be flagged, and the controls.
Part = Literal["common", "rest"]


@task(name="validate tokens", task_run_name="validate, {part} points, shard {shard}", **CACHED)
def validate_shard(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    token_ids: list[int],
    part: Part,
    settings: StickySettings,
    seed: int,
    shard: int,
    total: int,
    key: str,
    staging: str,
) -> Staged:
    """Similarities of candidates and controls on one part of the validation points."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.validation import validate_tokens
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    inputs = _inputs(encoder, pairs_path, similarity_path, settings, seed)
    points = _points(inputs, settings, part)
    shared = encoder.texts
    ids = np.array(token_ids, dtype=np.int64)
    label = "validate candidates and controls" if part == "common" else "validate those that may be flagged"
    with tracked(label, len(ids) * len(points), of_all=total) as advance:
        after = validate_tokens(encoder, inputs.at(points), ids, settings.copies, seed, advance)
    names = [f"point_{point}" for point in points]
    path = staged_path(staging, MEASURE, key, "validation")
    block = {"token_id": ids, **{name: after[:, index] for index, name in enumerate(names)}}
    rows = write_columns(path, [block], {"token_id": "int32", **dict.fromkeys(names, "float32")})
    return Staged(
        table="validation",
        path=str(path),
        rows=rows,
        seconds=time.perf_counter() - started,
        encodes=encoder.texts - shared,
        detail={"points": len(points)},
    )


@task(name="stop early", **CACHED)
def stop_early(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    shortlists: dict[Protocol, list[int]],
    controls: list[int],
    common_paths: list[str],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The candidates that more pairs could still flag, or call moderate or strong; the others are done."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.effects import resample_clusters
    from embaudit.measures.sticky.search import undecided_tokens

    every = _inputs(Encoder(checkpoint_of(spec)), pairs_path, similarity_path, settings, seed)
    inputs = every.at(_points(every, settings, "common"))
    ids, after = read_validation(common_paths)
    weights = resample_clusters(inputs.clusters, settings.resamples, seed)
    undecided = undecided_tokens(inputs, ids, after, shortlists, controls, weights)
    return stage("undecided", [{"token_id": token} for token in undecided], {"token_id": "int32"}, key, staging)


@task(name="judge tokens", **CACHED)
def judge(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    scan: Staged,
    common_paths: list[str],
    rest_paths: list[str],
    plan: dict[str, Any],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> list[Staged]:
    """Effects, intervals, thresholds and verdicts (tables ``sticky_validation`` and ``sticky_summary``).

    Args:
        plan: ``controls`` (ids) and the columns of the summary that earlier steps know.
    """
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.effects import measure_effects, near_u
    from embaudit.measures.sticky.verdicts import Judged, common_thresholds, summary_rows, validation_rows

    similarity = read_similarity(similarity_path)
    inputs = _inputs(Encoder(checkpoint_of(spec)), pairs_path, similarity_path, settings, seed)
    common, rest = (_points(inputs, settings, part) for part in ("common", "rest"))
    ids, on_common = read_validation(common_paths)
    controls, known = plan["controls"], {name: value for name, value in plan.items() if name != "controls"}

    def effects_of(tokens: np.ndarray, after: np.ndarray, points: np.ndarray) -> dict[int, Any]:
        found = measure_effects(inputs.at(points), after, np.isin(tokens, controls), settings.resamples, seed)
        return dict(zip(tokens.tolist(), found, strict=True))

    on_common_points = effects_of(ids, on_common, common)
    effects = on_common_points
    if rest_paths:
        further, on_rest = read_validation(rest_paths)
        order = np.argsort(np.concatenate([common, rest]), kind="stable")
        whole = np.concatenate([on_common[np.searchsorted(ids, further)], on_rest], axis=1)[:, order]
        effects = {**on_common_points, **effects_of(further, whole, np.arange(len(inputs.points)))}
    shortlists = scan.detail["shortlists"]
    thresholds = common_thresholds(shortlists, on_common_points)
    judged = Judged(shortlists, frozenset(controls), effects, thresholds)
    before = near_u(inputs.before, inputs.u)
    summary = summary_rows(
        judged,
        shared={
            **{name: similarity[name] for name in ("u", "u_ids", "u_input_embeddings")},
            **known,
            "scanned": scan.rows,
            "rungs": scan.detail["rungs"],
            "validation_pairs": len(inputs.pairs),
            "pairs_below_u": len(
                {pair for (pair, _), x in zip(inputs.points, inputs.before, strict=True) if x < inputs.u}
            ),
            "controls": len(controls),
            "near_u_05_before": float(before[0]),
            "near_u_10_before": float(before[1]),
            "threshold_points": len(common),
            "validation_points": len(inputs.points),
            "basis": settings.basis,
        },
        scan=scan.detail,
    )
    verdicts = validation_rows(judged, settings.basis)
    return [
        stage("sticky_validation", verdicts, StickyValidationRow.table.schema, key, staging),
        stage("sticky_summary", summary, StickySummaryRow.table.schema, key, staging),
    ]


def _inputs(
    encoder: Any, pairs_path: str, similarity_path: str, settings: StickySettings, seed: int
) -> ValidationInputs:
    from embaudit.measures.sticky.validation import prepare_validation

    return prepare_validation(
        encoder,
        read_pairs(pairs_path, "validation"),
        read_similarity(similarity_path)["u"],
        settings.copies,
        seed,
        rotate_operators=settings.rotate_operators,
    )


def _points(inputs: ValidationInputs, settings: StickySettings, part: Part) -> np.ndarray:
    import numpy as np

    from embaudit.measures.sticky.validation import common_points

    every = np.arange(len(inputs.points))
    if settings.search == "exhaustive":
        return every if part == "common" else every[:0]
    common = common_points(inputs, settings.common_pairs)
    return common if part == "common" else np.setdiff1d(every, common)
