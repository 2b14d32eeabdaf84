"""Scores and their resamples against slow, obvious references."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score

from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.measures.quality.measured import WORDS, _tfidf
from embaudit.measures.quality.scale import _above, _threshold
from embaudit.measures.quality.scores import SEED, CollectionScorer, PairScorer, ResampledScore
from embaudit.statistics import resample_clusters

FEW = 40


def made_pairs(
    *, ties: bool = False, shares_sentences: bool = False, count: int = 60
) -> tuple[ScoredPairs, np.ndarray]:
    generator = np.random.default_rng(3)
    wanted = generator.integers(0, 11, count) / 2
    similarities = wanted / 5 + generator.normal(0, 0.4, count)
    if ties:
        similarities = similarities.round(1)
    firsts = tuple(f"first {place // 2 if shares_sentences else place}" for place in range(count))
    seconds = tuple(f"second {place}" for place in range(count))
    return ScoredPairs("made", firsts, seconds, tuple(wanted.tolist())), similarities


def drawn_rows(units: np.ndarray) -> list[np.ndarray]:
    """The rows of each resample, repeated as often as they were drawn."""
    _, places = np.unique(units, return_inverse=True)
    return [np.repeat(np.arange(len(units)), row) for row in resample_clusters(places, FEW, SEED)]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("shares_sentences", [False, True])
def test_spearman_and_auc_of_every_resample_are_those_of_the_repeated_rows(ties: bool, shares_sentences: bool) -> None:
    pairs, similarities = made_pairs(ties=ties, shares_sentences=shares_sentences)
    scorer = PairScorer(pairs, FEW)
    rho, auc = scorer.spearman(similarities), scorer.auc(similarities)
    assert rho.value == pytest.approx(scipy.stats.spearmanr(similarities, pairs.wanted).statistic)
    is_extreme = pairs.is_matching | pairs.is_unrelated
    assert auc.value == pytest.approx(roc_auc_score(pairs.is_matching[is_extreme], similarities[is_extreme]))
    for row, drawn in enumerate(drawn_rows(pairs.units)):
        expected = scipy.stats.spearmanr(similarities[drawn], pairs.wanted[drawn]).statistic
        assert rho.resampled[row] == pytest.approx(expected)
        kept = drawn[is_extreme[drawn]]
        assert auc.resampled[row] == pytest.approx(roc_auc_score(pairs.is_matching[kept], similarities[kept]))


def test_pairs_that_share_a_sentence_are_drawn_together() -> None:
    pairs, _ = made_pairs(shares_sentences=True)
    assert len(set(pairs.units)) == 30
    weights = PairScorer(pairs, FEW).weights
    assert (weights[:, 0::2] == weights[:, 1::2]).all()


def test_a_constant_similarity_orders_nothing() -> None:
    pairs, _ = made_pairs()
    scorer = PairScorer(pairs, FEW)
    same = np.ones(len(pairs.scores))
    assert scorer.spearman(same).value == 0.0
    assert scorer.auc(same).value == 0.5
    assert scorer.spearman(same).estimate().low is None


def test_too_few_units_give_no_interval() -> None:
    pairs, similarities = made_pairs(count=8)
    score = PairScorer(pairs).spearman(similarities)
    assert score.estimate().low is None
    assert score.p_value == 1.0
    assert score.detectable(0.05) is None


def made_collection() -> tuple[Collection, np.ndarray]:
    generator = np.random.default_rng(4)
    relevant = tuple({2 * query: 2.0, 2 * query + 1: 1.0} for query in range(20))
    texts = tuple(f"query {place}" for place in range(20)), tuple(f"document {place}" for place in range(40))
    return Collection("made", *texts, relevant), generator.normal(size=(20, 40))


def brute_ndcg(grades: dict[int, float], similarities: np.ndarray) -> float:
    ranking = sorted(range(len(similarities)), key=lambda place: (-similarities[place], place))[:10]
    gained = sum(grades.get(place, 0.0) / math.log2(rank + 2) for rank, place in enumerate(ranking))
    ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:10]))
    return gained / ideal


def test_ndcg_of_every_resample_is_the_mean_over_the_drawn_queries() -> None:
    collection, similarities = made_collection()
    score = CollectionScorer(collection, FEW).ndcg(similarities)
    of_queries = np.array([brute_ndcg(dict(g), row) for g, row in zip(collection.relevant, similarities, strict=True)])
    assert score.value == pytest.approx(of_queries.mean())
    for row, drawn in enumerate(drawn_rows(collection.units)):
        assert score.resampled[row] == pytest.approx(of_queries[drawn].mean())


def test_a_paired_difference_is_narrower_than_either_score() -> None:
    pairs, similarities = made_pairs(count=200)
    scorer = PairScorer(pairs)
    one = scorer.spearman(similarities)
    other = scorer.spearman(similarities + np.random.default_rng(5).normal(0, 0.02, len(similarities)))
    difference = one.minus(other)
    assert difference.value == pytest.approx(one.value - other.value)
    assert difference.deviation is not None
    assert one.deviation is not None
    assert difference.deviation < one.deviation / 3


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    """ρ of a bivariate normal sample of 100, 200 times: 95 % ± 3 standard errors."""
    generator = np.random.default_rng(6)
    truth = 6 / math.pi * math.asin(0.6 / 2)
    hits = 0
    for _ in range(200):
        x = generator.normal(size=100)
        y = 0.6 * x + 0.8 * generator.normal(size=100)
        pairs = ScoredPairs("made", tuple(map(str, range(100))), tuple(map(str, range(100, 200))), tuple(y.tolist()))
        estimate = PairScorer(pairs, 200).spearman(x).estimate()
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= truth <= estimate.high
    assert 0.90 <= hits / 200 <= 1.0


def test_p_value_and_interval_agree() -> None:
    resampled = np.random.default_rng(7).normal(0.05, 0.02, 1_000)
    score = ResampledScore(0.05, resampled)
    assert score.deviation == pytest.approx(resampled.std(ddof=1))
    low = score.estimate(float(scipy.stats.norm.isf(score.p_value / 2))).low
    assert low == pytest.approx(0.0, abs=1e-9)


def test_word_overlap_is_scikit_learns() -> None:
    texts = ["The cat sat on the mat.", "A CAT sat; the mat!", "?!", "東京 is large", "a a a b", "Straße İstanbul"]
    ours = _tfidf(texts)
    theirs = TfidfVectorizer(token_pattern=WORDS, sublinear_tf=True).fit_transform(texts)
    assert ours is not None
    np.testing.assert_allclose((ours @ ours.T).toarray(), (theirs @ theirs.T).toarray(), atol=1e-12)
    assert _tfidf(["?", "!"]) is None


def test_a_document_that_is_the_query_itself_is_not_ranked_for_it() -> None:
    """By BEIR's rule for queries that are documents, as in ArguAna."""
    collection, similarities = made_collection()
    found = CollectionScorer(collection).ndcg(similarities)
    own = tuple(
        frozenset({int(np.argmax(row))}) - grades.keys()
        for row, grades in zip(similarities, collection.relevant, strict=True)
    )
    apart = replace(collection, own=own)
    without = similarities.copy()
    for query, places in enumerate(own):
        without[query, list(places)] = -9.0
    of_queries = [brute_ndcg(dict(g), row) for g, row in zip(collection.relevant, without, strict=True)]
    score = CollectionScorer(apart).ndcg(similarities)
    assert score.value == pytest.approx(np.mean(of_queries))
    assert score.value > found.value
    part, places = apart.first(5, 20)
    kept = [{int(place) for place in places[list(one)]} for one in part.own]
    assert kept == [set(one) & set(places.tolist()) for one in own[:5]]


