"""Yes where a temperature helps, no where it does not, and nothing averaged over fewer than two."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from toy import documents, encode

from embaudit.corpora.downstream.labelled import Classification
from embaudit.corpora.downstream.material import Judgements, LabelledTexts
from embaudit.corpora.downstream.retrieval import Retrieval
from embaudit.measures.tempscale import ArmScore, Choice
from embaudit.measures.tempscale.compare import bins_of, compare

GRID = (1.0, 0.9, 0.7, 0.5)
LABELS = ["abc"[i % 3] for i in range(240)]
Found = tuple[list[ArmScore], list[Choice]]


def ask(flip: bool = False, lengths: np.ndarray | None = None, **options: object) -> Found:
    """The toy's classification; ``flip``: attention prefers what says nothing."""
    tokens, logits = documents(LABELS, noise=1.4)
    logits = -logits if flip else logits
    labelled = LabelledTexts(tuple(f"document {i}" for i in range(240)), tuple(LABELS))
    lengths = np.full(240, 50) if lengths is None else lengths
    task = Classification("classification_knn", labelled, lengths, folds=5, neighbours=5, seed=0)
    by_tau = {tau: {"text": encode(tokens, logits, tau)} for tau in GRID}
    pieces = {"text": tokens[:, 0]}
    return compare(task, by_tau, pieces, resamples=300, seed=0, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def helped() -> Found:
    return ask()


def overall(found: Found) -> Choice:
    return next(choice for choice in found[1] if choice.bin == 0)


def test_a_temperature_that_helps_is_recommended(helped: Found) -> None:
    choice = overall(helped)
    assert (choice.recommendation, choice.tau) == ("yes", 0.5)
    assert choice.low is not None
    assert choice.low > 0
    assert choice.difference == pytest.approx(choice.score_after - choice.score_before)  # type: ignore[operator]
    scores = [row.score for row in helped[0] if row.split == "report" and row.bin == 0 and row.arm != "whitening"][:4]
    assert scores == sorted(scores)  # type: ignore[type-var]


def test_a_temperature_that_harms_is_not() -> None:
    choice = overall(ask(flip=True))
    assert choice.recommendation == "no"
    assert choice.score_before == pytest.approx(1 / 3, abs=0.12)


def test_a_temperature_that_does_nothing_is_not() -> None:
    tokens, logits = documents(LABELS, noise=1.4)
    labelled = LabelledTexts(tuple(f"document {i}" for i in range(240)), tuple(LABELS))
    task = Classification("classification_logistic", labelled, np.full(240, 50), folds=5, neighbours=5, seed=0)
    same = {"text": encode(tokens, logits, 1.0)}
    rows, (choice, _) = compare(task, dict.fromkeys(GRID, same), None, resamples=300, seed=0)
    assert (choice.recommendation, choice.tau, choice.difference) == ("no", 1.0, None)
    assert "no other temperature" in choice.reason
    assert {row.difference for row in rows if row.arm == "temperature"} == {0.0}


@pytest.mark.slow
def test_where_no_temperature_helps_few_checkpoints_get_a_yes() -> None:
    """Noise in place of a temperature: the chosen τ is the luckiest of three, and must not carry its luck over.

    A percentile interval of thirty queries is somewhat too narrow, so that more than the nominal one in forty may say
    yes: the bound is what one in twenty would give in 99 of 100 repeats, and the seed is not a chosen one.
    """
    draws = 160
    generator = np.random.default_rng(0)
    judged = Judgements(
        tuple(f"d{i}" for i in range(60)), tuple(f"q{i}" for i in range(60)), tuple({i: 1.0} for i in range(60))
    )
    task = Retrieval(judged, np.full(60, 9), seed=0)
    said_yes = 0
    for _ in range(draws):
        truth = generator.normal(size=(60, 8))
        by_tau = {tau: {"document": truth, "query": truth + generator.normal(0, 1.2, size=(60, 8))} for tau in GRID}
        said_yes += overall(compare(task, by_tau, None, resamples=200, seed=0)).recommendation == "yes"
    print(f"{said_yes} of {draws} said yes")
    assert said_yes <= binom.ppf(0.99, draws, 0.05)


def test_every_arm_stands_beside_it_on_the_same_items(helped: Found) -> None:
    rows, _ = helped
    report = {(row.arm, row.tau): row for row in rows if row.split == "report" and row.bin == 0}
    assert set(report) == {
        ("none", 1.0),
        *(("temperature", tau) for tau in GRID[1:]),
        *((name, 1.0) for name in ("chunk_average", "whitening", "centring")),
    }
    assert {row.items for row in report.values()} == {120}
    assert report["chunk_average", 1.0].score == 1
    none = report["none", 1.0]
    assert (none.difference, none.low, none.high) == (None, None, None)
    for arm, row in report.items():
        if arm != ("none", 1.0):
            assert row.difference == pytest.approx(row.score - none.score)  # type: ignore[operator]
            assert row.low <= row.difference <= row.high  # type: ignore[operator]


def test_baselines_are_not_scored_where_they_were_fitted_and_choosing_has_no_interval(helped: Found) -> None:
    rows, _ = helped
    chosen_on = [row for row in rows if row.split == "choose"]
    assert {row.arm for row in chosen_on} == {"none", "temperature"}
    assert all(row.low is None and row.high is None for row in chosen_on)


def test_bins_of_lengths_are_halved_alike_and_small_ones_are_reported_not_averaged() -> None:
    lengths = np.where(np.arange(240) < 120, 50, 450)
    lengths[0] = 99_999
    rows, choices = ask(lengths=lengths)
    assert [(choice.bin_low, choice.bin_high) for choice in choices] == [
        (None, None),
        (0, 100),
        (400, 500),
        (16_000, None),
    ]
    lonely = [row for row in rows if row.bin_low == 16_000]
    assert {row.items for row in lonely} == {0, 1}
    assert all(row.score is None and row.difference is None for row in lonely)
    assert choices[-1].recommendation == "no"
    assert "too few" in choices[-1].reason
    for split in ("choose", "report"):
        sizes = [row.items for row in rows if row.arm == "none" and row.split == split]
        assert sizes[0] == sum(sizes[1:])


def test_a_bin_with_few_units_has_no_interval_and_no_yes() -> None:
    lengths = np.full(240, 50)
    lengths[:12] = 150
    _, choices = ask(lengths=lengths)
    small = choices[-1]
    assert small.bin_low == 100
    assert small.units < 10
    assert small.recommendation == "no"
    assert small.low is None


def test_edges_belong_to_the_bin_above() -> None:
    found = [(one.low, one.holds.tolist()) for one in bins_of(np.array([0, 99, 100, 500]))]
    assert found == [
        (None, [True] * 4),
        (0, [True, True, False, False]),
        (100, [False, False, True, False]),
        (500, [False, False, False, True]),
    ]


def test_an_unsupported_family_keeps_its_baselines() -> None:
    tokens, logits = documents(LABELS, noise=1.4)
    labelled = LabelledTexts(tuple(f"document {i}" for i in range(240)), tuple(LABELS))
    task = Classification("classification_knn", labelled, np.full(240, 50), folds=5, neighbours=5, seed=0)
    plain = {"text": encode(tokens, logits, 1.0)}
    rows, choices = compare(task, {1.0: plain}, plain, resamples=200, seed=0, unsupported="it squashes its logits")
    assert {(choice.recommendation, choice.tau, choice.reason) for choice in choices} == {
        ("unsupported", None, "it squashes its logits")
    }
    assert {row.arm for row in rows} == {"none", "chunk_average", "whitening", "centring"}
