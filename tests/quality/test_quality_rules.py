"""Which findings follow from scores, and from which of the given data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embaudit.corpora.draw import TextPair
from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.declared.rule import Level
from embaudit.measures.quality.alternatives import Alternative
from embaudit.measures.quality.counterfactual import counterfactual_findings, holm, not_after_tokenizer
from embaudit.measures.quality.material import (
    MAX_DATA_SETS,
    MAX_DOCUMENTS,
    MAX_PAIRS,
    material_of,
    sample_material,
    user_material,
)
from embaudit.measures.quality.scale import Layers, layer_findings, limit_findings
from embaudit.measures.quality.scores import ResampledScore
from embaudit.measures.quality.words import participation_ratio


def an_independent_score(value: float, deviation: float, seed: int) -> ResampledScore:
    noise = np.random.default_rng(seed).normal(size=1_000)
    return ResampledScore(value, value + deviation * (noise - noise.mean()) / noise.std(ddof=1))


def an_alternative(name: str, *gains: tuple[float, float], group: str = "pooling") -> Alternative:
    named = {f"data {place}": an_independent_score(*gain, place) for place, gain in enumerate(gains)}
    return Alternative(group, name, "mean pooling", "1_Pooling/config.json", named)


@pytest.mark.parametrize(
    ("gains", "level"),
    [
        ([(0.08, 0.01), (0.08, 0.01)], "problem"),
        ([(0.024, 0.011), (0.062, 0.02)], "problem"),
        # Clear, but too small to matter.
        ([(0.015, 0.001), (0.015, 0.001)], "ok"),
        ([(0.1, 0.01), (0.005, 0.001)], "look"),
        # On one data set only.
        ([(0.08, 0.01), (-0.02, 0.01)], "look"),
        ([(0.08, 0.01)], "look"),
        # Wins here, loses more there.
        ([(0.05, 0.01), (-0.16, 0.04)], "ok"),
        # Clear on average, not on each.
        ([(0.08, 0.01), (0.02, 0.02)], "look"),
        # Large, but not clear: two deviations on one data set, with five alternatives.
        ([(0.08, 0.04), (-0.08, 0.04)], "ok"),
        ([(0.08, 0.04)], "ok"),
        ([(-0.08, 0.01), (-0.08, 0.01)], "ok"),
    ],
)
def test_an_alternative_must_win_clearly_on_two_data_sets(gains: list[tuple[float, float]], level: Level) -> None:
    losers = [an_alternative(f"loser {place}", (-0.02, 0.01), (-0.03, 0.01)) for place in range(4)]
    findings = counterfactual_findings([*losers, an_alternative("cls pooling", *gains)])
    assert [finding.level for finding in findings] == [level]
    if level == "ok":
        assert findings[0].name == "as_declared"
    else:
        assert findings[0].name == "better_pooling"
        assert "1_Pooling/config.json" in findings[0].sentence
        assert ("probably" in findings[0].sentence) == (level == "problem")


def test_the_best_of_a_group_is_named_and_groups_stand_alone() -> None:
    findings = counterfactual_findings(
        [
            an_alternative("max pooling", (0.05, 0.005), (0.05, 0.005)),
            an_alternative("cls pooling", (0.09, 0.005), (0.09, 0.005)),
            an_alternative("lower-cased text", (0.05, 0.005), group="case"),
        ]
    )
    assert [(finding.name, finding.level) for finding in findings] == [
        ("better_pooling", "problem"),
        ("better_case", "look"),
    ]
    assert findings[0].sentence.startswith("Cls pooling beats the declared mean pooling by .09 [")


def test_without_power_nothing_is_said() -> None:
    (finding,) = counterfactual_findings([an_alternative("cls pooling", (0.02, 0.1), (-0.01, 0.2))])
    assert finding.level == "not measured"
    assert "Cannot tell" in finding.sentence


def test_nothing_is_compared_after_a_tokenizer_problem() -> None:
    (finding,) = not_after_tokenizer()
    assert finding.level == "not measured"


def test_holm_is_its_definition() -> None:
    generator = np.random.default_rng(2)
    for _ in range(200):
        p_values = generator.uniform(0, 0.05, 6) ** 1.5
        ranked = sorted(p_values)
        passed = 0
        while passed < 6 and ranked[passed] <= 0.05 / (6 - passed):
            passed += 1
        assert [rejected for rejected, _ in holm(p_values.tolist())] == [p in ranked[:passed] for p in p_values]


def test_holm_finds_nothing_in_noise_19_times_in_20() -> None:
    generator = np.random.default_rng(3)
    wrong = sum(any(one for one, _ in holm(generator.uniform(size=8).tolist())) for _ in range(2_000))
    assert wrong / 2_000 < 0.065


@pytest.mark.parametrize(
    ("values", "deviation", "level", "layer"),
    [
        ([0.5, 0.6, 0.7, 0.75], 0.01, "ok", None),
        # A dip that the end makes up for.
        ([0.5, 0.7, 0.4, 0.72], 0.01, "ok", None),
        # What healthy last layers lose.
        ([0.5, 0.7, 0.75, 0.73], 0.005, "ok", None),
        ([0.5, 0.7, 0.75, 0.70], 0.01, "look", 3),
        ([0.5, 0.7, 0.75, 0.60], 0.01, "problem", 3),
        ([0.5, 0.7, 0.40, 0.42], 0.01, "problem", 2),
        # Not clear.
        ([0.5, 0.7, 0.75, 0.60], 0.1, "ok", None),
    ],
)
def test_a_layer_that_loses_is_named(values: list[float], deviation: float, level: Level, layer: int | None) -> None:
    noise = np.random.default_rng(4).normal(size=(len(values), 1_000)) * deviation / np.sqrt(2)
    scores = tuple(ResampledScore(value, value + row) for value, row in zip(values, noise, strict=True))
    (finding,) = layer_findings([Layers("the pairs", "Spearman's ρ", scores)])
    assert finding.level == level
    assert layer is None or f"Layer {layer} loses most" in finding.sentence


@pytest.mark.parametrize(
    ("limit", "lengths", "level"),
    [
        (16, [16, 16, 16, 9], "problem"),
        (16, [9] * 8, "ok"),
        # Long documents, and a limit that checkpoints have.
        (256, [256, 256, 256], "look"),
        (256, [40] * 19 + [256], "look"),
        (256, [40] * 20 + [256], "ok"),
    ],
)
def test_only_a_limit_of_a_sentence_is_a_problem(limit: int, lengths: list[int], level: Level) -> None:
    (finding,) = limit_findings("made", [[1] * length for length in lengths], limit)
    assert (finding.level, finding.name) == (level, "cut_texts")


def test_the_participation_ratio_counts_directions() -> None:
    generator = np.random.default_rng(5)
    spread = np.zeros((4_000, 32))
    spread[:, :8] = generator.normal(size=(4_000, 8))
    assert participation_ratio(spread) == pytest.approx(8, rel=0.02)
    # A constant offset changes neither directions nor their number.
    offset = np.zeros(32)
    offset[20] = 200
    assert participation_ratio(spread + offset) == pytest.approx(8, rel=0.02)
    assert participation_ratio(np.ones((10, 32))) == 0.0
    few = generator.normal(size=(20, 32))
    rows = few / np.linalg.norm(few, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(np.cov(rows.T))
    assert participation_ratio(few) == pytest.approx(values.sum() ** 2 / (values**2).sum())


# ---- material ----


def test_the_sample_has_both_kinds_of_data() -> None:
    material = sample_material()
    (pairs,), (collection,) = material.pairs, material.collections
    assert len(pairs.scores) == MAX_PAIRS
    assert MAX_DOCUMENTS - 5 < len(collection.documents) <= MAX_DOCUMENTS
    assert len(collection.queries) >= 80
    assert all(grades and max(grades) < len(collection.documents) for grades in collection.relevant)
    assert not material.missing
    assert (pairs.wanted[pairs.is_matching] >= 4).all()
    assert (pairs.wanted[pairs.is_unrelated] <= 1).all()


def test_scores_of_data_sets_are_not_pooled_and_share_the_budget() -> None:
    rows = [TextPair(f"a {place}", f"b {place}", float(place % 6)) for place in range(800)]
    halves = [TextPair(f"c {place}", f"d {place}", place % 2) for place in range(800)]
    material = material_of({"one": rows, "other": halves}, {})
    assert [pairs.name for pairs in material.pairs] == ["one", "other"]
    assert [len(pairs.scores) for pairs in material.pairs] == [MAX_PAIRS // 2] * 2
    assert set(material.pairs[1].wanted[material.pairs[1].is_matching]) == {1.0}


def test_data_sets_of_one_source_keep_their_scales() -> None:
    """A folder of files, or a file with a column that names the data set."""
    rows = [TextPair(f"a {place}", f"b {place}", float(place % 6), data_set="to five") for place in range(40)]
    rows += [TextPair(f"c {place}", f"d {place}", place % 2, data_set="to one") for place in range(40)]
    material = material_of({"folder": rows}, {})
    assert [pairs.name for pairs in material.pairs] == ["to five in folder", "to one in folder"]
    assert [set(pairs.wanted[pairs.is_matching]) for pairs in material.pairs] == [{4.0, 5.0}, {1.0}]


def test_only_the_largest_data_sets_are_read() -> None:
    rows = [
        TextPair(f"a {part} {place}", f"b {place}", float(place % 6), data_set=f"part {part}")
        for part in range(MAX_DATA_SETS + 2)
        for place in range(20 + part)
    ]
    material = material_of({"folder": rows}, {})
    assert [pairs.name for pairs in material.pairs] == [
        f"part {part} in folder" for part in range(2, MAX_DATA_SETS + 2)
    ]
    assert material.missing == (f"2 smaller data sets of pairs: the {MAX_DATA_SETS} largest of them are read.",)


def test_pairs_without_scores_are_said_to_be_missing() -> None:
    material = material_of(
        {"mine": [TextPair("a", "b"), TextPair("c", "d")]}, {"few": (["x"], [("q", {0: 1.0}, frozenset())])}
    )
    assert not material.pairs
    assert not material.collections
    assert "mine" in material.missing[0]
    assert "few" in material.missing[1]


def test_the_readers_results_are_material(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    lines = [f"first {place},second {place},{place % 5}" for place in range(20)]
    table.write_text("\n".join(["sentence1,sentence2,score", *lines]))
    material = user_material([load_corpus("sts", str(table))], [load_judged("sample")])
    assert len(material.pairs[0].scores) == 20
    assert len(material.collections[0].queries) == 20


def test_a_part_of_a_collection_keeps_what_its_queries_need() -> None:
    (collection,) = sample_material().collections
    part, places = collection.first(10, 40)
    assert len(part.queries) == 10
    assert len(part.documents) == len(places) >= 40
    for grades, new in zip(collection.relevant[:10], part.relevant, strict=True):
        assert {collection.documents[p]: g for p, g in grades.items()} == {part.documents[p]: g for p, g in new.items()}
