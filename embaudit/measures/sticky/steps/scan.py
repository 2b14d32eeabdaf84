"""The search for sticky tokens as steps: insertion in shards, prediction, narrowing, shortlists."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from embaudit.measures.sticky import MEASURE_VERSION
from embaudit.measures.sticky.baseline import input_embeddings
from embaudit.measures.sticky.moments import PROTOCOLS, Scores, insert_tokens
from embaudit.measures.sticky.moments import score as score_tokens
from embaudit.measures.sticky.plan import ScoreBoard, SearchFound, choose_shortlists, misses_of
from embaudit.measures.sticky.points import Points
from embaudit.measures.sticky.search import Cut, Stage, agreement, halves, keep_worst, reliability
from embaudit.measures.sticky.search import predict as predict_scores
from embaudit.measures.sticky.steps.files import (
    Purpose,
    Sample,
    TokenShard,
    join_stages,
    moment_columns,
    points_of,
    read_frame,
    read_moments,
)
from embaudit.measures.sticky.tables import StickyScoreRow
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step

# Number of tokens that retain least, for comparison with the vocabulary.
LOWEST_TOKENS = 100
SCORES = ("pull", "slope")


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=("moments",),
    name="insert tokens",
    run_name="{shard.label}, shard {shard.number}",
)
def insert_shard(
    out: Outputs,
    spec: CheckpointSpec,
    dtype: str,
    sample: Sample,
    purpose: Purpose,
    shard: TokenShard,
    draws: list[int],
) -> None:
    """Insert some tokens into some draws, and sum their similarities to the anchors.

    Args:
        dtype: precision of the many encodes; anchors and sentences without copies are encoded in the audit's own.
    """
    points = points_of(spec, sample, purpose)
    encoder = encoder_of(spec.model_copy(update={"dtype": dtype}))
    ids = np.array(shard.token_ids, dtype=np.int64)
    with tracked(shard.label, len(ids) * len(draws), of_all=shard.total) as advance:
        moments = insert_tokens(encoder, points, ids, draws, advance)
    blocks, schema = moment_columns(ids, draws, moments)
    out.columns("moments", blocks, schema, encodes=encoder.texts)


@step("sticky", version=MEASURE_VERSION, tables=("prediction",), name="predict from embeddings")
def predict(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    token_ids: list[int],
    pilot: list[Staged],
) -> None:
    """Predict the scores of every searched token from the pilot's scores and the input embeddings."""
    known_ids, draws, moments = read_moments(pilot)
    scores = score_tokens(points_of(spec, sample, "scoring").at(draws), moments)
    ids = np.array(token_ids, dtype=np.int64)
    of_all = predict_scores(input_embeddings(encoder_of(spec)), known_ids, scores, sample.seed)
    predicted = of_all.at(ids)
    found = {name: agreement(of_all.of(name)[known_ids], scores.of(name)) for name in PROTOCOLS}
    # Null if the pilot is too small to learn from, since NaN is not staged.
    columns = {name: [None if np.isnan(value) else value for value in getattr(predicted, name)] for name in SCORES}
    out.columns(
        "prediction",
        [{"token_id": ids, **columns}],
        {"token_id": "int32", "pull": "float64", "slope": "float64"},
        detail=lambda: {name: asdict(one) for name, one in found.items()},
    )


@step("sticky", version=MEASURE_VERSION, tables=("survivor",), name="narrow tokens")
def narrow(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    predicted: Staged,
    pilot: list[Staged],
    stages: list[list[Staged]],
    keep: int,
) -> None:
    """The tokens that go on to the next stage: the worst expected, two by retention for each one by definition.

    Args:
        stages: the files of each stage so far; later ones have other draws of fewer tokens.
    """
    points = points_of(spec, sample, "scoring")
    prediction = _Prediction(predicted)
    if stages:
        ids, draws, moments = join_stages(stages)
        drawn = score_tokens(points.at(draws), moments)
        expected = prediction.stage(points, pilot, draws).judge(prediction.of(ids), drawn)
    else:
        ids, draws = np.setdiff1d(prediction.token_ids, read_moments(pilot)[0]), []
        expected = prediction.of(ids)
    kept, cut = keep_worst(expected, keep)
    rows = [{"token_id": int(token_id)} for token_id in ids[kept]]
    out.rows("survivor", rows, {"token_id": "int32"}, detail={"draws": draws, **asdict(cut)})


