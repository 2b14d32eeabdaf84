"""Tasks of a remedy: their texts, documents in pieces, baselines by hand, clusters, and a τ for each layer or head."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import v_measure_score

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.corpora.downstream.labelled import Classification, Clustering, v_measures
from embaudit.corpora.downstream.material import LabelledTexts, pick_graded, pick_judged, pick_labelled
from embaudit.measures.tempscale.compare import (
    MAX_SWEEPS,
    Found,
    Taus,
    average_pieces,
    compare,
    descend,
    fitted_baselines,
    pieces_of,
    report,
)
from embaudit.measures.tempscale.steps.temperatures import _averaged, content_limit
from embaudit.remedies.mitigation import Centring, Whitening
from embaudit.words.errors import NotMeasurable

LABELLED = [(f"text {i}", "ab"[i % 2]) for i in range(60)]


def test_one_class_is_no_classification() -> None:
    with pytest.raises(NotMeasurable, match="1 class among 30"):
        pick_labelled([(text, "a") for text, _ in LABELLED[:30]], 1_000, 5, 0)


def test_texts_without_labels_are_no_classification() -> None:
    with pytest.raises(NotMeasurable, match="none of its texts has a label"):
        pick_labelled([("a text", None)], 1_000, 5, 0)


def test_a_class_with_fewer_members_than_folds_is_left_out_and_named() -> None:
    found = pick_labelled([*LABELLED, *((f"rare {i}", "c") for i in range(9))], 1_000, 5, 0)
    assert found.left_out == ("c",)
    assert set(found.labels) == {"a", "b"}
    with pytest.raises(NotMeasurable, match="1 of them with at least 10"):
        pick_labelled([*LABELLED[::2], *((f"rare {i}", "c") for i in range(9))], 1_000, 5, 0)


def test_texts_are_drawn_by_content_and_seed() -> None:
    found = pick_labelled(LABELLED, 40, 5, 0)
    assert pick_labelled(LABELLED[::-1], 40, 5, 0) == found
    assert set(pick_labelled(LABELLED, 40, 5, 1).texts) != set(found.texts)
    assert len(found.texts) == 40
    assert dict(LABELLED)[found.texts[7]] == found.labels[7]


def test_relevant_documents_come_first_and_keep_their_queries() -> None:
    documents = [f"d{i}" for i in range(50)]
    queries = [(f"q{i}", {i: 1.0, 49 - i: 2.0}) for i in range(10)]
    judged = pick_judged(documents, queries, 14, 5, 0)
    assert len(judged.queries) == 5
    assert len(judged.documents) == 14
    for query, relevant in zip(judged.queries, judged.relevant, strict=True):
        number = int(query[1:])
        assert {judged.documents[place]: grade for place, grade in relevant.items()} == {
            f"d{number}": 1.0,
            f"d{49 - number}": 2.0,
        }
    # The relevant ones stay even where they are more than asked for.
    assert len(pick_judged(documents, queries, 2, 10, 0).documents) == 20


def test_a_handful_of_queries_is_no_retrieval() -> None:
    with pytest.raises(NotMeasurable, match="too few"):
        pick_judged(["d", "e"], [("q", {0: 1.0})] * 3, 10, 10, 0)
    with pytest.raises(NotMeasurable, match="too few"):
        pick_judged(["d"], [(f"q{i}", {0: 1.0}) for i in range(9)], 10, 10, 0)


def test_pairs_without_scores_or_with_one_score_are_no_sts() -> None:
    pairs = [(f"a{i}", f"b{i}", float(i)) for i in range(8)]
    assert len(pick_graded([*pairs, ("x", "y", None)], 100, 0).scores) == 8
    with pytest.raises(NotMeasurable):
        pick_graded([(first, second, None) for first, second, _ in pairs], 100, 0)
    with pytest.raises(NotMeasurable, match="all have the same score"):
        pick_graded([(first, second, 3.0) for first, second, _ in pairs], 100, 0)


# ---- documents in pieces ----


def test_pieces_averaged_are_each_encoded_alone(tiny: Checkpoint) -> None:
    words = [["river", "stone", "song"][i % 3] for i in range(150)]
    texts = ["old town", " ".join(words)]
    found = _averaged(Encoder(tiny), texts, lambda _: None)
    # 62 tokens fit between [CLS] and [SEP]: two pieces of 62 words and one of 26.
    pieces = [" ".join(words[start : start + 62]) for start in (0, 62, 124)]
    alone = Encoder(tiny).encode_texts(pieces).astype(np.float64)
    assert found[1] == pytest.approx((62 * alone[0] + 62 * alone[1] + 26 * alone[2]) / 150, abs=1e-6)
    assert found[0] == pytest.approx(Encoder(tiny).encode_texts(["old town"])[0], abs=1e-6)


def test_documents_are_read_as_served_or_up_to_the_position_table(tiny: Checkpoint, tmp_path: Path) -> None:
    assert content_limit(tiny, "limit") == 62
    assert content_limit(tiny, "positions") == 126


# ---- baselines ----


FITTED = np.random.default_rng(1).normal(size=(200, 6)) @ np.random.default_rng(2).normal(size=(6, 6)) + 3.0
OTHERS = np.random.default_rng(3).normal(size=(5, 6))


def test_whitening_makes_the_covariance_of_what_it_was_fitted_on_the_identity() -> None:
    whitened = Whitening(FITTED)(FITTED)
    assert np.cov(whitened, rowvar=False) == pytest.approx(np.eye(6), abs=1e-10)
    assert whitened.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-12)


def test_whitening_is_mahalanobis_distance() -> None:
    """Whatever the rotation, products are those of (v - mean) C^-1 (w - mean)."""
    whitened, gap = Whitening(FITTED)(OTHERS), OTHERS - FITTED.mean(axis=0)
    expected = gap @ np.linalg.inv(np.cov(FITTED, rowvar=False)) @ gap.T
    assert whitened @ whitened.T == pytest.approx(expected, rel=1e-9)


def test_fewer_texts_than_dimensions_whiten_the_directions_that_they_have() -> None:
    whitening = Whitening(FITTED[:4])
    assert whitening.directions == 3
    assert np.cov(whitening(FITTED[:4]), rowvar=False) == pytest.approx(np.eye(3), abs=1e-9)
    assert np.abs(whitening(OTHERS)).max() < 1e6


def test_centring_leaves_a_mean_of_zero() -> None:
    assert Centring(FITTED)(FITTED).mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-12)
    assert Centring(FITTED)(OTHERS) == pytest.approx(OTHERS - FITTED.mean(axis=0), abs=1e-12)


@pytest.mark.parametrize("kind", [Centring, Whitening])
@pytest.mark.parametrize("size", [0, 1])
def test_one_vector_fits_nothing(kind: type, size: int) -> None:
    with pytest.raises(NotMeasurable, match="too few"):
        kind(FITTED[:size])


def test_vectors_that_are_all_alike_cannot_be_whitened() -> None:
    with pytest.raises(NotMeasurable, match="are equal"):
        Whitening(np.ones((9, 4)))
    assert set(fitted_baselines({"text": np.ones((9, 4))}, {"text": np.ones(9, dtype=bool)})) == {"centring"}


def test_a_baseline_never_sees_the_half_that_is_reported() -> None:
    mask = np.arange(200) < 100
    before = fitted_baselines({"document": FITTED, "query": OTHERS}, {"document": mask})
    changed = FITTED.copy()
    changed[~mask] *= 100
    after = fitted_baselines({"document": changed, "query": OTHERS}, {"document": mask})
    for name in ("whitening", "centring"):
        assert (after[name]["query"] == before[name]["query"]).all()
        assert (after[name]["document"][mask] == before[name]["document"][mask]).all()


def test_pieces_and_their_average() -> None:
    assert pieces_of([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert pieces_of([1, 2], 2) == [[1, 2]]
    assert pieces_of([], 2) == [[]]
    vectors = np.array([[1.0, 0], [0, 1], [4, 4], [0, 2]])
    averaged = average_pieces(vectors, np.array([0, 0, 1, 0]), np.array([2.0, 2, 5, 1]))
    assert averaged.tolist() == [[0.4, 0.8], [4, 4]]


# ---- clusters ----


TEXTS, LABELS = tuple(f"text {i}" for i in range(60)), tuple("abc"[i % 3] for i in range(60))


def a_task(starts: int = 4, labels: tuple[str, ...] = LABELS) -> Clustering:
    return Clustering(LabelledTexts(TEXTS, labels), np.ones(60), starts=starts, seed=0, in_halves=True)


def vectors(distance: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Of each class around a direction of its own, ``distance`` noises long."""
    noise = np.random.default_rng(seed).normal(size=(60, 8))
    return {"text": noise + distance * np.eye(8)[["abc".index(label) for label in LABELS]]}


