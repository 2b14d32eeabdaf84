"""Sticky tokens as tasks, first half: pairs, the scan in shards, narrowing, the shortlists."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import task

from embaudit.profile import StickySettings
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import MEASURE, PAIR_SCHEMA, SCORE_SCHEMA, read_pairs, read_scan, read_similarity

if TYPE_CHECKING:
    from embaudit.checkpoint import Encoder
    from embaudit.sticky.scan import ScanInputs


@task(name="choose pairs", **CACHED)
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
        {
            "purpose": purpose,
            "position": position,
            "first": pair.first,
            "second": pair.second,
            "similarity": pair.similarity,
        }
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


@task(name="scan tokens", task_run_name="scan, draws {first_draw} to {last_draw}, shard {shard}", **CACHED)
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


@task(name="narrow tokens", **CACHED)
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
    ids, draws, after = read_scan(scan_paths)
    kept = ids[best_of_both(score_tokens(inputs, draws, after), keep)]
    path = staged_path(Path(staging), MEASURE, key, "survivor")
    count = write_rows(path, [{"token_id": int(token_id)} for token_id in kept], {"token_id": "int32"})
    return Staged(table="survivor", path=str(path), rows=count)


@task(name="score tokens", **CACHED)
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
    from embaudit.sticky.plan import choose_shortlists, rank
    from embaudit.sticky.scan import score_tokens, split_half_reliability
    from embaudit.warehouse.stage import staged_path, write_rows

    inputs = _scan_inputs(Encoder(checkpoint_of(spec)), pairs_path, similarity_path, settings, seed)
    scored: dict[int, tuple[int, float, float]] = {}
    ids, draws, after = read_scan(rungs[0])
    scanned = len(ids)
    counts = []
    for index in range(len(rungs)):
        if index > 0:
            later_ids, later_draws, later = read_scan(rungs[index])
            held = np.searchsorted(ids, later_ids)
            ids, draws, after = later_ids, draws + later_draws, np.concatenate([after[held], later], axis=1)
        scores = score_tokens(inputs, draws, after)
        counts.append({"draws": len(draws), "tokens": len(ids)})
        scored |= {
            int(token): (len(draws), float(pull), float(slope))
            for token, pull, slope in zip(ids, scores.pull, scores.slope, strict=True)
        }
    shortlists = choose_shortlists(ids, scores, scanned, settings)
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
            "shortlisted_by": "+".join(name for name, listed in shortlists.items() if token in listed) or None,
        }
        for i, token in enumerate(tokens)
    ]
    path = staged_path(Path(staging), MEASURE, key, "sticky_score")
    return Staged(
        table="sticky_score",
        path=str(path),
        rows=write_rows(path, rows, SCORE_SCHEMA),
        detail={
            "rungs": counts,
            "shortlists": shortlists,
            "reliability": [None if np.isnan(value) else value for value in reliability],
        },
    )


def _scan_inputs(
    encoder: Encoder, pairs_path: str, similarity_path: str, settings: StickySettings, seed: int
) -> ScanInputs:
    from embaudit.sticky.scan import prepare_scan

    return prepare_scan(
        encoder, read_pairs(pairs_path, "scoring"), read_similarity(similarity_path)["u"], settings.copies, seed
    )