@step("sticky", version=MEASURE_VERSION, tables=("precision",), name="compare precisions")
def compare_precisions(
    out: Outputs,
    spec: CheckpointSpec,
    dtype: str,
    sample: Sample,
    token_ids: list[int],
) -> None:
    """Spearman's rank correlation between scores in the scan's precision and in float32, on one draw."""
    points = points_of(spec, sample, "scoring")
    ids = np.array(token_ids, dtype=np.int64)
    encoders = [encoder_of(spec.model_copy(update={"dtype": one})) for one in (dtype, "float32")]
    cheap, exact = (score_tokens(points.at([0]), insert_tokens(one, points, ids, [0])) for one in encoders)
    # Undefined for a single token, and for pull if the draw has no point below u.
    found: dict[str, float | None] = {name: agreement(cheap.of(name), exact.of(name)).rho for name in PROTOCOLS}
    out.rows("precision", [found], dict.fromkeys(found, "float64"), detail=found)


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=(StickyScoreRow,),
    name="score tokens",
)
def score(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    predicted: Staged,
    pilot: list[Staged],
    stages: list[list[Staged]],
    cuts: list[dict[str, Any]],
    shortlist: int,
) -> None:
    """Score every scanned token from all its draws, rank them, and choose the candidates (table ``sticky_score``).

    Args:
        pilot: the files of the random tokens that got all draws.
        stages: the files of each stage; later ones have other draws of fewer tokens.
        cuts: the cut of each narrowing, to tell which pilot tokens would pass it; empty in an exhaustive search.
        shortlist: length of each protocol's shortlist.
    """
    points = points_of(spec, sample, "scoring")
    prediction = _Prediction(predicted)
    board = ScoreBoard()
    pilot_ids, every, pilot_moments = read_moments(pilot)
    scores = score_tokens(points.at(every), pilot_moments)
    board.add(pilot_ids, len(every), scores, is_pilot=True)
    ids, has_all = pilot_ids, scores
    for count in range(1, len(stages) + 1):
        found, draws, moments = join_stages(stages[:count])
        seen = score_tokens(points.at(draws), moments)
        board.add(found, len(draws), seen)
        if draws == every:
            ids = np.concatenate([pilot_ids, found])
            has_all = Scores(np.concatenate([scores.pull, seen.pull]), np.concatenate([scores.slope, seen.slope]))
    survives = None
    if cuts:
        survives = np.ones(len(pilot_ids), dtype=bool)
        for cut in cuts:
            expected = prediction.stage(points, pilot, cut["draws"]).of_pilot()
            survives &= Cut(cut["pull"], cut["slope"]).survivors(expected)
    shortlists = choose_shortlists(ids, has_all, shortlist)
    # Halves must have tokens that were not selected for their scores: the pilot.
    split = halves(points.at(every), pilot_moments, sample.seed)
    detail = SearchFound(
        rungs=board.rungs(),
        shortlists=shortlists,
        lowest=board.lowest_slopes(LOWEST_TOKENS),
        reliability={name: asdict(one) for name, one in reliability(split).items()},
        prediction=predicted.detail,
        misses=misses_of(shortlists, pilot_ids, survives),
        pilot_dropped=[] if survives is None else pilot_ids[~survives].tolist(),
    )
    out.rows(StickyScoreRow, board.rows(shortlists), detail=detail)


class _Prediction:
    """The scores predicted from the embeddings, by token."""

    def __init__(self, predicted: Staged) -> None:
        frame = read_frame(predicted)
        self.token_ids = frame["token_id"].to_numpy(np.int64)
        self._scores = Scores(*(frame[name].to_numpy(np.float64, na_value=np.nan) for name in SCORES))

    def of(self, token_ids: np.ndarray) -> Scores:
        return self._scores.at(np.searchsorted(self.token_ids, token_ids))

    def stage(self, points: Points, pilot: list[Staged], draws: list[int]) -> Stage:
        """The pilot's readings after some draws."""
        ids, every, moments = read_moments(pilot)
        drawn = score_tokens(points.at(draws), moments.at(slice(None), draws)) if draws else None
        return Stage(self.of(ids), drawn, score_tokens(points.at(every), moments))
