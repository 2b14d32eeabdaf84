"""Each verdict from vectors that call for it, and figures beside slow versions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from some_rows import mostly_slow

from embaudit.corpora.downstream import unit_rows
from embaudit.declared.chart import Chart
from embaudit.measures.quality.material import ScoredPairs
from embaudit.pages.html import render
from embaudit.pages.text import print_page
from embaudit.pages.text import render as as_markdown
from embaudit.questions.switch.material import OldAndNew, SwitchedPairs, SwitchedSearch, search_of_vectors
from embaudit.questions.switch.page import switch_page
from embaudit.questions.switch.quality import mean_of, ratio_of
from embaudit.questions.switch.search import MIXED, OLD, measure_search
from embaudit.questions.switch.switch import SwitchReport, switch_vectors
from embaudit.questions.switch.verdict import ScaledPairs, default_cut_off, transfer, transfer_cut_offs
from embaudit.words.errors import MeasureError

DIMENSION, DOCUMENTS, QUERIES = 17, 300, 120


def vectors(seed: int, count: int) -> np.ndarray:
    """In the last of its dimensions, every text has 0."""
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    rows[:, -1] = 0
    return unit_rows(rows)


KNOWN = vectors(1, DOCUMENTS)
RELEVANT = tuple({place: 1.0} for place in range(QUERIES))
ASKED = unit_rows(KNOWN[:QUERIES] + 0.5 * vectors(2, QUERIES))
TURN = np.linalg.qr(np.random.default_rng(3).normal(size=(DIMENSION, DIMENSION)))[0]
ELSEWHERE = np.random.default_rng(9).normal(size=(DOCUMENTS, DIMENSION))
# A text beside each text, near for matching pairs and another for unrelated ones.
NEAR = unit_rows(np.concatenate([KNOWN[:150] + 0.5 * vectors(4, 150), KNOWN[150:][::-1]]))


def pairs_of(old: np.ndarray, near_old: np.ndarray, new: np.ndarray, near_new: np.ndarray) -> SwitchedPairs:
    names = [tuple(f"{side} {place}" for place in range(len(old))) for side in ("one", "two")]
    scored = ScoredPairs("made up", *names, (5.0,) * 150 + (0.0,) * 150)
    return SwitchedPairs(scored, OldAndNew(old, new), OldAndNew(near_old, near_new))


def reported(change, *, queries: int = QUERIES, judged: bool = True, **options: object) -> SwitchReport:  # type: ignore[no-untyped-def]
    asked = OldAndNew(ASKED[:queries], change(ASKED[:queries]))
    known = OldAndNew(KNOWN, change(KNOWN))
    search = search_of_vectors(known, asked, RELEVANT[:queries] if judged else ())
    return switch_vectors([pairs_of(KNOWN, NEAR, change(KNOWN), change(NEAR))], [search], **options)  # type: ignore[arg-type]


def offset(rows: np.ndarray) -> np.ndarray:
    """The cosine c becomes (c + .64) / 1.64: every text gets a part that is common to all."""
    return rows + 0.8 * (np.arange(DIMENSION) == DIMENSION - 1)


def unlike(rows: np.ndarray) -> np.ndarray:
    """Near a document's new place, which has nothing to do with where it was: no linear map leads back."""
    return ELSEWHERE[(rows @ KNOWN.T).argmax(axis=1)] + 0.1 * rows


CASES = {
    "same index": lambda rows: rows.copy(),
    "new threshold only": offset,
    "bridge holds": lambda rows: rows @ TURN,
    "rebuild": unlike,
}


@pytest.mark.parametrize("judged", mostly_slow([True, False], 1))
@pytest.mark.parametrize("verdict", CASES)
def test_a_verdict_from_vectors_that_call_for_it(verdict: str, judged: bool) -> None:
    report = reported(CASES[verdict], judged=judged)
    assert report.verdict == verdict, report.line
    assert report.line.startswith(verdict.capitalize().split(" only")[0].split(" holds")[0])
    json.dumps(report.as_json(), allow_nan=False)
    page = switch_page(report)
    assert page.findings[0].sentence == report.line
    assert report.line.split("(")[0][:20] in render(page)
    print_page(page)
    assert "# Switch" in as_markdown(page)


def test_too_few_queries_tell_nothing() -> None:
    one = reported(unlike, queries=1)
    assert one.verdict == "could not be told"
    assert "too few queries for an interval (1)" in one.line
    assert {finding.name for finding in one.findings if finding.level == "not measured"} >= {"overlap"}
    # That the vectors are the same needs no queries.
    assert reported(lambda rows: rows.copy(), queries=1).verdict == "same index"