@given(seed=st.integers(0, 100), n=st.integers(1, 20), classes=st.integers(1, 4), clusters=st.integers(1, 5))
def test_a_resample_is_the_texts_that_often(seed: int, n: int, classes: int, clusters: int) -> None:
    generator = np.random.default_rng(seed)
    labels, found = generator.integers(0, classes, n), generator.integers(0, clusters, n)
    weights = generator.multinomial(n, np.full(n, 1 / n), size=5)
    expected = [v_measure_score(np.repeat(labels, one), np.repeat(found, one)) for one in weights]
    assert v_measures(labels, found, weights) == pytest.approx(expected, abs=1e-9)


def test_each_half_is_clustered_alone() -> None:
    task, given_ = a_task(), vectors(2.0)
    outcomes = task.outcomes(given_)
    assert [int(task.items.is_report[np.array(LABELS) == one].sum()) for one in "abc"] == [10, 10, 10]
    assert (task.fitted_on["text"] == ~task.items.is_report).all()
    for half in (task.items.is_report, ~task.items.is_report):
        rows = given_["text"][half] / np.linalg.norm(given_["text"][half], axis=1, keepdims=True)
        for start in range(4):
            expected = KMeans(3, n_init=1, random_state=start).fit(rows).labels_
            assert (outcomes[half, start] == expected).all()
        wanted = [v_measure_score(np.array(LABELS)[half], outcomes[half, start]) for start in range(4)]
        assert task.score(outcomes, half) == pytest.approx(np.mean(wanted))


