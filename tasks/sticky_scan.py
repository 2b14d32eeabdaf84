"""The search for sticky tokens as tasks: the scan in shards, the order of draws, narrowing, the shortlists."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prefect import task

from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyScoreRow
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import (
    MEASURE,
    join_rungs,
    read_pairs,
    read_scan,
    read_similarity,
    stage,
)

if TYPE_CHECKING:
    from embaudit.measures.sticky.scan import ScanInputs

# Of lowest retention: whose origins and scripts are compared with the vocabulary's.
LOWEST_TOKENS = 100


@task(name="scan tokens", task_run_name="scan, draws {draws}, shard {shard}", **CACHED)
def scan_shard(
    spec: CheckpointSpec,
    scan_dtype: str,
    pairs_path: str,
    similarity_path: str,
    token_ids: list[int],
    draws: list[int],
    settings: StickySettings,
    seed: int,
    shard: int,
    total: int,
    key: str,
    staging: str,
) -> Staged:
    """Similarities of some tokens after some draws, in the precision of the scan."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.scan import scan_tokens
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    encoder = Encoder(checkpoint_of(spec.model_copy(update={"dtype": scan_dtype})))
    ids = np.array(token_ids, dtype=np.int64)
    with tracked(f"scan, {_counted(draws)}", len(ids) * len(draws), of_all=total) as advance:
        after = scan_tokens(encoder, inputs, ids, draws, advance)
    path = staged_path(staging, MEASURE, key, "scan")
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
        encodes=encoder.texts,
        detail={"draws": len(draws)},
    )


@task(name="order draws", **CACHED)
def order_draws(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    pilot_paths: list[str],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The order in which the search spends the draws, from the pilot that got them all."""
    from embaudit.measures.sticky.search import order_draws as ordered

    _, _, after = read_scan(pilot_paths)
    order = ordered(_scan_inputs(spec, pairs_path, similarity_path, settings, seed), after)
    rows = [{"position": position, "draw": draw} for position, draw in enumerate(order)]
    return stage("draw_order", rows, None, key, staging, detail={"order": order})


@task(name="narrow tokens", **CACHED)
def narrow(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    rungs: list[list[str]],
    keep: int,
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The tokens that the next rung looks at: the worst by both protocols, by turns.

    Args:
        rungs: the scan files of each rung so far; later rungs hold other draws of fewer tokens.
    """
    from embaudit.measures.sticky.scan import score_tokens
    from embaudit.measures.sticky.search import keep_worst

    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    ids, draws, after = join_rungs(rungs)
    kept, cut = keep_worst(score_tokens(inputs, draws, after), keep)
    rows = [{"token_id": int(token_id)} for token_id in ids[kept]]
    passed = {"draws": len(draws), "pull": cut.pull, "slope": cut.slope}
    return stage("survivor", rows, {"token_id": "int32"}, key, staging, detail=passed)


@task(name="compare precisions", **CACHED)
def compare_precisions(
    spec: CheckpointSpec,
    scan_dtype: str,
    pairs_path: str,
    similarity_path: str,
    token_ids: list[int],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Spearman's rank correlation of the scores in the scan's precision and in float32, one draw a token."""
    import numpy as np
    from scipy.stats import spearmanr

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.scan import scan_tokens, score_tokens

    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    ids = np.array(token_ids, dtype=np.int64)
    encoders = [Encoder(checkpoint_of(spec.model_copy(update={"dtype": dtype}))) for dtype in (scan_dtype, "float32")]
    cheap, exact = (score_tokens(inputs, [0], scan_tokens(encoder, inputs, ids, [0])) for encoder in encoders)
    found = {
        "definition": float(spearmanr(cheap.pull, exact.pull).statistic),
        "retention": float(spearmanr(cheap.slope, exact.slope).statistic),
    }
    # Undefined for a single token, and for pull where the draw has no point below u.
    agreement = {protocol: value if np.isfinite(value) else None for protocol, value in found.items()}
    return stage("precision", [agreement], dict.fromkeys(agreement, "float64"), key, staging, detail=agreement)


@task(name="score tokens", **CACHED)
def score(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    rungs: list[list[str]],
    pilot_paths: list[str],
    order: list[int],
    cuts: list[dict[str, float | None]],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Score every scanned token from all its draws, rank them, and choose the candidates (table ``sticky_score``).

    Args:
        rungs: the scan files of each rung; later rungs hold other draws of fewer tokens.
        pilot_paths: the files of the random tokens that got all draws; none in an exhaustive search.
        cuts: what each narrowing kept, to tell what it would have done to the pilot.
    """
    import numpy as np

    from embaudit.measures.sticky.plan import choose_shortlists
    from embaudit.measures.sticky.scan import ScanScores, score_tokens, split_half_reliability
    from embaudit.measures.sticky.search import Cut, would_survive
    from embaudit.measures.sticky.tally import ScoreBoard, misses_of

    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    board = ScoreBoard()
    for spent in range(1, len(rungs) + 1):
        ids, draws, after = join_rungs(rungs[:spent])
        scores = score_tokens(inputs, draws, after)
        board.add(ids, len(draws), scores)
    pilot_ids, survives = ids[:0], None
    if pilot_paths:
        pilot_ids, pilot_draws, pilot_after = read_scan(pilot_paths)
        pilot_scores = score_tokens(inputs, pilot_draws, pilot_after)
        board.add(pilot_ids, len(pilot_draws), pilot_scores, is_pilot=True)
        passed = [(int(cut["draws"] or 0), Cut(cut["pull"], cut["slope"])) for cut in cuts]
        survives = would_survive(inputs, pilot_after, order, passed)
        ids, after = np.concatenate([ids, pilot_ids]), np.concatenate([after, pilot_after])
        scores = ScanScores(
            np.concatenate([scores.pull, pilot_scores.pull]), np.concatenate([scores.slope, pilot_scores.slope])
        )
    shortlists = choose_shortlists(ids, scores, board.tokens, settings)
    # The split needs tokens that were not selected for their scores: the pilot, where there is one.
    unselected = pilot_after if pilot_paths else after
    reliability = split_half_reliability(inputs, sorted(order), unselected)
    detail = {
        "rungs": board.rungs(),
        "shortlists": shortlists,
        "lowest": board.lowest_slopes(LOWEST_TOKENS),
        "reliability": {
            protocol: None if np.isnan(value) else value
            for protocol, value in zip(("definition", "retention"), reliability, strict=True)
        },
        "misses": misses_of(shortlists, pilot_ids, survives),
    }
    return stage("sticky_score", board.rows(shortlists), StickyScoreRow.table.schema, key, staging, detail=detail)


def _scan_inputs(
    spec: CheckpointSpec, pairs_path: str, similarity_path: str, settings: StickySettings, seed: int
) -> ScanInputs:
    """Always in the audit's own precision: only the scan's many encodes may be cheaper."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.scan import prepare_scan

    pairs, u = read_pairs(pairs_path, "scoring"), read_similarity(similarity_path)["u"]
    return prepare_scan(Encoder(checkpoint_of(spec)), pairs, u, settings.copies, seed)


def _counted(draws: list[int]) -> str:
    return "one draw" if len(draws) == 1 else f"{len(draws)} draws"