def test_an_interval_on_both_sides_of_what_a_bridge_must_keep_tells_nothing() -> None:
    report = reported(lambda rows: rows @ TURN + 0.5 * unlike(rows), judged=False)
    (outcome,) = report.searches
    kept = outcome.ways[outcome.bridge or ""].kept
    assert kept.low is not None
    assert kept.high is not None
    assert kept.value is not None
    middle = reported(lambda rows: rows @ TURN + 0.5 * unlike(rows), judged=False, holds=kept.value - 0.002)
    assert middle.verdict == "could not be told"
    assert "queries would tell" in middle.line
    lower = reported(lambda rows: rows @ TURN + 0.5 * unlike(rows), judged=False, holds=kept.low - 0.01)
    assert lower.verdict == "bridge holds"
    higher = reported(lambda rows: rows @ TURN + 0.5 * unlike(rows), judged=False, holds=kept.high + 0.01)
    assert higher.verdict == "rebuild"


def test_other_dimensions_may_not_be_mixed_and_can_be_bridged() -> None:
    wider = reported(lambda rows: np.pad(rows @ TURN, [(0, 0), (0, 4)]))
    assert wider.same_text is None
    assert MIXED not in wider.searches[0].ways
    assert wider.verdict == "bridge holds"
    assert "17 dimensions become 21" in wider.line
    narrower = reported(lambda rows: rows[:, :4])
    assert narrower.verdict == "rebuild"
    assert narrower.findings[0].sentence.startswith("They may not be mixed: OLD's vectors have 17 dimensions, NEW's 4")


def test_half_precision_is_the_same_index_and_a_longer_vector_is_not() -> None:
    exact, rounded = (reported(lambda rows, digits=digits: unit_rows(np.round(rows, digits))) for digits in (6, 2))
    assert [one.verdict for one in (exact, rounded)] == ["same index"] * 2
    assert ["half precision" in one.line for one in (exact, rounded)] == [False, True]
    assert reported(lambda rows: 1.5 * rows).verdict == "new threshold only"


def test_overlap_and_scores_are_those_of_counting() -> None:
    search = search_of_vectors(OldAndNew(KNOWN, unlike(KNOWN)), OldAndNew(ASKED, unlike(ASKED)), RELEVANT)
    found = measure_search(search)

    def ten(asked: np.ndarray, known: np.ndarray) -> list[int]:
        near = [float(asked @ row / np.linalg.norm(asked) / np.linalg.norm(row)) for row in known]
        return sorted(range(len(near)), key=lambda place: -near[place])[:10]

    old = [ten(asked, KNOWN) for asked in ASKED]
    new = [ten(asked, unlike(KNOWN)) for asked in unlike(ASKED)]
    np.testing.assert_allclose(
        found.overlaps, [len(set(one) & set(two)) / 10 for one, two in zip(old, new, strict=True)]
    )
    gains = [1 / math.log2(one.index(query) + 2) if query in one else 0.0 for query, one in enumerate(old)]
    (change,) = switch_vectors([], [search]).quality
    assert change.old.value == pytest.approx(np.mean(gains))
    worst = found.read[0]
    query = int(worst.query.split()[1])
    assert worst.old == tuple(f"document {place}" for place in old[query][:3])
    assert worst.overlap == found.overlaps.min()


def test_a_text_is_not_its_own_neighbour() -> None:
    report = switch_vectors([], [search_of_vectors(OldAndNew(KNOWN, KNOWN @ TURN))])
    assert report.verdict == "bridge holds"
    for one in report.searches[0].read:
        assert one.query not in (*one.old, *one.new)
    assert report.searches[0].ways[OLD].found.value == pytest.approx(1.0)


def test_decisions_that_flip_are_counted() -> None:
    generator = np.random.default_rng(0)
    old = generator.uniform(size=400)
    new = np.where(np.arange(400) % 4 == 0, 1 - old, old)
    kinds = np.arange(400) < 200
    found = transfer(ScaledPairs("made up", old, new, kinds, ~kinds, np.arange(400)), 0.6)
    assert found.flips_at_old.value == np.mean((old > 0.6) != (new > 0.6))
    assert found.new.value is not None
    assert found.flips_at_new.value == np.mean((old > 0.6) != (new > found.new.value))
    assert found.let_through[1].value == np.mean(new[200:] > 0.6)
    assert found.kept[0].value == np.mean(old[:200] > 0.6)


def test_the_default_cut_off_lets_1_percent_through_where_that_are_enough_pairs() -> None:
    generator = np.random.default_rng(0)
    similar = np.concatenate([generator.normal(0.7, 0.1, 1_000), generator.normal(0.1, 0.1, 1_000)])
    kinds = np.arange(2_000) < 1_000
    many = ScaledPairs("many", similar, similar, kinds, ~kinds, np.arange(2_000))
    number, how = default_cut_off(many)
    assert how.startswith("lets 1 %")
    assert np.mean(similar[1_000:] > number) == 0.01
    places = np.r_[0:100, 1_000:1_100]
    few = ScaledPairs("few", similar[places], similar[places], kinds[places], ~kinds[places], places)
    number, how = default_cut_off(few)
    assert how.startswith("best F₁")
    assert 0.2 < number < 0.6
    none = ScaledPairs("none", similar[:10], similar[:10], kinds[:10], ~kinds[:10], np.arange(10))
    assert transfer_cut_offs([none]) == []


