"""Retention, pull and severity against slow, plain versions of their equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_points import moments_of, points_of

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.sticky.insertion import OPERATORS, SentencePair
from embaudit.measures.sticky.moments import (
    NEAR_U,
    Moments,
    Retention,
    insert_tokens,
    plain_moments,
    pull,
    retention,
    rho,
    rho_before,
    score,
)
from embaudit.measures.sticky.points import Points, every_against_every, given_pairs
from embaudit.measures.sticky.tables import severity_of as severity
from embaudit.words.errors import MeasureError

DRAWS, ANCHORS, GROUPS = 3, 5, 2


def similarities(seed: int, tokens: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Before, (K, A), and after, (T, K, A), in float32 as models give them."""
    generator = np.random.default_rng(seed)
    shape = (DRAWS, ANCHORS)
    before, after = generator.uniform(-0.3, 0.95, shape), generator.uniform(-0.3, 0.95, (tokens, *shape))
    return before, after.astype(np.float32).astype(np.float64)


def measured(before: np.ndarray, after: np.ndarray, u: float = 0.2) -> tuple[Points, Moments]:
    points = points_of(before, u, groups=min(GROUPS, before.reshape(len(before), -1).shape[1]))
    return points, moments_of(points, after)


def line_of(before: np.ndarray, after: np.ndarray) -> Retention:
    return retention(*measured(before, after))


@given(seed=st.integers(0, 10**6))
def test_retention_is_scipys_regression_line(seed: int) -> None:
    before, after = similarities(seed)
    line = line_of(before, after)
    for t in range(len(after)):
        expected = scipy.stats.linregress(before.ravel(), after[t].ravel())
        assert line.slope[t] == pytest.approx(expected.slope, abs=1e-9)
        assert line.intercept[t] == pytest.approx(expected.intercept, abs=1e-9)
        assert line.focal_point[t] == pytest.approx(expected.intercept / (1 - expected.slope), rel=1e-6)


@given(seed=st.integers(0, 10**6))
def test_pull_is_the_definition_summed_by_hand(seed: int) -> None:
    before, after = similarities(seed)
    u = float(np.median(before))
    points, moments = measured(before, after, u)
    values = pull(points, moments)
    below = [(k, a) for k in range(DRAWS) for a in range(ANCHORS) if before[k, a] < u]
    rho_0 = sum(abs(before[at] - u) for at in below) / len(below)
    assert rho_before(points) == pytest.approx(rho_0)
    for t in range(len(after)):
        rho_t = sum(abs(after[t][at] - u) for at in below) / len(below)
        assert values[t] == pytest.approx(1 - rho_t / rho_0)
        assert rho(points, moments)[t] == pytest.approx(rho_t)
    both = score(points, moments)
    assert np.array_equal(both.pull, values)
    assert np.array_equal(both.slope, retention(points, moments).slope)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_weights_count_draws_and_groups_as_often_as_they_say(seed: int) -> None:
    before, after = similarities(seed)
    weights = np.random.default_rng(seed).integers(0, 4, size=(3, DRAWS, GROUPS))
    weights[:, 0, 0] += 1
    u = float(before.max()) + 0.01
    points, moments = measured(before, after, u)
    lines, pulls = retention(points, moments, weights), pull(points, moments, weights)
    for b in range(3):
        # Anchors are dealt among the groups in turn.
        times = np.array([[weights[b, k, a % GROUPS] for a in range(ANCHORS)] for k in range(DRAWS)]).ravel()
        repeated = np.repeat(np.arange(before.size), times)
        x = before.ravel()[repeated]
        for t in range(len(after)):
            y = after[t].ravel()[repeated]
            expected = scipy.stats.linregress(x, y)
            assert lines.slope[b, t] == pytest.approx(expected.slope, abs=1e-7)
            assert lines.intercept[b, t] == pytest.approx(expected.intercept, abs=1e-7)
            assert pulls[b, t] == pytest.approx(1 - np.abs(y - u).mean() / np.abs(x - u).mean(), abs=1e-9)
        part = score(points, moments, weights[b])
        assert part.slope == pytest.approx(lines.slope[b])
        assert part.pull == pytest.approx(pulls[b])


def test_sums_stay_accurate_where_all_similarities_are_nearly_one() -> None:
    """A checkpoint whose vectors all look alike: differences in the fourth digit of values near one."""
    before = 0.99 + 1e-4 * np.linspace(-1, 1, 15).reshape(DRAWS, ANCHORS)
    after = (0.99 + 0.4 * (before - 0.99))[None]
    # Float32 keeps 6e-8 of 0.99, which is a thousandth of this spread.
    assert line_of(before, after).slope[0] == pytest.approx(0.4, abs=2e-3)


def test_a_token_that_drags_to_a_value_is_found_there() -> None:
    before = np.linspace(-0.2, 0.9, 12)
    kept = 0.3
    after = (kept * before + (1 - kept) * 0.45)[None]
    line = line_of(before, after)
    assert line.slope[0] == pytest.approx(kept)
    assert line.focal_point[0] == pytest.approx(0.45)


