"""Sticky tokens as tasks: pairs, the scan in shards, the shortlist, validation in shards, verdicts.

Files with similarities (``pairs``, ``scan``, ``validation``) are staged between the steps and not published;
``sticky_*`` are the tables.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import task

from embaudit.profile import StickySettings
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, Staged, by_key, checkpoint_of

if TYPE_CHECKING:
    import numpy as np

    from embaudit.sticky.pairs import SentencePair
    from embaudit.sticky.scan import ScanInputs

MEASURE = "sticky"
PAIR_SCHEMA = {
    "purpose": "string",
    "position": "int32",
    "first": "string",
    "second": "string",
    "similarity": "float64",
}


@task(name="choose pairs", cache_key_fn=by_key, persist_result=True, result_serializer="json")
def choose_pairs(
    spec: CheckpointSpec, corpus_path: str, settings: StickySettings, seed: int, key: str, staging: str
) -> Staged:
    """Stage the balanced scoring and validation pairs (table ``sticky_pair``)."""
    from embaudit.checkpoint import Encoder
    from embaudit.sticky.pairs import distinct_sentences, sample_pairs
    from embaudit.warehouse.stage import read_rows, staged_path, write_rows

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    texts = [row[side] for row in read_rows([corpus_path]) for side in ("first", "second")]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    with tracked("encode sentences", len(sentences)) as advance:
        vectors = encoder.encode_texts(sentences, advance)
    sample = sample_pairs(sentences, vectors, settings.scoring_pairs, settings.validation_pairs, seed)
    rows = [
        {"purpose": purpose, "position": position, "first": pair.first, "second": pair.second, "similarity": pair.similarity}
        for purpose, pairs in (("scoring", sample.scoring), ("validation", sample.validation))
        for position, pair in enumerate(pairs)
    ]
    path = staged_path(Path(staging), MEASURE, key, "sticky_pair")
    return Staged(
        table="sticky_pair",
        path=str(path),
        rows=write_rows(path, rows, PAIR_SCHEMA),
        seconds=time.perf_counter() - started,
        encodes=encoder.texts,
        detail={"scoring": len(sample.scoring), "validation": len(sample.validation)},
    )


@task(name="scan tokens", task_run_name="scan, draws {first_draw} to {last_draw}, shard {shard}", cache_key_fn=by_key, persist_result=True, result_serializer="json")
def scan_shard(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    token_ids: list[int],
    first_draw: int,
    last_draw: int,
    settings: StickySettings,
    seed: int,
    shard: int,
    total: int,
    key: str,
    staging: str,
) -> Staged:
    """Similarities of some tokens after draws ``first_draw`` up to (not with) ``last_draw``."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.scan import scan_tokens
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    inputs = _scan_inputs(encoder, pairs_path, similarity_path, settings, seed)
    shared = encoder.texts
    draws = range(first_draw, min(last_draw, len(inputs.draws)))
    ids = np.array(token_ids, dtype=np.int64)
    label = f"scan, {last_draw} draws a token" if last_draw > 1 else "scan, first draw"
    with tracked(label, len(ids) * len(draws), of_all=total) as advance:
        after = scan_tokens(encoder, inputs, ids, draws, advance)
    path = staged_path(Path(staging), MEASURE, key, "scan")
    anchors = [f"anchor_{index}" for index in range(after.shape[2])]
    blocks = (
        {
            "token_id": ids,
            "draw": np.full(len(ids), draw),
            **{name: after[:, place, anchor] for anchor, name in enumerate(anchors)},
        }
        for place, draw in enumerate(draws)
    )
    schema = {"token_id": "int32", "draw": "int32", **dict.fromkeys(anchors, "float32")}
    return Staged(
        table="scan",
        path=str(path),
        rows=write_columns(path, blocks, schema),
        seconds=time.perf_counter() - started,
        encodes=encoder.texts - shared,
    )


