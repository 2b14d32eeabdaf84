"""How many tokens are how bad: the noise taken off, the interval, and what is confirmed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_points import moments_of, points_of

from embaudit.checkpoint import Checkpoint
from embaudit.measures.sticky.insertion import OPERATORS, Operator, distinct_sentences, make_draw, split_sentences
from embaudit.measures.sticky.moments import Scores, score
from embaudit.measures.sticky.search import halves
from embaudit.measures.sticky.verdicts import MeasuredLosses, losses, noise, prevalence, shares_at_least
from embaudit.words.errors import CorpusError, MeasureError

VOCABULARY = 30_000
NONE = np.empty(0)


def true_losses(seed: int = 0) -> np.ndarray:
    """Four tokens of a hundred lose a lot, each its own share; the others hardly differ."""
    generator = np.random.default_rng(seed)
    severe = generator.random(VOCABULARY) < 0.04
    return np.where(severe, generator.gamma(4, 0.07, VOCABULARY), generator.normal(0, 0.05, VOCABULARY))


def slow_shares(measured: np.ndarray, error: float, least: list[float]) -> list[float]:
    """Expectation–maximisation token by token, on the same grid."""
    step = 0.0125
    low = int(np.floor((measured.min() - 3 * error) / step))
    grid = [step * (place + 0.5) for place in range(low, int(np.ceil(measured.max() / step + 2)))]
    mass = [1 / len(grid)] * len(grid)
    for _ in range(100):
        following = [0.0] * len(grid)
        for value in measured.tolist():
            likely = [g * np.exp(-0.5 * ((value - at) / error) ** 2) for g, at in zip(mass, grid, strict=True)]
            whole = sum(likely)
            following = [sofar + one / whole / len(measured) for sofar, one in zip(following, likely, strict=True)]
        mass = following
    return [sum(g for g, at in zip(mass, grid, strict=True) if at >= value) for value in least]


def test_shares_token_by_token() -> None:
    measured = np.random.default_rng(1).choice(true_losses(), 40) + np.random.default_rng(2).normal(0, 0.05, 40)
    found = shares_at_least(measured, 0.05, [0.5, 0.25, 0.1], np.ones((1, 40)))[0]
    assert found == pytest.approx(slow_shares(measured, 0.05, [0.5, 0.25, 0.1]), abs=1e-9)


def test_weights_count_tokens_as_often_as_they_say() -> None:
    measured = true_losses()[:60]
    weights = np.random.default_rng(0).integers(0, 3, 60)
    repeated = np.repeat(measured, weights)
    # The grid is that of all tokens, whoever is in the resample.
    both = shares_at_least(measured, 0.05, [0.1], np.stack([weights, np.ones(60)]))
    with_ends = np.append(repeated, [measured.min(), measured.max()])
    alone = shares_at_least(with_ends, 0.05, [0.1], np.array([[1.0] * len(repeated) + [0, 0]]))
    assert both[0] == pytest.approx(alone[0])


@pytest.mark.parametrize("error", [0.03, 0.06])
def test_noise_that_makes_a_thin_tail_thick_is_taken_off(error: float) -> None:
    true = true_losses()
    least = [0.5, 0.25, 0.1]
    wanted = [VOCABULARY * float((true >= value).mean()) for value in least]
    estimates, naive = [], []
    for seed in range(10):
        generator = np.random.default_rng(seed)
        measured = generator.choice(true, 1_200, replace=False) + generator.normal(0, error, 1_200)
        estimates.append(VOCABULARY * shares_at_least(measured, error, least, np.ones((1, 1_200)))[0])
        naive.append([VOCABULARY * float((measured >= value).mean()) for value in least])
    found, counted = np.mean(estimates, axis=0), np.mean(naive, axis=0)
    # At the mildest border, where the noise does most.
    assert abs(found[2] - wanted[2]) < 0.2 * wanted[2]
    assert abs(found[2] - wanted[2]) < 0.5 * abs(counted[2] - wanted[2])
    assert found[1] == pytest.approx(wanted[1], rel=0.2)


@pytest.mark.slow
def test_tokens_that_were_all_counted_leave_the_rest_to_the_sample() -> None:
    """A search that keeps the worst by noisy draws: the interval is that of the few bad tokens that it dropped."""
    true, sigma, others = true_losses(), 0.04, VOCABULARY // 20
    wanted = float((true >= 0.25).sum())
    widths, estimates, covered = [], [], []
    for seed in range(16):
        generator = np.random.default_rng(seed)
        measured = true + generator.normal(0, sigma, VOCABULARY)
        # Kept by a reading that shares half of the noise.
        reading = 0.5 * (measured + true) + generator.normal(0, 0.05, VOCABULARY)
        kept = reading >= np.quantile(reading, 1 - others / VOCABULARY)
        pilot = generator.choice(VOCABULARY, 1_000, replace=False)
        alone = MeasuredLosses(NONE, measured[pilot], VOCABULARY, sigma)
        dropped = measured[pilot[~kept[pilot]]]
        both = MeasuredLosses(measured[kept], dropped, VOCABULARY - int(kept.sum()), sigma)
        found = [prevalence(one, [], 100, seed)[1] for one in (alone, both)]
        widths.append([one.estimated_high - one.estimated_low for one in found])  # type: ignore[operator]
        covered.append([one.estimated_low <= wanted <= one.estimated_high for one in found])  # type: ignore[operator]
        estimates.append([one.estimated for one in found])
    narrow = np.median(widths, axis=0)
    assert narrow[1] < 0.5 * narrow[0]
    assert np.mean(estimates, axis=0)[1] == pytest.approx(wanted, rel=0.05)
    # 95 % of 16 is 15; below 12 by chance in one of a thousand cases.
    assert np.sum(covered, axis=0).min() >= 12


def test_the_estimate_is_never_below_what_is_confirmed() -> None:
    validated = [(0.6, 0.55)] * 3 + [(0.55, 0.4)] * 2 + [(0.2, None)]
    strong, moderate, weak = prevalence(MeasuredLosses(NONE, np.zeros(50), 1_000, 0.02), validated, 100, 0)
    assert [(one.validated, one.confirmed) for one in (strong, moderate, weak)] == [(5, 3), (5, 5), (6, 5)]
    assert strong.estimated == pytest.approx(3)
    # No token of the sample is bad, and that is not certain of the others: none of fifty, by Clopper and Pearson.
    assert (strong.estimated_low, strong.estimated_high) == (3, pytest.approx(1_000 * (1 - 0.025 ** (1 / 50))))
    assert (strong.severity, strong.least_loss) == ("strong", 0.5)
    assert [one.estimated for one in (moderate, weak)] == pytest.approx([5, 5])


@pytest.mark.parametrize("loss", [0.09, 0.0999, 0.1, 0.102, 0.25, 0.3])
@pytest.mark.parametrize("error", [0.02, 0.05, 0.1])
def test_an_interval_holds_its_estimate_and_is_no_rounding(loss: float, error: float) -> None:
    """If all losses are equal, resamples differ by rounding alone, and may then miss the estimate."""
    for one in prevalence(MeasuredLosses(NONE, np.full(50, loss), 1_000, error), [], 100, 0):
        assert (one.estimated_low is None) == (one.estimated_high is None)
        if one.estimated_low is not None:
            assert one.estimated_low <= one.estimated <= one.estimated_high  # type: ignore[operator]
            assert one.estimated_high - one.estimated_low > 1  # type: ignore[operator]


def test_without_a_sample_or_its_noise_nothing_is_estimated() -> None:
    for measured, error in ((np.empty(0), 0.02), (np.zeros(9), float("nan"))):
        found = prevalence(MeasuredLosses(NONE, measured, 1_000, error), [(0.6, 0.55)], 100, 0)
        assert [(one.estimated, one.estimated_low, one.estimated_high) for one in found] == [(None, None, None)] * 3
        assert [one.confirmed for one in found] == [1, 1, 1]
        assert [one.is_capped for one in found] == [False] * 3


def test_a_count_is_capped_where_there_must_be_more_than_were_validated() -> None:
    measured = np.concatenate([np.full(90, 0.0), np.full(10, 0.4)])
    found = prevalence(MeasuredLosses(NONE, measured, 20_000, 0.02), [(0.4, 0.3)] * 80, 100, 0)
    rows = {row.severity: row for row in found}
    assert rows["moderate"].estimated == pytest.approx(2_000, rel=0.01)
    assert rows["moderate"].estimated_low > 80
    assert rows["moderate"].is_capped
    assert not rows["strong"].is_capped


def test_a_loss_is_against_the_median_of_the_ordinary() -> None:
    slopes, ordinary = np.array([0.4, 0.7, 0.8, 0.9]), np.array([False, True, True, True])
    assert losses(slopes, ordinary) == pytest.approx([0.5, 0.125, 0, -0.125])
    assert losses(np.stack([slopes, 2 * slopes]), ordinary)[1] == pytest.approx([0.5, 0.125, 0, -0.125])


def test_the_noise_is_that_of_the_whole_and_not_of_a_half() -> None:
    """Slopes that differ from draw to draw and from anchor to anchor: the error of all of them together is known."""
    generator = np.random.default_rng(4)
    tokens, draws, anchors = 300, 16, 40
    before = generator.uniform(-0.2, 0.9, (draws, anchors))
    points = points_of(before, 0.2, groups=2)
    by_draw = generator.normal(0, 0.1, (tokens, draws, 1))
    moments = moments_of(points, (0.8 + by_draw) * before)
    ordinary = np.ones(tokens, dtype=bool)
    split = halves(points, moments, 0)
    spread = losses(score(points, moments).slope, ordinary).std()
    assert noise(split, ordinary) == pytest.approx(spread, rel=0.15)
    # Two halves that agree leave none.
    same = Scores(np.zeros(tokens), np.linspace(0.5, 1, tokens))
    assert noise([(same, same)], ordinary) == 0


# ---- sentences are dealt so that none is used twice; copies stand where they belong, by seed and sentence alone ----


SENTENCES = [f"sentence {number}" for number in range(1_200)]


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(8, 1_200),
    draws=st.integers(4, 40),
    validation=st.integers(10, 300),
)
@settings(max_examples=60)
def test_every_sentence_is_used_once_and_anchors_get_their_half(
    seed: int, count: int, draws: int, validation: int
) -> None:
    scoring, validated = split_sentences(SENTENCES[:count], draws, validation, seed)
    used = [*scoring.draws, *scoring.anchors, *validated.draws, *validated.anchors]
    assert sorted(used) == sorted(SENTENCES[:count])
    assert 2 <= len(scoring.draws) <= draws
    assert 2 <= len(validated.draws) <= validation
    assert len(scoring.anchors) + len(validated.anchors) >= count / 2
    assert abs(len(scoring.anchors) - len(validated.anchors)) <= 1
    if count >= 4 * max(draws, validation):
        assert (len(scoring.draws), len(validated.draws)) == (draws, validation)


def test_the_same_seed_deals_the_same_and_another_seed_otherwise() -> None:
    one, same, other = (split_sentences(SENTENCES[:200], 16, 30, seed) for seed in (7, 7, 8))
    assert one == same
    assert set(one[0].draws) != set(other[0].draws)


def test_too_few_sentences_is_an_error_that_says_how_many() -> None:
    with pytest.raises(CorpusError, match="has 6"):
        split_sentences(SENTENCES[:6], 16, 30, 0)


def test_distinct_sentences_drop_blanks_and_repeats_and_keep_order() -> None:
    assert distinct_sentences(["b", "", " a ", "b", "c"], 10, 0) == ["b", "a", "c"]
    drawn = distinct_sentences([str(n) for n in range(100)], 10, 0)
    assert drawn == sorted(drawn, key=int)
    assert len(drawn) == 10


# ---- copies ----


SENTENCE = "the quick brown fox jumps over the lazy dog"
TOKEN = 2323


def inserted(checkpoint: Checkpoint, operator: Operator, seed: int = 0, text: str = SENTENCE) -> list[int]:
    return make_draw(checkpoint, text, operator, 8, seed).insert(np.array([TOKEN]))[0].tolist()


@pytest.mark.parametrize("operator", OPERATORS)
def test_removing_the_copies_gives_the_baseline(minilm: Checkpoint, operator: Operator) -> None:
    draw = make_draw(minilm, SENTENCE, operator, 8, 0)
    row = draw.insert(np.array([TOKEN]))[0]
    assert row[row != TOKEN].tolist() == list(draw.baseline)
    assert (row == TOKEN).sum() == 8


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_long_sentence_is_cut_so_that_all_copies_survive(minilm: Checkpoint, operator: Operator) -> None:
    long = "word " * 1000
    row = inserted(minilm, operator, text=long)
    assert len(row) == minilm.max_length
    assert row.count(TOKEN) == 8
    draw = make_draw(minilm, long, operator, 8, 0)
    assert len(draw.baseline) == minilm.max_length - 8


def test_random_places_are_the_same_for_every_token_and_differ_by_seed_and_sentence(minilm: Checkpoint) -> None:
    draw = make_draw(minilm, SENTENCE, "random", 8, 0)
    rows = draw.insert(np.array([5000, 6000, 7000]))
    places = [np.flatnonzero(row == token).tolist() for row, token in zip(rows, (5000, 6000, 7000), strict=True)]
    assert places[0] == places[1] == places[2]
    assert inserted(minilm, "random", seed=0) == inserted(minilm, "random", seed=0)
    assert inserted(minilm, "random", seed=0) != inserted(minilm, "random", seed=1)


def test_no_room_for_a_sentence_is_an_error_that_names_the_limit(minilm: Checkpoint) -> None:
    short = dataclasses.replace(minilm, limits={"text": 10})
    with pytest.raises(MeasureError, match="10 tokens"):
        make_draw(short, SENTENCE, "suffix", 8, 0)
