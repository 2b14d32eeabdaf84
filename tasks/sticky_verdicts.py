"""Sticky tokens as tasks, second half: validation in shards, effects, thresholds, verdicts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from prefect import task

from embaudit.profile import StickySettings
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import MEASURE, SCHEMAS, read_pairs, read_similarity, read_validation


@task(name="validate tokens", task_run_name="validate, shard {shard}", **CACHED)
def validate_shard(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    token_ids: list[int],
    settings: StickySettings,
    seed: int,
    shard: int,
    total: int,
    key: str,
    staging: str,
) -> Staged:
    """Similarities of candidates and controls on the validation pairs."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.validation import prepare_validation, validate_tokens
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    inputs = prepare_validation(
        encoder,
        read_pairs(pairs_path, "validation"),
        read_similarity(similarity_path)["u"],
        settings.copies,
        seed,
        rotate_operators=settings.rotate_operators,
    )
    shared = encoder.texts
    ids = np.array(token_ids, dtype=np.int64)
    with tracked("validate candidates and controls", len(ids) * len(inputs.points), of_all=total) as advance:
        after = validate_tokens(encoder, inputs, ids, settings.copies, seed, advance)
    points = [f"point_{index}" for index in range(after.shape[1])]
    path = staged_path(Path(staging), MEASURE, key, "validation")
    block = {"token_id": ids, **{name: after[:, index] for index, name in enumerate(points)}}
    rows = write_columns(path, [block], {"token_id": "int32", **dict.fromkeys(points, "float32")})
    # validate_tokens encodes the first sentences once more: they are no insertions.
    return Staged(
        table="validation",
        path=str(path),
        rows=rows,
        seconds=time.perf_counter() - started,
        encodes=encoder.texts - shared - len(inputs.pairs),
    )


@task(name="judge tokens", **CACHED)
def judge(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    scan: Staged,
    validation_paths: list[str],
    plan: dict[str, Any],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> list[Staged]:
    """Effects, intervals, thresholds and verdicts (tables ``sticky_validation`` and ``sticky_summary``).

    Args:
        plan: ``vocabulary_size``, ``eligible``, ``controls`` (ids) and ``encodes`` of the steps before.
    """
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.scores import PROTOCOLS
    from embaudit.sticky.validation import adaptive_thresholds, measure_effects, prepare_validation
    from embaudit.sticky.verdicts import summary_rows, validation_rows
    from embaudit.warehouse.stage import staged_path, write_rows

    similarity = read_similarity(similarity_path)
    inputs = prepare_validation(
        Encoder(checkpoint_of(spec)),
        read_pairs(pairs_path, "validation"),
        similarity["u"],
        settings.copies,
        seed,
        rotate_operators=settings.rotate_operators,
    )
    ids, after = read_validation(validation_paths)
    is_control = np.isin(ids, plan["controls"])
    effects = measure_effects(inputs, after, is_control, settings.resamples, seed)
    by_token = dict(zip(ids.tolist(), effects, strict=True))
    thresholds = adaptive_thresholds(
        {protocol: [by_token[token] for token in scan.detail["shortlists"][protocol]] for protocol in PROTOCOLS}
    )
    verdicts = validation_rows(ids, is_control, effects, thresholds, len(inputs.points), settings.basis)
    summary = summary_rows(
        verdicts,
        thresholds,
        shared={
            "u": similarity["u"],
            "u_ids": similarity["u_ids"],
            "u_input_embeddings": similarity["u_input_embeddings"],
            "vocabulary_size": plan["vocabulary_size"],
            "eligible": plan["eligible"],
            "scanned": scan.rows,
            "rungs": scan.detail["rungs"],
            "encodes": plan["encodes"],
            "scoring_pairs": plan["scoring_pairs"],
            "validation_pairs": len(inputs.pairs),
            "pairs_below_u": len(
                {pair for (pair, _), x in zip(inputs.points, inputs.before, strict=True) if x < inputs.u}
            ),
            "controls": int(is_control.sum()),
            "basis": settings.basis,
        },
        reliability=dict(zip(("definition", "retention"), scan.detail["reliability"], strict=True)),
    )
    staged = []
    for table, rows in (("sticky_validation", verdicts), ("sticky_summary", summary)):
        path = staged_path(Path(staging), MEASURE, key, table)
        staged.append(Staged(table=table, path=str(path), rows=write_rows(path, rows, SCHEMAS[table])))
    return staged