@task(name="narrow tokens", cache_key_fn=by_key, persist_result=True, result_serializer="json")
def narrow(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    scan_paths: list[str],
    keep: int,
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The tokens that the next rung looks at: the best of both protocols by turns."""
    from embaudit.checkpoint import Encoder
    from embaudit.sticky.scan import best_of_both, score_tokens
    from embaudit.warehouse.stage import staged_path, write_rows

    inputs = _scan_inputs(Encoder(checkpoint_of(spec)), pairs_path, similarity_path, settings, seed)
    ids, draws, after = _read_scan(scan_paths)
    kept = ids[best_of_both(score_tokens(inputs, draws, after), keep)]
    path = staged_path(Path(staging), MEASURE, key, "survivor")
    count = write_rows(path, [{"token_id": int(token_id)} for token_id in kept], {"token_id": "int32"})
    return Staged(table="survivor", path=str(path), rows=count)


@task(name="score tokens", cache_key_fn=by_key, persist_result=True, result_serializer="json")
def score(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    rungs: list[list[str]],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Score every scanned token from all its draws, rank them, and choose the candidates (table ``sticky_score``).

    Args:
        rungs: the scan files of each rung; later rungs hold later draws of fewer tokens.
    """
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.plan import choose_candidates, rank
    from embaudit.sticky.scan import score_tokens, split_half_reliability
    from embaudit.warehouse.stage import staged_path, write_rows

    inputs = _scan_inputs(Encoder(checkpoint_of(spec)), pairs_path, similarity_path, settings, seed)
    scored: dict[int, tuple[int, float, float]] = {}
    ids, draws, after = _read_scan(rungs[0])
    scanned = len(ids)
    counts = []
    for index in range(len(rungs)):
        if index > 0:
            later_ids, later_draws, later = _read_scan(rungs[index])
            held = np.searchsorted(ids, later_ids)
            ids, draws, after = later_ids, draws + later_draws, np.concatenate([after[held], later], axis=1)
        scores = score_tokens(inputs, draws, after)
        counts.append({"draws": len(draws), "tokens": len(ids)})
        scored |= {
            int(token): (len(draws), float(pull), float(slope))
            for token, pull, slope in zip(ids, scores.pull, scores.slope, strict=True)
        }
    candidates = set(choose_candidates(ids, scores, scanned, settings).tolist())
    reliability = split_half_reliability(inputs, draws, after)
    tokens = sorted(scored)
    spent, pulls, slopes = (np.array([scored[token][field] for token in tokens]) for field in range(3))
    pull_rank, slope_rank = rank(spent, pulls), rank(spent, -slopes)
    rows = [
        {
            "token_id": token,
            "draws": int(spent[i]),
            "pull": None if np.isnan(pulls[i]) else float(pulls[i]),
            "slope": None if np.isnan(slopes[i]) else float(slopes[i]),
            "pull_rank": int(pull_rank[i]),
            "slope_rank": int(slope_rank[i]),
            "is_candidate": token in candidates,
        }
        for i, token in enumerate(tokens)
    ]
    path = staged_path(Path(staging), MEASURE, key, "sticky_score")
    schema = {
        "token_id": "int32",
        "draws": "int32",
        "pull": "float64",
        "slope": "float64",
        "pull_rank": "int32",
        "slope_rank": "int32",
        "is_candidate": "bool",
    }
    return Staged(
        table="sticky_score",
        path=str(path),
        rows=write_rows(path, rows, schema),
        detail={
            "rungs": counts,
            "candidates": sorted(candidates),
            "reliability": [None if np.isnan(value) else value for value in reliability],
        },
    )


@task(name="validate tokens", task_run_name="validate, shard {shard}", cache_key_fn=by_key, persist_result=True, result_serializer="json")
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
        _pairs(pairs_path, "validation"),
        _u(similarity_path)["u"],
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


@task(name="judge tokens", cache_key_fn=by_key, persist_result=True, result_serializer="json")
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
    from embaudit.checkpoint import Encoder
    from embaudit.sticky.verdicts import summary_rows, validation_rows
    from embaudit.sticky.validation import adaptive_thresholds, measure_effects, prepare_validation
    from embaudit.warehouse.stage import staged_path, write_rows

    import numpy as np

    similarity = _u(similarity_path)
    inputs = prepare_validation(
        Encoder(checkpoint_of(spec)),
        _pairs(pairs_path, "validation"),
        similarity["u"],
        settings.copies,
        seed,
        rotate_operators=settings.rotate_operators,
    )
    ids, after = _read_validation(validation_paths)
    is_control = np.isin(ids, plan["controls"])
    effects = measure_effects(inputs, after, is_control, settings.resamples, seed)
    thresholds = adaptive_thresholds([effect for effect, control in zip(effects, is_control, strict=True) if not control])
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
            "pairs_below_u": len({pair for (pair, _), x in zip(inputs.points, inputs.before, strict=True) if x < inputs.u}),
            "controls": int(is_control.sum()),
            "basis": settings.basis,
        },
        reliability=dict(zip(("definition", "retention"), scan.detail["reliability"], strict=True)),
    )
    staged = []
    for table, rows in (("sticky_validation", verdicts), ("sticky_summary", summary)):
        path = staged_path(Path(staging), MEASURE, key, table)
        staged.append(Staged(table=table, path=str(path), rows=write_rows(path, rows, _SCHEMAS[table])))
    return staged