def test_a_real_gain_has_an_interval_above_0_and_other_noise_has_not() -> None:
    task = a_task()
    report = task.items.is_report
    near, far, other = (task.outcomes(vectors(*one)) for one in ((1.0, 0), (9.0, 0), (1.0, 5)))
    gain = task.interval(near, far, report, 300, 0)
    assert gain is not None
    assert 0.1 < gain[0] < (task.score(far, report) or 0) - (task.score(near, report) or 0) < gain[1]
    assert task.interval(near, far, report, 300, 0) == gain
    noise = task.interval(near, other, report, 300, 0)
    assert noise is not None
    assert noise[0] < 0 < noise[1]
    assert task.interval(near, near.copy(), report, 300, 0) is None


def test_starts_are_in_the_interval() -> None:
    """Of the same texts: where starts disagree, the mean of a few of them is not certain."""
    task = a_task(starts=2)
    report = task.items.is_report
    labels = task.labels
    poor = np.zeros_like(labels)
    before, mixed = np.stack([poor, poor], axis=1), np.stack([labels, poor], axis=1)
    assert task.interval(before, mixed, report, 300, 0) == pytest.approx((0, 1), abs=1e-9)
    # With as many starts as agree, nothing is left but 1.
    assert task.score(np.stack([labels, labels], axis=1), report) == 1