def test_a_token_that_changes_nothing_has_no_focal_point() -> None:
    before = np.linspace(-0.2, 0.9, 12).astype(np.float32).astype(np.float64)
    line = line_of(before, before[None])
    assert line.slope[0] == pytest.approx(1)
    assert np.isnan(line.focal_point[0])
    assert pull(*measured(before, before[None], 0.5))[0] == pytest.approx(0)


def test_a_token_that_moves_everything_to_u_pulls_fully() -> None:
    assert pull(*measured(np.array([-0.1, 0.0, 0.1]), np.full((1, 3), 0.25), 0.25))[0] == 1


def test_undefined_values_are_nan_and_not_zero() -> None:
    assert np.isnan(line_of(np.full(4, 0.5), np.zeros((1, 4))).slope[0])
    assert np.isnan(pull(*measured(np.array([0.5, 0.6]), np.zeros((1, 2)), 0.2))[0])


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (0.5, "strong"),
        (0.49, "moderate"),
        (0.25, "moderate"),
        (0.1, "weak"),
        (0.09, "negligible"),
        (-0.4, "negligible"),
    ],
)
def test_severity_is_graded_on_loss(loss: float, expected: str) -> None:
    assert severity(loss) == expected


# ---- draws against anchors on real and tiny checkpoints: similarities, sums, and what they hang on ----


SENTENCES = [
    "a man is playing a guitar",
    "someone plays the guitar",
    "the stock market fell on friday",
    "shares dropped sharply at the end of the week",
    "a cat sleeps on the sofa",
    "how do i install the printer driver",
    "the river floods its banks every spring",
    "two dogs run across a field of snow",
]
PAIRS = [SentencePair(SENTENCES[i], SENTENCES[i + 1], 0.0) for i in range(0, 8, 2)]
TOKENS = np.array([100, 1427, 2795, 3899, 5000, 9999, 12471, 20000, 30000])
U = 0.19985


@pytest.fixture(scope="module")
def crossed(minilm: Checkpoint) -> Points:
    """Three draws, five anchors in two groups."""
    return every_against_every(Encoder(minilm), SENTENCES[:3], SENTENCES[3:], U, 8, 0, groups=2)


@pytest.fixture(scope="module")
def inserted(minilm: Checkpoint, crossed: Points) -> Moments:
    return insert_tokens(Encoder(minilm), crossed, TOKENS, range(3))


def test_a_value_depends_on_no_other_token_batch_shard_or_draw(
    minilm: Checkpoint, crossed: Points, inserted: Moments
) -> None:
    alone = [insert_tokens(Encoder(minilm), crossed, TOKENS[i : i + 1], [1]).values[0, 0] for i in range(9)]
    small = insert_tokens(Encoder(minilm, tokens_per_batch=64), crossed, TOKENS[::-1].copy(), range(3)).values[::-1]
    # A sum over at most five anchors, 1e-6 each.
    assert np.abs(inserted.values[:, 1] - alone).max() <= 5e-6
    assert np.abs(inserted.values - small).max() <= 5e-6
    scores, again = score(crossed, inserted), score(crossed, Moments(small))
    assert np.abs(scores.slope - again.slope).max() <= 1e-5
    assert np.abs(scores.pull - again.pull).max() <= 1e-5


def test_every_draw_is_compared_with_every_anchor(
    minilm: Checkpoint, crossed: Points, inserted: Moments, encoder: Encoder
) -> None:
    """Each sum from sentences encoded one by one."""
    anchors = encoder.encode_texts(SENTENCES[3:]).astype(np.float64)
    anchors /= np.linalg.norm(anchors, axis=1, keepdims=True)
    assert [draw.operator for draw in crossed.draws] == list(OPERATORS)
    assert (crossed.count, crossed.group_count) == (15, 2)
    for place, token in enumerate(TOKENS[:2].tolist()):
        for k, operator in ((0, "prefix"), (1, "suffix")):
            content = minilm.content_ids(SENTENCES[k])
            copies = [token] * 8
            ids = [copies + content if operator == "prefix" else content + copies, content]
            after, before = (encoder.encode_ids([[101, *one, 102]])[0].astype(np.float64) for one in ids)
            x, y = (anchors @ vector / np.linalg.norm(vector) for vector in (before, after))
            assert np.abs(crossed.before[k] - x).max() <= 1e-6
            for name, per_anchor in (
                ("y", y - crossed.origin),
                ("xy", (y - crossed.origin) * (x - crossed.origin)),
                ("distance", np.where(x < U, np.abs(y - U), 0)),
            ):
                by_group = [per_anchor[group::2].sum() for group in (0, 1)]
                assert inserted.of_groups(name)[place, k] == pytest.approx(by_group, abs=5e-6), name
            assert inserted.of_draws("yy")[place, k] == pytest.approx(np.square(y - crossed.origin).sum(), abs=5e-6)
            for name, epsilon in zip(("near_05", "near_10"), NEAR_U, strict=True):
                assert inserted.of_draws(name)[place, k] == (np.abs(y - U) <= epsilon).sum()