def test_the_interval_of_a_threshold_holds_what_most_samples_hold() -> None:
    """Of an exponential's 99 % quantile; with too few pairs, nothing bounds it but the largest cosine."""
    generator = np.random.default_rng(6)
    truth = -math.log(0.01)
    for count in (400, 2_000):
        found = [_threshold(generator.exponential(size=count), count, None) for _ in range(400)]
        assert np.mean([one.low <= truth <= one.high for one in found]) > 0.93  # type: ignore[operator]
    few = generator.uniform(0, 0.5, 150)
    assert _threshold(few, 150, 1.0).high == 1.0
    assert _threshold(few, 150, None).low is None
    # Pairs that share their sentences say less.
    many = generator.uniform(0, 0.5, 2_000)
    alone, shared = _threshold(many, 2_000, 1.0), _threshold(many, 400, 1.0)
    assert shared.low < alone.low < alone.high <= shared.high  # type: ignore[operator]


@pytest.mark.slow
def test_the_share_above_a_threshold_is_as_uncertain_as_the_threshold() -> None:
    generator = np.random.default_rng(7)
    truth = 1 - scipy.stats.norm.cdf(scipy.stats.norm.ppf(0.99) - 2)
    held = []
    for _ in range(200):
        threshold = _threshold(generator.normal(size=500), 500, None)
        share = _above(generator.normal(2, 1, 300), 300, threshold)
        held.append(share.low <= truth <= share.high)  # type: ignore[operator]
    assert np.mean(held) > 0.95


def test_the_interval_of_an_auc_stays_between_0_and_1_and_holds_it() -> None:
    generator = np.random.default_rng(5)
    truth, held = scipy.stats.norm.cdf(2.5 / math.sqrt(2)), []
    for _ in range(120):
        wanted = generator.permutation(np.repeat([0.0, 2.5, 5.0], 40))
        texts = (tuple(f"{side} {place}" for place in range(120)) for side in ("a", "b"))
        pairs = ScoredPairs("made", *texts, tuple(wanted))
        found = PairScorer(pairs, 200).auc(wanted / 2 + generator.normal(size=120)).share_estimate()
        assert found.low is None or 0 < found.low < found.high < 1  # type: ignore[operator]
        held.append(found.low is not None and found.low <= truth <= found.high)  # type: ignore[operator]
    assert np.mean(held) > 0.9
