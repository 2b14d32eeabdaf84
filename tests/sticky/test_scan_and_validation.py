"""The scan and the validation on the real checkpoint: invariance, planning, thresholds, intervals."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.errors import MeasureError
from embaudit.measures.sticky.effects import measure_effects
from embaudit.measures.sticky.pairs import SentencePair
from embaudit.measures.sticky.plan import choose_controls, choose_shortlists, choose_tokens, points_per_token, rank
from embaudit.measures.sticky.scan import ScanScores, prepare_scan, scan_tokens, score_tokens, split_half_reliability
from embaudit.measures.sticky.search import keep_worst
from embaudit.measures.sticky.settings import Rung, StickySettings
from embaudit.measures.sticky.validation import ValidationInputs, prepare_validation, validate_tokens
from embaudit.measures.sticky.verdicts import common_thresholds
from embaudit.profile import load_profile, profile_names

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


def test_a_value_depends_on_no_other_token_batch_or_shard(minilm: Checkpoint) -> None:
    whole_encoder = Encoder(minilm)
    inputs = prepare_scan(whole_encoder, PAIRS, U, copies=8, seed=0)
    draws = range(4)
    whole = scan_tokens(whole_encoder, inputs, TOKENS, draws)
    one_at_a_time = np.concatenate([scan_tokens(Encoder(minilm), inputs, TOKENS[i : i + 1], draws) for i in range(9)])
    small_batches = scan_tokens(Encoder(minilm, tokens_per_batch=64), inputs, TOKENS[::-1].copy(), draws)[::-1]
    assert np.abs(whole - one_at_a_time).max() <= 1e-6
    assert np.abs(whole - small_batches).max() <= 1e-6
    scores, alone = score_tokens(inputs, draws, whole), score_tokens(inputs, draws, one_at_a_time)
    assert np.abs(scores.slope - alone.slope).max() <= 1e-5
    assert np.abs(scores.pull - alone.pull).max() <= 1e-5


def test_similarities_are_those_of_encoding_each_sentence_by_itself(minilm: Checkpoint, encoder: Encoder) -> None:
    inputs = prepare_scan(encoder, PAIRS, U, copies=8, seed=0)
    after = scan_tokens(encoder, inputs, TOKENS[:2], [1])
    content = minilm.content_ids(PAIRS[1].second)
    for row, token in enumerate(TOKENS[:2]):
        vector = encoder.encode_ids([[101, *content, *[int(token)] * 8, 102]])[0]
        expected = encoder.encode_texts([pair.first for pair in PAIRS]) @ vector
        assert np.abs(after[row, 0] - expected).max() <= 1e-6


def test_no_pair_below_u_is_an_error_with_the_lowest_similarity(encoder: Encoder) -> None:
    with pytest.raises(MeasureError, match=r"No sentence pair lies below u = -1\.0000"):
        prepare_scan(encoder, PAIRS, -1.0, copies=8, seed=0)


def test_the_worst_are_kept_by_turns_without_repeats() -> None:
    scores = ScanScores(pull=np.array([0.9, 0.1, 0.8, 0.0]), slope=np.array([0.9, 0.2, 0.1, 0.8]))
    assert keep_worst(scores, 1)[0].tolist() == [0]
    assert keep_worst(scores, 2)[0].tolist() == [0, 2]
    assert keep_worst(scores, 3)[0].tolist() == [0, 1, 2]
    assert keep_worst(scores, 10)[0].tolist() == [0, 1, 2, 3]


def test_split_half_reliability_is_one_for_tokens_that_always_do_the_same(encoder: Encoder) -> None:
    inputs = prepare_scan(encoder, PAIRS, 2.0, copies=8, seed=0)
    kept = np.array([0.2, 0.5, 0.9])
    after = kept[:, None, None] * inputs.before[None]
    reliability = split_half_reliability(inputs, range(4), after)
    assert reliability[1] == pytest.approx(1)


@given(seed=st.integers(0, 10**6))
def test_ranks_are_complete_and_later_rungs_come_first(seed: int) -> None:
    generator = np.random.default_rng(seed)
    draws = generator.choice([1, 3, 15], size=30)
    badness = np.where(generator.random(30) < 0.1, np.nan, generator.normal(size=30))
    ranks = rank(draws, badness)
    assert sorted(ranks) == list(range(1, 31))
    order = np.argsort(ranks)
    for a, b in pairwise(order):
        assert (draws[a], np.nan_to_num(badness[a], nan=-np.inf)) >= (draws[b], np.nan_to_num(badness[b], nan=-np.inf))


def vocabulary(count: int, reachable: int) -> list[dict[str, object]]:
    categories = ["ok"] * reachable + ["unreachable_special"] * (count - reachable)
    return [
        {"token_id": i, "is_reachable": i < reachable, "category": category, "origin": "word"}
        for i, category in enumerate(categories)
    ]


@pytest.mark.parametrize("size", [500, 29_191, 250_000])
def test_quick_stays_within_its_budget_whatever_the_vocabulary(size: int) -> None:
    settings = load_profile("quick").sticky
    assert settings.most_encodes == 64_000
    chosen = choose_tokens(vocabulary(size, size), settings, None, 0)
    scanned, pilot = len(chosen.token_ids), len(chosen.pilot)
    encodes = pilot * settings.scoring_pairs
    left, done = scanned - pilot, 0
    for rung in settings.rungs:
        encodes += left * (rung.draws - done)
        # A rung keeps at least twice what both shortlists hold, here twice two times forty.
        kept = left if rung.keep is None else max(ceil(rung.keep * scanned), 4 * min(40, ceil(0.02 * scanned)))
        done, left = rung.draws, min(left, kept)
    assert done == settings.scoring_pairs
    encodes += (2 * (settings.longest_shortlist or 0) + settings.controls) * points_per_token(settings)
    assert encodes <= 64_000
    assert (scanned < size) == (size == 250_000)


def test_the_whole_vocabulary_of_minilm_fits_quick() -> None:
    assert len(choose_tokens(vocabulary(30_522, 29_191), load_profile("quick").sticky, None, 0).token_ids) == 29_191


def test_a_limit_draws_tokens_by_the_seed_and_reports_how_many_were_eligible() -> None:
    chosen = choose_tokens(vocabulary(100, 80), StickySettings(), 10, seed=1)
    assert (len(chosen.token_ids), chosen.eligible) == (10, 80)
    assert chosen.token_ids.tolist() == sorted(chosen.token_ids.tolist())
    again = choose_tokens(vocabulary(100, 80), StickySettings(), 10, seed=1)
    assert chosen.token_ids.tolist() == again.token_ids.tolist()
    assert chosen.token_ids.max() < 80


def test_nothing_to_scan_is_an_error() -> None:
    with pytest.raises(MeasureError, match="no token to scan"):
        choose_tokens(vocabulary(10, 0), StickySettings(), None, 0)


def test_controls_are_ordinary_and_never_candidates() -> None:
    candidates = np.arange(0, 50)
    controls = choose_controls(vocabulary(200, 150), candidates, 30, 0)
    assert len(controls) == 30
    assert not set(controls) & set(candidates)
    assert controls.max() < 150


def test_shortlists_are_the_share_of_scanned_tokens_by_each_protocol() -> None:
    ids = np.arange(100, 200)
    scores = ScanScores(pull=np.linspace(0, 1, 100), slope=np.linspace(0, 1, 100))
    shortlists = choose_shortlists(ids, scores, 1_000, StickySettings(shortlist_share=0.01, rungs=(Rung(draws=15),)))
    assert shortlists["definition"] == list(range(190, 200))
    assert shortlists["retention"] == list(range(100, 110))


@pytest.fixture(scope="module")
def validated(minilm: Checkpoint) -> tuple[ValidationInputs, np.ndarray]:
    inputs = prepare_validation(Encoder(minilm), PAIRS, U, 8, 0, rotate_operators=False)
    return inputs, validate_tokens(Encoder(minilm), inputs, TOKENS, 8, 0)


def test_validation_values_are_those_of_single_encodes(
    minilm: Checkpoint, validated: tuple[ValidationInputs, np.ndarray]
) -> None:
    inputs, after = validated
    assert after.shape == (9, 12)
    alone = validate_tokens(Encoder(minilm, tokens_per_batch=32), inputs, TOKENS[3:5], 8, 0)
    assert np.abs(after[3:5] - alone).max() <= 1e-6


def test_effects_against_the_equations_by_hand(validated: tuple[ValidationInputs, np.ndarray]) -> None:
    inputs, after = validated
    is_control = np.zeros(9, dtype=bool)
    is_control[5:] = True
    effects = measure_effects(inputs, after, is_control, 200, 0)
    slopes = [np.polyfit(inputs.before, row.astype(float), 1)[0] for row in after]
    below = inputs.before < U
    for t, effect in enumerate(effects):
        assert effect.slope == pytest.approx(slopes[t], abs=1e-6)
        assert effect.loss == pytest.approx(1 - slopes[t] / np.median(slopes[5:]), abs=1e-6)
        assert effect.rho == pytest.approx(np.abs(after[t][below] - U).mean(), abs=1e-6)
        assert effect.pull == pytest.approx(1 - effect.rho / effect.rho_0)
        assert effect.loss_low is not None
        assert effect.loss_high is not None
        assert effect.loss_low <= effect.loss_high


def synthetic(pairs: int, seed: int) -> tuple[ValidationInputs, np.ndarray]:
    generator = np.random.default_rng(seed)
    named = tuple(SentencePair(f"a{i}", f"b{i}", 0.0) for i in range(pairs))
    before = generator.uniform(-0.2, 0.9, pairs)
    inputs = ValidationInputs(named, tuple((i, "prefix") for i in range(pairs)), np.empty((pairs, 0)), before, 0.2)
    kept = np.array([0.4] + [0.8] * 40)
    after = kept[:, None] * before + generator.normal(0, 0.05, (41, pairs))
    return inputs, after


@pytest.mark.slow
def test_the_interval_of_a_known_loss_covers_it_about_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(60):
        inputs, after = synthetic(60, seed)
        effect = measure_effects(inputs, after, np.arange(41) > 0, 300, seed)[0]
        assert effect.loss_low is not None
        assert effect.loss_high is not None
        covered += effect.loss_low <= 0.5 <= effect.loss_high
    # 95 % of 60 is 57; a binomial with p = .95 falls below 51 in less than one of ten thousand cases.
    assert covered >= 51


def test_pairs_that_share_a_sentence_are_one_cluster() -> None:
    pairs = tuple(SentencePair(a, b, 0.0) for a, b in (("x", "y"), ("p", "q"), ("y", "z"), ("r", "s"), ("z", "w")))
    inputs = ValidationInputs(pairs, tuple((i, "suffix") for i in range(5)), np.empty((5, 0)), np.zeros(5), 0.2)
    assert inputs.clusters[0] == inputs.clusters[2] == inputs.clusters[4]
    assert len({inputs.clusters[0], inputs.clusters[1], inputs.clusters[3]}) == 3


@given(seed=st.integers(0, 10**6), count=st.integers(40, 60))
@settings(max_examples=20)
def test_threshold_is_the_quartile_rule(seed: int, count: int) -> None:
    inputs, _ = synthetic(20, seed)
    generator = np.random.default_rng(seed)
    after = generator.uniform(0, 1, (count + 5, 1)) * inputs.before + generator.normal(0, 0.05, (count + 5, 20))
    effects = measure_effects(inputs, after, np.arange(count + 5) >= count, 100, 0)[:count]
    every = range(count)
    thresholds = common_thresholds({"definition": every, "retention": every}, dict(enumerate(effects)))
    by_name = {threshold.protocol: threshold for threshold in thresholds}
    slopes, pulls = sorted(e.slope for e in effects), sorted(e.pull for e in effects)

    def quantile(values: list[float], q: float) -> float:
        place = q * (len(values) - 1)
        low = int(place)
        return values[low] + (place - low) * (values[min(low + 1, len(values) - 1)] - values[low])

    q1, q3 = quantile(slopes, 0.25), quantile(slopes, 0.75)
    assert by_name["retention"].value == pytest.approx(q1 - 0.7 * (q3 - q1))
    q1, q3 = quantile(pulls, 0.25), quantile(pulls, 0.75)
    assert by_name["definition"].value == pytest.approx(q3 + 0.7 * (q3 - q1))
    for effect in effects:
        assert (by_name["retention"].verdict(effect) == "sticky") == (effect.slope < by_name["retention"].value)
        assert (by_name["definition"].verdict(effect) == "sticky") == (effect.pull > by_name["definition"].value)


def test_fewer_than_forty_candidates_have_no_threshold() -> None:
    inputs, after = synthetic(20, 0)
    effects = measure_effects(inputs, after, np.arange(41) > 0, 100, 0)[:39]
    every = range(39)
    for threshold in common_thresholds({"definition": every, "retention": every}, dict(enumerate(effects))):
        assert threshold.value is None
        assert threshold.candidates == 39
        assert threshold.verdict(effects[0]) == "no_threshold"


@pytest.mark.parametrize("name", profile_names())
def test_profiles_load_and_rise_in_draws(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    draws = [rung.draws for rung in profile.sticky.rungs]
    assert draws == sorted(set(draws))
    assert all(rung.keep is not None for rung in profile.sticky.rungs[:-1])
    assert profile.sticky.rungs[-1].keep is None
    kept = [rung.keep for rung in profile.sticky.rungs[:-1]]
    assert kept == sorted(kept, reverse=True)
    assert (profile.sticky.basis == "screened") == (name == "quick")