def test_a_given_pair_is_compared_with_its_partner_alone(minilm: Checkpoint, encoder: Encoder) -> None:
    points = given_pairs(Encoder(minilm), PAIRS, U, 8, 0)
    assert (len(points.draws), points.count, points.group_count) == (12, 12, 1)
    assert [draw.operator for draw in points.draws] == list(OPERATORS) * 4
    assert points.clusters.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    moments = insert_tokens(Encoder(minilm), points, TOKENS[:2], range(12))
    for index, pair in enumerate(PAIRS):
        first = encoder.encode_texts([pair.first])[0]
        inside = [*minilm.content_ids(pair.second), *[int(TOKENS[1])] * 8]
        after = float(first @ encoder.encode_ids([[101, *inside, 102]])[0])
        suffix = 3 * index + 1
        assert moments.of_groups("y")[1, suffix, 0] + points.origin == pytest.approx(after, abs=1e-6)
    rotated = given_pairs(Encoder(minilm), PAIRS, U, 8, 0, rotate_operators=True)
    assert [draw.operator for draw in rotated.draws] == ["prefix", "suffix", "random", "prefix"]


def test_pairs_that_share_a_sentence_are_one_cluster(encoder: Encoder) -> None:
    a, b, c, d, e, f, *_ = SENTENCES
    pairs = [SentencePair(*pair, 0.0) for pair in ((a, b), (c, d), (b, e), (c, f), (e, a))]
    clusters = given_pairs(encoder, pairs, 2.0, 8, 0, rotate_operators=True).clusters
    assert clusters[0] == clusters[2] == clusters[4]
    assert clusters[1] == clusters[3] != clusters[0]


def test_nothing_below_u_is_an_error_with_the_lowest_similarity(encoder: Encoder) -> None:
    with pytest.raises(MeasureError, match=r"No sentence pair lies below u = -1\.0000"):
        given_pairs(encoder, PAIRS, -1.0, 8, 0)
    with pytest.raises(MeasureError, match=r"No sentence pair lies below u = -1\.0000") as caught:
        every_against_every(encoder, SENTENCES[:3], SENTENCES[3:], -1.0, 8, 0, 2)
    assert "unrelated sentences" in caught.value.next_step


def test_similarities_that_do_not_differ_are_an_error(encoder: Encoder) -> None:
    with pytest.raises(MeasureError, match="All sentence pairs have the same similarity"):
        every_against_every(encoder, SENTENCES[:1] * 3, SENTENCES[3:4] * 2, U, 8, 0, 2)


@given(seed=st.integers(0, 10**6), groups=st.integers(1, 6))
@settings(max_examples=40)
def test_sums_by_loops_over_points(seed: int, groups: int) -> None:
    generator = np.random.default_rng(seed)
    draws, anchors, tokens = 4, 6, 3
    before = generator.uniform(-0.5, 0.9, (draws, anchors))
    points = points_of(before, 0.2, groups=groups)
    after = generator.uniform(-0.5, 0.9, (tokens, draws, anchors)).astype(np.float32)
    moments = moments_of(points, after)
    plain = plain_moments(points)
    for k in range(draws):
        for g in range(points.group_count):
            held = [a for a in range(anchors) if points.groups[a] == g]
            x = [before[k, a] - points.origin for a in held]
            below = [a for a in held if before[k, a] < 0.2]
            assert plain.n[k, g] == len(held)
            assert plain.x[k, g] == pytest.approx(sum(x))
            assert plain.xx[k, g] == pytest.approx(sum(value**2 for value in x))
            assert plain.below[k, g] == len(below)
            assert plain.distance[k, g] == pytest.approx(sum(0.2 - before[k, a] for a in below))
            for t in range(tokens):
                y = [float(after[t, k, a]) - points.origin for a in held]
                assert moments.of_groups("y")[t, k, g] == pytest.approx(sum(y))
                assert moments.of_groups("xy")[t, k, g] == pytest.approx(sum(a * b for a, b in zip(x, y, strict=True)))
                distance = sum(abs(float(after[t, k, a]) - 0.2) for a in below)
                assert moments.of_groups("distance")[t, k, g] == pytest.approx(distance)
    assert points.count == draws * anchors


def test_some_of_the_draws_are_what_they_are_alone() -> None:
    before = np.random.default_rng(0).uniform(-0.5, 0.9, (5, 6))
    after = np.random.default_rng(1).uniform(-0.5, 0.9, (3, 5, 6))
    points = points_of(before, 0.2, groups=2)
    some, alone = points.at([3, 1]), points_of(before[[3, 1]], 0.2, groups=2)
    chosen = moments_of(points, after).at(slice(None), [3, 1])
    one, other = score(some, chosen), score(alone, moments_of(alone, after[:, [3, 1]]))
    assert one.slope == pytest.approx(other.slope)
    assert one.pull == pytest.approx(other.pull)