def test_resampled_means_and_ratios() -> None:
    values = np.random.default_rng(0).uniform(size=200)
    found = mean_of(values, np.arange(200))
    half = 1.96 * values.std(ddof=1) / np.sqrt(200)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.01)
    # The same in every unit is no certainty; nor is anything with nine units.
    assert ratio_of(values, values, np.arange(200)).low == pytest.approx(0.025 ** (1 / 200))
    assert mean_of(values, np.arange(200) % 9).low is None
    assert ratio_of(values, np.zeros(200), np.arange(200)).value is None


BAD = {
    "NEW has NaN or infinity in 1 of 300 vectors, row 7": lambda: OldAndNew(
        KNOWN, np.where(np.arange(DOCUMENTS)[:, None] == 7, np.nan, KNOWN)
    ),
    "a row for each, not arrays of (300, 17) and (299, 17)": lambda: OldAndNew(KNOWN, KNOWN[1:]),
    "the index has 9 different documents": lambda: search_of_vectors(OldAndNew(KNOWN[:9], KNOWN[:9])),
    "the index has no queries": lambda: search_of_vectors(OldAndNew(KNOWN, KNOWN), OldAndNew(ASKED[:0], ASKED[:0])),
    "NEW's vectors of queries and of documents have 8 and 17": lambda: search_of_vectors(
        OldAndNew(KNOWN, KNOWN), OldAndNew(ASKED, ASKED[:, :8])
    ),
    "120 queries with 120 texts and 1 judgement,": lambda: search_of_vectors(
        OldAndNew(KNOWN, KNOWN), OldAndNew(ASKED, ASKED), [{0: 1.0}]
    ),
    "All 300 vectors of NEW are zero": lambda: OldAndNew(KNOWN, 0 * KNOWN),
    "nothing to compare": lambda: switch_vectors(),
}


@pytest.mark.parametrize("said", BAD)
def test_vectors_that_cannot_be_compared_are_named(said: str) -> None:
    with pytest.raises(MeasureError) as raised:
        BAD[said]()
    assert said in raised.value.happened


def test_another_similarity_is_said() -> None:
    search = search_of_vectors(OldAndNew(KNOWN, KNOWN @ TURN), similarities=("cosine", "dot"))
    (said,) = (one for one in switch_vectors([], [search]).findings if one.name == "similarity")
    assert said.sentence.startswith("OLD is compared by cosine, NEW by dot")


def test_a_small_change_may_need_no_map() -> None:
    """Noise that no map takes away."""
    report = reported(lambda rows: unit_rows(rows + 0.2 * (unlike(rows) - 0.1 * rows)), judged=False, holds=0.5)
    (outcome,) = report.searches
    best = max((way.kept.value or 0, name) for name, way in outcome.ways.items() if name not in (OLD, "NEW alone"))
    assert outcome.bridge == best[1]


def test_a_search_is_of_one_form() -> None:
    search = search_of_vectors(OldAndNew(KNOWN, KNOWN))
    assert isinstance(search, SwitchedSearch)
    assert search.asks_itself
    assert not search.is_judged


def charts_of(report: SwitchReport) -> dict[str, Chart]:
    parts = (part for section in switch_page(report).sections for part in section.parts)
    return {part.title: part for part in parts if isinstance(part, Chart)}


def test_its_charts_show_every_query_and_the_pairs_beside_both_cut_offs() -> None:
    report = reported(offset, thresholds=(0.3,))
    charts = charts_of(report)
    assert set(charts) == {"How many of a query's first ten stay", *(f"The scale, {one.name}" for one in report.scales)}

    (panel,) = charts["How many of a query's first ten stay"].panels
    bars = {(bar.x + bar.x2) / 2: bar.y2 for bar in panel.layers[0].marks}  # type: ignore[operator]
    tens = [round(10 * share) for share in report.searches[0].overlaps]
    assert bars == {ten: tens.count(ten) for ten in set(tens)}
    assert all(
        f"{int(ten)} of 10 the same: {count}" in [bar.label for bar in panel.layers[0].marks]
        for ten, count in bars.items()
    )

    scale = report.scales[0]
    (panel,) = charts[f"The scale, {scale.name}"].panels
    shown = {(mark.series, mark.x, mark.y) for layer in panel.layers if layer.kind == "point" for mark in layer.marks}
    kinds = np.where(scale.is_matching, "matching", np.where(scale.is_unrelated, "unrelated", "between"))
    assert shown == {(str(kind), float(x), float(y)) for kind, x, y in zip(kinds, scale.old, scale.new, strict=True)}
    moved = next(one for one in report.cut_offs if one.name == scale.name)
    lines = [mark for layer in panel.layers if layer.kind == "rule" for mark in layer.marks]
    assert [(line.x, line.y) for line in lines] == [(moved.old, None), (None, moved.new.value)]
    assert moved.new.value == pytest.approx((moved.old + 0.64) / 1.64, abs=0.02)
