"""The search for sticky tokens as steps: the scan in shards, the order of draws, narrowing, the shortlists."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from embaudit.measures.sticky.plan import choose_shortlists
from embaudit.measures.sticky.scan import (
    MEASURE_VERSION,
    ScanInputs,
    ScanScores,
    prepare_scan,
    scan_tokens,
    score_tokens,
    split_half_reliability,
)
from embaudit.measures.sticky.search import Cut, keep_worst, would_survive
from embaudit.measures.sticky.search import order_draws as best_order
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyScoreRow
from embaudit.measures.sticky.tally import ScoreBoard, misses_of
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, Staged, encoder_of
from embaudit_tasks.steps import Outputs, step
from embaudit_tasks.sticky_files import join_rungs, read_pairs, read_scan, read_similarity

# Of lowest retention: whose origins and scripts are compared with the vocabulary's.
LOWEST_TOKENS = 100


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=("scan",),
    name="scan tokens",
    run_name="scan, draws {draws}, shard {shard}",
    not_in_key=("shard", "total"),
    reads=("copies",),
)
def scan_shard(
    out: Outputs,
    spec: CheckpointSpec,
    scan_dtype: str,
    pairs: Staged,
    similarity: Staged,
    token_ids: list[int],
    draws: list[int],
    settings: StickySettings,
    seed: int,
    shard: int,
    total: int,
) -> None:
    """Similarities of some tokens after some draws, in the precision of the scan."""
    inputs = _scan_inputs(spec, pairs, similarity, settings, seed)
    encoder = encoder_of(spec.model_copy(update={"dtype": scan_dtype}))
    ids = np.array(token_ids, dtype=np.int64)
    with tracked(f"scan, {_counted(draws)}", len(ids) * len(draws), of_all=total) as advance:
        after = scan_tokens(encoder, inputs, ids, draws, advance)
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
    out.columns("scan", blocks, schema, encodes=encoder.texts)


@step("sticky", version=MEASURE_VERSION, tables=("draw_order",), name="order draws", reads=("copies",))
def order_draws(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    similarity: Staged,
    pilot: list[Staged],
    settings: StickySettings,
    seed: int,
) -> None:
    """The order in which the search spends the draws, from the pilot that got them all."""
    _, _, after = read_scan(pilot)
    order = best_order(_scan_inputs(spec, pairs, similarity, settings, seed), after)
    rows = [{"position": position, "draw": draw} for position, draw in enumerate(order)]
    out.rows("draw_order", rows, detail={"order": order})


@step("sticky", version=MEASURE_VERSION, tables=("survivor",), name="narrow tokens", reads=("copies",))
def narrow(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    similarity: Staged,
    rungs: list[list[Staged]],
    keep: int,
    settings: StickySettings,
    seed: int,
) -> None:
    """The tokens that the next rung looks at: the worst by both protocols, by turns.

    Args:
        rungs: the scan files of each rung so far; later rungs hold other draws of fewer tokens.
    """
    inputs = _scan_inputs(spec, pairs, similarity, settings, seed)
    ids, draws, after = join_rungs(rungs)
    kept, cut = keep_worst(score_tokens(inputs, draws, after), keep)
    rows = [{"token_id": int(token_id)} for token_id in ids[kept]]
    passed = {"draws": len(draws), "pull": cut.pull, "slope": cut.slope}
    out.rows("survivor", rows, {"token_id": "int32"}, detail=passed)


@step("sticky", version=MEASURE_VERSION, tables=("precision",), name="compare precisions", reads=("copies",))
def compare_precisions(
    out: Outputs,
    spec: CheckpointSpec,
    scan_dtype: str,
    pairs: Staged,
    similarity: Staged,
    token_ids: list[int],
    settings: StickySettings,
    seed: int,
) -> None:
    """Spearman's rank correlation of the scores in the scan's precision and in float32, one draw a token."""
    inputs = _scan_inputs(spec, pairs, similarity, settings, seed)
    ids = np.array(token_ids, dtype=np.int64)
    encoders = [encoder_of(spec.model_copy(update={"dtype": dtype})) for dtype in (scan_dtype, "float32")]
    cheap, exact = (score_tokens(inputs, [0], scan_tokens(encoder, inputs, ids, [0])) for encoder in encoders)
    found = {
        "definition": float(spearmanr(cheap.pull, exact.pull).statistic),
        "retention": float(spearmanr(cheap.slope, exact.slope).statistic),
    }
    # Undefined for a single token, and for pull where the draw has no point below u.
    agreement = {protocol: value if np.isfinite(value) else None for protocol, value in found.items()}
    out.rows("precision", [agreement], dict.fromkeys(agreement, "float64"), detail=agreement)


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=(StickyScoreRow,),
    name="score tokens",
    reads=("copies", "shortlist_share", "longest_shortlist"),
)
def score(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    similarity: Staged,
    rungs: list[list[Staged]],
    pilot: list[Staged],
    order: list[int],
    cuts: list[dict[str, float | None]],
    settings: StickySettings,
    seed: int,
) -> None:
    """Score every scanned token from all its draws, rank them, and choose the candidates (table ``sticky_score``).

    Args:
        rungs: the scan files of each rung; later rungs hold other draws of fewer tokens.
        pilot: the files of the random tokens that got all draws; none in an exhaustive search.
        cuts: what each narrowing kept, to tell what it would have done to the pilot.
    """
    inputs = _scan_inputs(spec, pairs, similarity, settings, seed)
    board = ScoreBoard()
    for spent in range(1, len(rungs) + 1):
        ids, draws, after = join_rungs(rungs[:spent])
        scores = score_tokens(inputs, draws, after)
        board.add(ids, len(draws), scores)
    pilot_ids, survives = ids[:0], None
    if pilot:
        pilot_ids, pilot_draws, pilot_after = read_scan(pilot)
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
    unselected = pilot_after if pilot else after
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
    out.rows(StickyScoreRow, board.rows(shortlists), detail=detail)


def _scan_inputs(
    spec: CheckpointSpec, pairs: Staged, similarity: Staged, settings: StickySettings, seed: int
) -> ScanInputs:
    """Always in the audit's own precision: only the scan's many encodes may be cheaper."""
    scoring, u = read_pairs(pairs, "scoring"), read_similarity(similarity)["u"]
    return prepare_scan(encoder_of(spec), scoring, u, settings.copies, seed)


def _counted(draws: list[int]) -> str:
    return "one draw" if len(draws) == 1 else f"{len(draws)} draws"
