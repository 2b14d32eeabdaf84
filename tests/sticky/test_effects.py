"""Effects, p-values, thresholds and verdicts against slow implementations that repeat the definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from synthetic_points import moments_of, points_of, slow_benjamini_hochberg

from embaudit.measures.sticky.effects import (
    Effect,
    crossed_resamples,
    false_discovery,
    measure_effects,
    near_u_before,
)
from embaudit.measures.sticky.moments import PROTOCOLS
from embaudit.measures.sticky.plan import SearchFound
from embaudit.measures.sticky.points import Points
from embaudit.measures.sticky.verdicts import (
    Threshold,
    TokenEffects,
    adaptive_threshold,
    common_thresholds,
    summary_rows,
    validation_rows,
    validation_value,
)
from embaudit.statistics import resample_clusters

U = 0.3


def synthetic(
    draws: int, slopes: list[float], noise: float = 0.05, seed: int = 0, *, anchors: int = 1, groups: int = 1
) -> tuple[Points, np.ndarray]:
    """Points on lines of known slopes, all through (0.1, 0.1); every fifth draw shares a sentence with the next."""
    generator = np.random.default_rng(seed)
    before = generator.uniform(-0.2, 0.9, (draws, anchors))
    clusters = [k - 1 if k % 5 == 1 else k for k in range(draws)]
    points = points_of(before, U, groups=groups, clusters=clusters)
    shared, own = (generator.normal(0, noise, size) for size in (before.shape, (len(slopes), *before.shape)))
    after = 0.1 + np.array(slopes)[:, None, None] * (before - 0.1) + shared + own
    return points, after.astype(np.float32)


def effects_of(points: Points, after: np.ndarray, is_control: np.ndarray, resamples: int, seed: int) -> list[Effect]:
    return measure_effects(points, moments_of(points, after), is_control, resamples, seed)


def slow_values(x: list[float], y: list[float], u: float) -> dict[str, float]:
    """pull, slope and focal point of one token, from its points one by one."""
    slope, intercept = np.polyfit(x, y, 1)
    below = [(a, b) for a, b in zip(x, y, strict=True) if a < u]
    rho, rho_0 = (sum(abs(point[side] - u) for point in below) / len(below) for side in (1, 0))
    return {
        "rho": rho,
        "rho_0": rho_0,
        "pull": 1 - rho / rho_0,
        "slope": float(slope),
        "focal_point": float(intercept / (1 - slope)),
    }


def slow_percentile(values: list[float], percent: float) -> float:
    """Linear between the two nearest ranks."""
    ordered = sorted(values)
    place = percent / 100 * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def slow_median(values: list[float]) -> float:
    return slow_percentile(values, 50)


def slow_effects(
    points: Points, after: np.ndarray, is_control: list[bool], resamples: int, seed: int
) -> list[dict[str, Any]]:
    """Every figure of ``measure_effects`` by loops over tokens, resamples, draws and anchors."""
    draws, anchors = points.before.shape
    places = [(k, a) for k in range(draws) for a in range(anchors)]
    before, u = [float(points.before[at]) for at in places], points.u
    rows = [[float(row[at]) for at in places] for row in after]
    controls = [t for t, held in enumerate(is_control) if held]
    whole = [slow_values(before, row, u) for row in rows]

    _, clusters = np.unique(points.clusters, return_inverse=True)
    count, groups = int(clusters.max()) + 1, points.group_count
    times_of_cluster = np.random.default_rng([seed, count]).multinomial(count, [1 / count] * count, size=resamples)
    times_of_group = np.ones((resamples, 1), dtype=int)
    if groups > 1:
        generator = np.random.default_rng([seed + 1, groups])
        times_of_group = generator.multinomial(groups, [1 / groups] * groups, size=resamples)
    chosen = np.random.default_rng([seed, len(controls), 2]).choice(controls, size=(resamples, len(controls)))
    resampled: list[list[dict[str, float]]] = []
    for b in range(resamples):
        held = [
            point
            for point, (k, a) in enumerate(places)
            for _ in range(times_of_cluster[b, clusters[k]] * times_of_group[b, a % groups])
        ]
        values = [slow_values([before[p] for p in held], [row[p] for p in held], u) for row in rows]
        ordinary = slow_median([values[c]["slope"] for c in chosen[b]])
        for value in values:
            value["loss"] = 1 - value["slope"] / ordinary
        resampled.append(values)

    ordinary_slope = slow_median([whole[c]["slope"] for c in controls])
    ordinary_pull = slow_median([whole[c]["pull"] for c in controls])
    effects = []
    for t, row in enumerate(rows):
        effect: dict[str, Any] = {"points": len(row), **whole[t]}
        effect["loss"] = 1 - whole[t]["slope"] / ordinary_slope
        effect["excess_pull"] = whole[t]["pull"] - ordinary_pull
        for name, start in (("pull", "pull"), ("slope", "slope"), ("loss", "loss"), ("focal_point", "focal")):
            own = [values[t][name] for values in resampled]
            effect[f"{start}_low"], effect[f"{start}_high"] = slow_percentile(own, 2.5), slow_percentile(own, 97.5)
        for name, sign in (("pull", 1), ("slope", -1)):
            not_beyond = 0
            for b, values in enumerate(resampled):
                bound = slow_percentile([sign * values[c][name] for c in chosen[b]], 95)
                not_beyond += not sign * values[t][name] > bound
            effect[f"p_{name}"] = (1 + not_beyond) / (resamples + 1)
        effect["shift"] = sum(b - a for a, b in zip(before, row, strict=True)) / len(row)
        effect["compression"] = float(np.std(row) / np.std(before))
        effect["near_u_05"] = sum(abs(value - u) <= 0.05 for value in row) / len(row)
        effect["near_u_10"] = sum(abs(value - u) <= 0.1 for value in row) / len(row)
        within = effect["focal_low"] <= u <= effect["focal_high"]
        effect["sticks_to"] = "u" if within else f"{effect['focal_point']:.3f}"
        loss = effect["loss"]
        effect["severity"] = (
            "strong" if loss >= 0.5 else "moderate" if loss >= 0.25 else "weak" if loss >= 0.1 else "negligible"
        )
        effects.append(effect)
    return effects


@pytest.mark.parametrize(("seed", "anchors", "groups"), [(0, 1, 1), (1, 3, 1), (2, 7, 3)])
def test_every_figure_against_loops(seed: int, anchors: int, groups: int) -> None:
    slopes = [0.3, 0.55, 0.72, 0.8, *np.linspace(0.7, 0.9, 9)]
    points, after = synthetic(24, slopes, seed=seed, anchors=anchors, groups=groups)
    is_control = [t >= 4 for t in range(len(slopes))]
    found = effects_of(points, after, np.array(is_control), 120, seed)
    slow = slow_effects(points, after, is_control, 120, seed)
    assert {effect["severity"] for effect in slow} == {"strong", "moderate", "weak", "negligible"}
    for effect, expected in zip(found, slow, strict=True):
        values = vars(effect)
        assert set(values) == set(expected)
        for name, value in expected.items():
            if isinstance(value, str):
                assert values[name] == value, name
            else:
                assert values[name] == pytest.approx(value, abs=1e-5), name


def covering(draws: int, anchors: int, repeats: int) -> int:
    """How many intervals of a loss of 0.5 hold it, where draws, anchors and controls all have effects of their own."""
    covered = 0
    for seed in range(repeats):
        generator = np.random.default_rng(seed)
        before = generator.uniform(-0.2, 0.9, (draws, anchors))
        points = points_of(before, U, groups=min(12, anchors))
        kept = np.array([0.4, *(0.8 + generator.normal(0, 0.03, 40))])
        # A token's slope differs from draw to draw and from anchor to anchor: what resampling points would not see.
        by_draw, by_anchor = generator.normal(0, 0.08, (41, draws, 1)), generator.normal(0, 0.08, (41, 1, anchors))
        after = (kept[:, None, None] + by_draw + by_anchor) * before + generator.normal(0, 0.05, (41, draws, anchors))
        effect = effects_of(points, after, np.arange(41) > 0, 300, seed)[0]
        assert effect.loss_low is not None
        assert effect.loss_high is not None
        covered += effect.loss_low <= 0.5 <= effect.loss_high
    return covered


@pytest.mark.slow
def test_the_interval_of_a_known_loss_covers_it_about_as_often_as_it_says() -> None:
    # 95 % of 60 is 57; a binomial with p = .95 falls below 51 in less than one of ten thousand cases.
    assert covering(30, 24, 60) >= 51


def test_draws_and_groups_are_drawn_apart_from_each_other() -> None:
    points = points_of(np.random.default_rng(0).uniform(size=(6, 8)), U, groups=4, clusters=[0, 0, 2, 3, 4, 5])
    weights = crossed_resamples(points, 400, 3)
    assert weights.shape == (400, 6, 4)
    assert (weights[:, 0] == weights[:, 1]).all()
    # Each is a product: what a draw counts is the same in every group, but for how often the group is there.
    draws, groups = weights.sum(axis=2) / 4, weights[:, [0, 2, 3, 4, 5]].sum(axis=1) / 5
    assert weights == pytest.approx(draws[:, :, None] * groups[:, None, :])
    assert draws[:, [0, 2, 3, 4, 5]].sum(axis=1) == pytest.approx(5)
    assert groups.sum(axis=1) == pytest.approx(4)
    assert abs(np.corrcoef(draws[:, 0], groups[:, 0])[0, 1]) < 0.2
    # One group is no sample of anchors.
    single = crossed_resamples(points_of(np.random.default_rng(0).uniform(size=6), U), 50, 3)
    assert single.shape == (50, 6, 1)
    assert (single.sum(axis=(1, 2)) == 6).all()


def test_where_a_token_sticks_is_u_only_if_its_interval_holds_u() -> None:
    points, after = synthetic(60, [0.3] + [0.8] * 12, noise=0.01)
    is_control = np.arange(13) > 0
    away = effects_of(points, after, is_control, 200, 0)[0]
    assert away.sticks_to == f"{away.focal_point:.3f}"
    assert away.focal_point == pytest.approx(0.1, abs=0.02)
    at = points_of(points.before, away.focal_point or 0.0, clusters=points.clusters)
    assert effects_of(at, after, is_control, 200, 0)[0].sticks_to == "u"


def test_shift_compression_and_nearness_by_hand() -> None:
    points = points_of(np.array([0.0, 0.2, 0.4, 0.8]), 0.32)
    after = np.array([[0.25, 0.36, 0.39, 0.6], [0.1, 0.3, 0.5, 0.9], [0.0, 0.1, 0.2, 0.4]])
    effects = effects_of(points, after, np.array([False, True, True]), 100, 0)
    assert [effect.shift for effect in effects] == pytest.approx([0.05, 0.1, -0.175])
    assert effects[1].compression == pytest.approx(1)
    assert effects[2].compression == pytest.approx(0.5)
    assert [effect.near_u_05 for effect in effects] == [0.25, 0.25, 0.0]
    assert [effect.near_u_10 for effect in effects] == [0.75, 0.25, 0.25]
    assert near_u_before(points) == [0.0, 0.25]


def test_a_line_of_slope_one_sticks_to_nothing() -> None:
    before = np.array([0.0, 0.25, 0.5, 0.75])
    after = np.array([before + 0.125, before * 0.5, before * 0.5])
    effect = effects_of(points_of(before, 0.32), after, np.array([False, True, True]), 100, 0)[0]
    assert (effect.slope, effect.focal_point, effect.sticks_to) == (1.0, None, None)


def test_no_spread_before_leaves_no_compression() -> None:
    points, after = synthetic(12, [0.5, 0.8, 0.8])
    flat = points_of(np.full(12, 0.125), U, clusters=points.clusters)
    effect = effects_of(flat, after, np.array([False, True, True]), 100, 0)[0]
    assert effect.compression is None
    assert (effect.focal_point, effect.slope_low, effect.loss_low, effect.sticks_to) == (None, None, None, None)
    assert effect.p_slope == 1.0


@given(seed=st.integers(0, 10**6), controls=st.integers(20, 120))
@settings(max_examples=15)
def test_controls_are_beyond_their_own_percentile_in_about_one_resample_of_twenty(seed: int, controls: int) -> None:
    points, after = synthetic(30, [0.8] * controls, seed=seed)
    effects = effects_of(points, after, np.ones(controls, dtype=bool), 100, seed)
    for name in ("p_pull", "p_slope"):
        beyond = [101 / 100 - getattr(effect, name) * 101 / 100 for effect in effects]
        # The percentile is that of the controls of the resample, drawn with repeats: about a twentieth is beyond it.
        assert 0.02 < np.mean(beyond) < 0.12
        assert sum(getattr(effect, name) < 0.05 for effect in effects) <= 0.06 * controls + 1


def test_a_token_far_beyond_the_controls_gets_the_smallest_p_value_there_is() -> None:
    points, after = synthetic(40, [0.0, 0.0] + [0.8] * 50)
    after[:2] = U + np.array([0.1, 1.5])[:, None, None] * (points.before - U)
    effects = effects_of(points, after, np.arange(52) > 1, 250, 0)
    assert effects[0].p_slope == 1 / 251
    assert effects[0].p_pull == 1 / 251
    # Far on the other side is not extreme at all.
    assert effects[1].p_slope == 1.0
    assert effects[1].p_pull == 1.0


def test_a_resample_without_a_point_below_u_counts_for_the_null_hypothesis() -> None:
    before = np.array([0.0, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9])
    points = points_of(before, U)
    after = np.where(np.arange(21)[:, None] == 0, 0.29, before * 0.99)
    effect = effects_of(points, after, np.arange(21) > 0, 400, 3)[0]
    undefined = int((resample_clusters(points.clusters, 400, 3)[:, 0] == 0).sum())
    assert 100 < undefined < 200
    assert effect.p_pull == (1 + undefined) / 401
    # Those that are defined are the same point again and again, which is no interval.
    assert (effect.pull_low, effect.pull_high) == (None, None)
    assert effect.slope_low is not None


def test_whole_clusters_are_resampled() -> None:
    clusters = np.array([0, 0, 1, 2, 2, 2])
    weights = resample_clusters(clusters, 500, 7)
    assert weights.shape == (500, 6)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 5]).all()
    assert (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert weights[:, [0, 2, 3]].mean(axis=0) == pytest.approx([1, 1, 1], abs=0.15)
    assert np.array_equal(weights, resample_clusters(clusters, 500, 7))
    assert not np.array_equal(weights, resample_clusters(clusters, 500, 8))


@given(st.lists(st.floats(0, 1), max_size=60))
@example([])
@settings(max_examples=60)
def test_false_discovery_by_hand(p_values: list[float]) -> None:
    assert false_discovery(np.array(p_values)).tolist() == pytest.approx(slow_benjamini_hochberg(p_values), abs=1e-12)


def test_the_adaptive_threshold_by_hand() -> None:
    values = np.random.default_rng(0).permutation(np.arange(40.0))
    # Q1 = 9.75, Q3 = 29.25, 0.7·IQR = 13.65
    assert adaptive_threshold(values, above=True) == pytest.approx(42.9)
    assert adaptive_threshold(values, above=False) == pytest.approx(-3.9)
    assert adaptive_threshold(values[:39], above=True) is None
    assert adaptive_threshold(np.array([]), above=False) is None


@pytest.fixture
def make_effect() -> Callable[..., Effect]:
    """An effect of which a test names what it is about."""
    plain: dict[str, Any] = dict.fromkeys(Effect.__dataclass_fields__, 0.0)
    plain |= {"points": 10, "severity": "negligible", "sticks_to": None, "p_pull": 1.0, "p_slope": 1.0}
    return lambda **given: Effect(**(plain | given))


@pytest.fixture
def judged(make_effect: Callable[..., Effect]) -> TokenEffects:
    """Forty tokens listed by pull (0–39), forty by slope (30–69), five controls (100–104)."""
    effects = {
        token: make_effect(
            pull=token / 1_000 if token < 40 else 0.0,
            slope=0.8 + token / 1_000 if token >= 30 else 0.9,
            p_pull=(token + 1) / 80,
            p_slope=(70 - token) / 90,
        )
        for token in range(70)
    }
    effects[3] = make_effect(pull=0.9, slope=0.7, p_pull=0.001, p_slope=0.5, severity="weak")
    effects[60] = make_effect(pull=0.0, slope=0.76, p_pull=0.9, p_slope=0.001, loss=0.03)
    effects |= {token: make_effect(pull=0.95 + (token - 100) / 100, slope=0.1) for token in range(100, 105)}
    shortlists = {"definition": list(range(40)), "retention": list(range(69, 29, -1))}
    controls = range(100, 105)
    return TokenEffects(shortlists, controls, effects, common_thresholds(shortlists, effects))


def test_thresholds_come_from_a_protocols_own_shortlist(judged: TokenEffects) -> None:
    pulls = [judged.effects[token].pull for token in range(40)]
    slopes = [judged.effects[token].slope for token in range(30, 70)]
    q1, q3 = slow_percentile(pulls, 25), slow_percentile(pulls, 75)
    definition, retention = judged.thresholds
    assert (definition.protocol, retention.protocol) == PROTOCOLS
    assert definition.value == pytest.approx(q3 + 0.7 * (q3 - q1))
    q1, q3 = slow_percentile(slopes, 25), slow_percentile(slopes, 75)
    assert retention.value == pytest.approx(q1 - 0.7 * (q3 - q1))
    assert (definition.candidates, retention.candidates) == (40, 40)


def test_thirty_nine_candidates_have_no_threshold_and_forty_have(judged: TokenEffects) -> None:
    shortlists = {"definition": list(range(39)), "retention": list(range(40))}
    definition, retention = common_thresholds(shortlists, judged.effects)
    assert (definition.value, definition.candidates) == (None, 39)
    assert definition.is_outlier(judged.effects[3]) == "no_threshold"
    assert retention.value is not None


def test_an_outlier_is_beyond_the_threshold_and_not_on_it(make_effect: Callable[..., Effect]) -> None:
    by_pull, by_slope = Threshold("definition", 0.5, 40), Threshold("retention", 0.5, 40)
    assert by_pull.is_outlier(make_effect(pull=0.51, slope=0.9)) == "yes"
    assert by_pull.is_outlier(make_effect(pull=0.5, slope=0.1)) == "no"
    assert by_slope.is_outlier(make_effect(pull=0.1, slope=0.49)) == "yes"
    assert by_slope.is_outlier(make_effect(pull=0.9, slope=0.5)) == "no"
    assert validation_value("definition", make_effect(pull=0.3, slope=0.4)) == 0.3
    assert validation_value("retention", make_effect(pull=0.3, slope=0.4)) == 0.4


def test_one_row_a_token_and_protocol(judged: TokenEffects) -> None:
    rows = validation_rows(judged, "validated", "float32")
    assert [(row["protocol"], row["token_id"]) for row in rows] == [
        (protocol, token) for protocol in PROTOCOLS for token in sorted(judged.effects)
    ]
    for row in rows:
        effect = judged.effects[row["token_id"]]
        is_definition = row["protocol"] == "definition"
        assert row["value"] == (effect.pull if is_definition else effect.slope)
        assert row["p_value"] == (effect.p_pull if is_definition else effect.p_slope)
        assert row["threshold"] == judged.thresholds[0 if is_definition else 1].value
        assert (row["role"] == "control") == (row["token_id"] >= 100) == (row["outlier"] is None)
        assert row["basis"] == "validated"
        assert not {"p_pull", "p_slope"} & set(row)
        # A control far beyond the threshold is still no sticky token.
        assert row["role"] == "candidate" or effect.slope < judged.thresholds[1].value


@pytest.mark.parametrize(("protocol", "listed"), [("definition", range(40)), ("retention", range(30, 70))])
def test_q_values_are_of_the_protocols_own_shortlist(judged: TokenEffects, protocol: str, listed: range) -> None:
    rows = {
        row["token_id"]: row for row in validation_rows(judged, "screened", "float32") if row["protocol"] == protocol
    }
    assert {token for token, row in rows.items() if row["q_value"] is not None} == set(listed)
    expected = slow_benjamini_hochberg([rows[token]["p_value"] for token in listed])
    assert [rows[token]["q_value"] for token in listed] == pytest.approx(expected)


def test_a_token_can_be_flagged_and_negligible(judged: TokenEffects) -> None:
    flagged = [row for row in validation_rows(judged, "validated", "float32") if row["outlier"] == "yes"]
    assert {(row["protocol"], row["token_id"], row["severity"]) for row in flagged} == {
        ("definition", 3, "weak"),
        ("retention", 60, "negligible"),
    }
    # A threshold is about its own shortlist: token 3 lies beyond that of retention, and is no candidate of it.
    other = [row for row in validation_rows(judged, "validated", "float32") if row["outlier"] == "not_shortlisted"]
    assert ("retention", 3) in {(row["protocol"], row["token_id"]) for row in other}
    assert all(row["q_value"] is None for row in other)


def test_the_summary_counts_and_hands_on_what_the_search_found(judged: TokenEffects) -> None:
    misses = {"belonging": 9, "missed": 1, "rate": 1 / 9, "low": 0.003, "high": 0.48}
    shared = {"rungs": [{"draws": 1, "tokens": 70}], "rank_correlation": {"definition": 0.9, "retention": None}, "u": U}
    found = {"definition": {"rho": 0.5, "low": 0.4, "high": 0.6}, "retention": {"rho": 0.8, "low": None, "high": None}}
    scan = SearchFound(
        rungs=[],
        shortlists={},
        lowest=[],
        reliability=found,
        prediction=found,
        misses={"definition": misses, "retention": None},
        pilot_dropped=[],
    )
    definition, retention = summary_rows(judged, shared, scan)
    assert (definition["protocol"], retention["protocol"]) == PROTOCOLS
    assert (definition["outliers"], retention["outliers"]) == (1, 1)
    assert (definition["u"], definition["rungs"]) == (U, '[{"draws": 1, "tokens": 70}]')
    for name in ("reliability", "prediction"):
        columns = (name, f"{name}_low", f"{name}_high")
        assert [definition[column] for column in columns] == [0.5, 0.4, 0.6]
        assert [retention[column] for column in columns] == [0.8, None, None]
    assert (definition["rank_correlation"], retention["rank_correlation"]) == (0.9, None)
    assert definition["control_median"] == pytest.approx(0.97)
    assert retention["control_median"] == pytest.approx(0.1)
    columns = ("pilot_shortlisted", "pilot_missed", "miss_rate", "miss_low", "miss_high")
    assert [definition[name] for name in columns] == [9, 1, 1 / 9, 0.003, 0.48]
    assert [retention[name] for name in columns] == [None] * 5