_FLOATS = (
    "rho rho_0 pull pull_low pull_high excess_pull slope slope_low slope_high loss loss_low loss_high "
    "focal_point focal_low focal_high"
).split()
_SCHEMAS = {
    "sticky_validation": {
        "token_id": "int32",
        "protocol": "string",
        "role": "string",
        "points": "int32",
        **dict.fromkeys(_FLOATS, "float64"),
        "sticks_to": "string",
        "severity": "string",
        "value": "float64",
        "threshold": "float64",
        "verdict": "string",
        "basis": "string",
    },
    "sticky_summary": {
        "protocol": "string",
        **dict.fromkeys(("u", "u_ids", "u_input_embeddings"), "float64"),
        **dict.fromkeys(("vocabulary_size", "eligible", "scanned"), "int32"),
        "rungs": "string",
        "encodes": "int64",
        "reliability": "float64",
        **dict.fromkeys(("scoring_pairs", "validation_pairs", "pairs_below_u", "candidates", "controls"), "int32"),
        **dict.fromkeys(("control_median", "threshold"), "float64"),
        "sticky": "int32",
        "basis": "string",
    },
}


def _scan_inputs(
    encoder: Any, pairs_path: str, similarity_path: str, settings: StickySettings, seed: int
) -> ScanInputs:
    from embaudit.sticky.scan import prepare_scan

    return prepare_scan(encoder, _pairs(pairs_path, "scoring"), _u(similarity_path)["u"], settings.copies, seed)


def _pairs(path: str, purpose: str) -> list[SentencePair]:
    from embaudit.sticky.pairs import SentencePair
    from embaudit.warehouse.stage import read_rows

    return [
        SentencePair(row["first"], row["second"], row["similarity"])
        for row in read_rows([path])
        if row["purpose"] == purpose
    ]


def _u(path: str) -> dict[str, float]:
    from embaudit.warehouse.stage import read_rows

    return read_rows([path])[0]


def _read_scan(paths: Sequence[str]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """(token ids ascending, draws, similarities (T, draws, anchors)) of one rung's files."""
    import numpy as np
    import pyarrow.parquet as pq

    frames = [pq.read_table(path).to_pandas() for path in paths]
    draws = sorted(int(draw) for draw in frames[0]["draw"].unique())
    anchors = [name for name in frames[0].columns if name.startswith("anchor_")]
    ids, parts = [], []
    for frame in frames:
        by_draw = frame.sort_values(["token_id", "draw"], kind="stable")
        ids.append(by_draw["token_id"].to_numpy()[:: len(draws)])
        parts.append(by_draw[anchors].to_numpy().reshape(-1, len(draws), len(anchors)))
    token_ids = np.concatenate(ids).astype(np.int64)
    order = np.argsort(token_ids, kind="stable")
    return token_ids[order], draws, np.concatenate(parts)[order]


def _read_validation(paths: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(token ids ascending, similarities (T, P))."""
    import numpy as np
    import pyarrow.parquet as pq

    frames = [pq.read_table(path).to_pandas() for path in paths]
    ids = np.concatenate([frame["token_id"].to_numpy() for frame in frames]).astype(np.int64)
    after = np.concatenate([frame.drop(columns="token_id").to_numpy() for frame in frames])
    order = np.argsort(ids, kind="stable")
    return ids[order], after[order]