def test_too_little_has_no_score_and_no_interval() -> None:
    task = a_task()
    outcomes = task.outcomes(vectors(2.0))
    one_class = np.array(LABELS) == "a"
    assert task.score(outcomes, one_class) is None
    few = np.flatnonzero(task.items.is_report)[:9]
    assert task.interval(outcomes, outcomes[::-1], few, 100, 0) is None


# ---- a τ for each part ----


GRID = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
TAUS = st.lists(st.sampled_from(GRID), min_size=1, max_size=4).map(tuple)


@given(wanted=TAUS, start=st.sampled_from(GRID))
def test_parts_that_do_not_hang_together_are_found_one_by_one(wanted: Taus, start: float) -> None:
    """Of every combination within reach the best: a step of the grid a sweep."""

    def score(taus: Taus) -> float:
        return -sum(abs(one - best) for one, best in zip(taus, wanted, strict=True))

    reach = [tau for tau in GRID if abs(GRID.index(tau) - GRID.index(start)) <= MAX_SWEEPS]
    found = descend((start,) * len(wanted), GRID, score)
    assert score(found.taus) == pytest.approx(max(score(taus) for taus in product(reach, repeat=len(wanted))))
    assert found.trials <= 1 + 2 * MAX_SWEEPS * len(wanted)


@given(start=st.sampled_from(GRID), parts=st.integers(1, 5), seed=st.integers(0, 1_000))
def test_it_ends_no_lower_than_it_began_and_asks_nothing_twice(start: float, parts: int, seed: int) -> None:
    scores: dict[Taus, float | None] = {}

    def score(taus: Taus) -> float | None:
        assert taus not in scores
        one = np.random.default_rng([seed, *(round(10 * tau) for tau in taus)]).normal()
        scores[taus] = None if one > 1 else float(one)
        return scores[taus]

    found = descend((start,) * parts, GRID, score)
    assert found.trials == len(scores)
    known = [one for one in scores.values() if one is not None]
    best = scores[found.taus]
    assert best == max(known) if known else found.taus == (start,) * parts


def test_what_gains_nothing_stays_where_it_was() -> None:
    assert descend((0.8, 0.8), GRID, lambda taus: 0.5) == Found((0.8, 0.8), 5)
    assert descend((0.8, 0.8), GRID, lambda taus: None) == Found((0.8, 0.8), 5)


@pytest.mark.parametrize(("single", "several", "answer"), [(0.5, 4.0, "yes"), (4.0, 4.2, "no"), (0.5, 0.4, "no")])
def test_it_is_better_where_it_beats_no_temperature_and_one_for_all(single: float, several: float, answer: str) -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(200) % 2
    labelled = LabelledTexts(tuple(f"text {i}" for i in range(200)), tuple("ab"[label] for label in labels))
    task = Classification("classification_knn", labelled, np.full(200, 50), folds=5, neighbours=5, seed=0)
    noise = generator.normal(size=(200, 6))
    untouched, one, own = ({"text": noise + signal * np.eye(6)[labels]} for signal in (0.4, single, several))
    outcomes = (task.outcomes(untouched), task.outcomes(one), task.outcomes(own))
    row = report(task, "layer", 0.8, Found((0.9, 0.8), 7), outcomes, resamples=300, seed=0)
    assert (row.recommendation, row.taus, row.trials, row.items, row.units) == (answer, "0.9,0.8", 7, 100, 100)
    # Both differences are those of the grid's arms, where one is the other's τ = 1.
    for before, difference in (
        (untouched, (row.difference, row.low, row.high)),
        (one, (row.beyond, row.beyond_low, row.beyond_high)),
    ):
        arms, _ = compare(task, {1.0: before, 0.8: own}, None, resamples=300, seed=0)
        (arm,) = [arm for arm in arms if (arm.arm, arm.split, arm.bin) == ("temperature", "report", 0)]
        assert difference == (arm.difference, arm.low, arm.high)
        assert row.score_after == arm.score
