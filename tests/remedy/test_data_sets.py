"""Scored pairs of several data sets: each is ranked on its own scale, and the score is the mean of theirs."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from embaudit.corpora.downstream import in_report, units_of
from embaudit.corpora.downstream.labelled import Classification
from embaudit.corpora.downstream.material import GradedPairs, Judgements, LabelledTexts, pick_graded
from embaudit.corpora.downstream.retrieval import Retrieval, Similarity
from embaudit.corpora.draw import content_order
from embaudit.corpora.load import load_corpus
from embaudit.words.errors import NotMeasurable

Sets = Mapping[str, list[tuple[str, str, float]]]


def two_scales(pairs: int = 40) -> Sets:
    """Scores of 0 to 5 and of 0 to 1, each of which orders its own pairs."""
    generator = np.random.default_rng(0)
    return {
        name: [
            (f"{name} {i}", f"{name} {i} again", round(float(top * value), 3))
            for i, value in enumerate(generator.uniform(0, 1, pairs))
        ]
        for name, top in (("sick", 5), ("small", 1))
    }


def as_files(folder: Path, sets: Sets) -> Path:
    for name, rows in sets.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder


def as_nested_folders(folder: Path, sets: Sets) -> Path:
    for name, rows in sets.items():
        (folder / "v1" / name).mkdir(parents=True)
        lines = (f"{score}\t{first}\t{second}\n" for first, second, score in rows)
        (folder / "v1" / name / "test.tsv").write_text("".join(lines))
    return folder


def as_a_column(folder: Path, sets: Sets) -> Path:
    with (folder / "all.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("dataset", "sentence1", "sentence2", "score"))
        writer.writerows((name, *row) for name, rows in sets.items() for row in rows)
    return folder / "all.csv"


@pytest.mark.parametrize("write", [as_files, as_nested_folders, as_a_column])
def test_pairs_are_ranked_within_their_data_set(write: object, tmp_path: Path) -> None:
    sets = two_scales()
    corpus = load_corpus("sts", str(write(tmp_path, sets)))  # type: ignore[operator]
    pairs = [(pair.first, pair.second, pair.score) for pair in corpus.pairs]
    graded = pick_graded(pairs, 1_000, 0, [pair.data_set for pair in corpus.pairs])
    truth = {first: score for rows in sets.values() for first, _, score in rows}
    share = {first: score / (5 if first.startswith("sick") else 1) for first, score in truth.items()}
    generator = np.random.default_rng(1)
    cosines = np.array([share[first] for first in graded.firsts]) + generator.normal(0, 0.2, len(graded.firsts))
    task = Similarity(graded, np.ones((2, len(cosines))), seed=0)
    own = np.array([first.split()[0] for first in graded.firsts])
    wanted = np.array([truth[first] for first in graded.firsts])
    by_hand = {name: spearmanr(cosines[own == name], wanted[own == name]).statistic for name in ("sick", "small")}
    everything = np.ones(len(cosines), dtype=bool)
    assert task.score(cosines, everything) == pytest.approx(np.mean(list(by_hand.values())))
    assert spearmanr(cosines, wanted).statistic < task.score(cosines, everything) - 0.1  # type: ignore[operator]
    parts = task.by_data_set()
    found = {name: part.score(cosines[places], np.arange(len(places))) for name, (part, places) in parts.items()}
    assert sorted(found.values()) == pytest.approx(sorted(by_hand.values()))  # type: ignore[type-var]
    # The interval is of the difference of the means.
    worse = cosines + generator.normal(0, 0.3, len(cosines))
    difference = np.mean(
        [spearmanr(worse[own == name], wanted[own == name]).statistic - by_hand[name] for name in by_hand]
    )
    low, high = task.interval(cosines, worse, everything, 300, 0) or (1, -1)
    assert low < difference < high < 0


def test_small_data_sets_are_not_drowned_and_unusable_ones_are_named() -> None:
    pairs = [(f"a{i}", f"b{i}", float(i)) for i in range(90)]
    names = ["large"] * 70 + ["small"] * 10 + ["one score"] * 7 + ["tiny"] * 3
    pairs[80:87] = [(first, second, 2.0) for first, second, _ in pairs[80:87]]
    picked = pick_graded(pairs, 44, 0, names)
    count = {name: picked.data_sets.count(name) for name in names}
    assert count == {"large": 24, "small": 10, "one score": 0, "tiny": 0}
    assert picked.left_out == ("one score", "tiny")
    assert dict(zip(picked.firsts, picked.data_sets, strict=True)) == {
        first: name for (first, *_), name in zip(pairs, names, strict=True) if first in picked.firsts
    }
    # One data set with a name is as one without.
    alone = pick_graded(pairs[:70], 30, 0, names[:70])
    assert alone == pick_graded(pairs[:70], 30, 0)
    with pytest.raises(NotMeasurable):
        pick_graded(pairs[80:], 100, 0, names[80:])


def test_a_part_with_few_pairs_of_a_data_set_leaves_it_out() -> None:
    """As a length bin, or a resample, may: ρ of two or three pairs is mostly ±1."""
    wanted = (1.0, 2.0, 3.0, 4.0, 5.0, 0.1, 0.2, 0.3)
    graded = GradedPairs(tuple("abcdefgh"), tuple("stuvwxyz"), wanted, ("one",) * 5 + ("two",) * 3)
    task = Similarity(graded, np.ones((2, 8)), seed=0)
    cosines = np.array([0.1, 0.2, 0.3, 0.5, 0.4, 0.9, 0.8, 0.7])
    assert task.score(cosines, np.arange(8)) == pytest.approx(0.9)
    assert task.score(cosines, np.arange(5, 8)) == pytest.approx(-1)
    assert task.score(cosines, np.array([0, 1, 5, 6])) is None


# ---- halves by content: stable, disjoint, and nothing that is shared lies on both sides ----


TEXTS = [f"text {i}" for i in range(41)]


def test_an_order_hangs_on_the_texts_and_the_seed_alone() -> None:
    forward = [TEXTS[place] for place in content_order(TEXTS, 0)]
    backward = TEXTS[::-1]
    assert [backward[place] for place in content_order(backward, 0)] == forward
    assert [TEXTS[place] for place in content_order(TEXTS, 1)] != forward


def test_units_are_connected_items() -> None:
    units = units_of(6, [(0, 3), (3, 1), (4, 5)])
    assert units[0] == units[1] == units[3]
    assert units[4] == units[5]
    assert len({units[0], units[2], units[4]}) == 3


@given(st.lists(st.integers(0, 12), min_size=2, max_size=60), st.integers(0, 5))
def test_halves_keep_units_whole_and_are_as_even_as_units_allow(of_unit: list[int], seed: int) -> None:
    units = np.array(of_unit)
    report = in_report([f"text {i}" for i in range(len(units))], units, seed)
    for unit in set(of_unit):
        assert len(set(report[units == unit])) == 1
    assert abs(int(report.sum()) - int((~report).sum())) <= np.bincount(units).max()


def test_halves_do_not_hang_on_the_order_of_a_file() -> None:
    units = np.arange(len(TEXTS))
    forward = in_report(TEXTS, units, 3)
    assert (in_report(TEXTS[::-1], units, 3)[::-1] == forward).all()
    assert (in_report(TEXTS, units, 4) != forward).any()


def test_every_class_is_halved() -> None:
    labels = ["a"] * 30 + ["b"] * 11
    report = in_report(TEXTS, np.arange(41), 0, labels)
    assert [int(report[:30].sum()), int(report[30:].sum())] == [15, 5]


def test_what_queries_share_is_on_one_side_and_fits_on_that_side_only() -> None:
    relevant = tuple({i // 3: 1.0} for i in range(30))
    judged = Judgements(tuple(f"d{i}" for i in range(25)), tuple(f"q{i}" for i in range(30)), relevant)
    task = Retrieval(judged, np.arange(25), seed=0)
    assert len(np.unique(task.items.units)) == 10
    report = task.items.is_report
    sides = [{place for q in np.flatnonzero(half) for place in relevant[q]} for half in (report, ~report)]
    assert not sides[0] & sides[1]
    fitted = set(np.flatnonzero(task.fitted_on["document"]).tolist())
    assert sides[1] <= fitted
    assert not sides[0] & fitted
    assert task.items.lengths.tolist() == [i // 3 for i in range(30)]


def test_pairs_with_a_common_sentence_are_one_unit() -> None:
    graded = GradedPairs(("a", "b", "c", "d"), ("x", "y", "a", "e"), (1.0, 2.0, 3.0, 4.0))
    items = Similarity(graded, np.array([[1, 2, 3, 4], [4, 3, 2, 1]]), seed=0).items
    assert items.units[0] == items.units[2]
    assert len(np.unique(items.units)) == 3
    assert items.lengths.tolist() == [4, 3, 3, 4]


@pytest.mark.parametrize("method", ["classification_knn", "classification_logistic"])
def test_classes_of_separated_clusters_are_found_and_random_ones_are_not(method: str) -> None:
    labels = tuple("ab"[i % 2] for i in range(80))
    labelled = LabelledTexts(tuple(f"text {i}" for i in range(80)), labels)
    task = Classification(method, labelled, np.arange(80), folds=4, neighbours=3, seed=0)  # type: ignore[arg-type]
    noise = np.random.default_rng(0).normal(size=(80, 6))
    told = noise * 0.05 + np.array([[1.0, 0, 0, 0, 0, 0] if label == "a" else [0, 1.0, 0, 0, 0, 0] for label in labels])
    assert task.outcomes({"text": told}).mean() == 1
    assert 0.3 < task.outcomes({"text": noise}).mean() < 0.7


def test_no_document_of_one_half_is_learned_from_for_the_other() -> None:
    """In the report half the labels are swapped: learned across the halves they would all be wrong."""
    labelled = LabelledTexts(tuple(f"text {i}" for i in range(80)), tuple("ab"[i % 2] for i in range(80)))
    task = Classification("classification_knn", labelled, np.arange(80), folds=4, neighbours=5, seed=0)
    is_first = (task.labels == "a") ^ task.items.is_report
    spread = np.random.default_rng(0).normal(size=(80, 4)) * 0.01
    vectors = spread + np.where(is_first[:, None], [1.0, 0, 0, 0], [0, 1.0, 0, 0])
    assert task.outcomes({"text": vectors}).mean() == 1
