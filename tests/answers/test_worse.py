"""What of an answer is worse than before: over a table of figures, against the definition in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embaudit.questions.report import AnswerFigure
from embaudit.questions.worse import EarlierFigure, falls

THEN = datetime(2026, 11, 27, 2, tzinfo=UTC)
SHARE = st.floats(0, 1)

CASES = {
    "recall, intervals apart": ("recall_at_10", "", (0.6, 0.55, 0.65), (0.9, 0.85, 0.95), "recall_fell"),
    "recall, intervals that meet": ("recall_at_10", "", (0.8, 0.75, 0.85), (0.9, 0.85, 0.95), None),
    "recall that rose": ("recall_at_10", "", (0.9, 0.85, 0.95), (0.6, 0.55, 0.65), None),
    "recall under the filter": ("recall_at_10", "filtered", (0.6, 0.55, 0.65), (0.9, 0.85, 0.95), "recall_fell"),
    "a setting that was tried": ("recall_at_10", "efSearch=8", (0.6, 0.55, 0.65), (0.9, 0.85, 0.95), None),
    "a tenant": ("recall_at_10", "for acme", (0.1, 0.05, 0.15), (0.9, 0.85, 0.95), None),
    "all of 100 found, then .96": ("recall_at_10", "", (0.95, 0.94, 0.96), (1.0, None, None), "recall_fell"),
    "all of 100 found, then .98": ("recall_at_10", "", (0.97, 0.96, 0.98), (1.0, None, None), None),
    "none of 100 found any more": ("recall_at_10", "", (0.0, None, None), (0.9, 0.85, 0.95), "recall_fell"),
    "a tenth of the rows": ("rows", "", (90, None, None), (100, None, None), "rows_gone"),
    "less than a tenth": ("rows", "", (91, None, None), (100, None, None), None),
    "all rows": ("rows", "", (0, None, None), (100, None, None), "rows_gone"),
    "rows that came": ("rows", "", (200, None, None), (100, None, None), None),
    "none then": ("rows", "", (0, None, None), (0, None, None), None),
    "another figure": ("copies", "", (0, None, None), (100, None, None), None),
}


@pytest.mark.parametrize(("figure", "item", "now", "was", "name"), CASES.values(), ids=CASES)
def test_what_is_worse(
    figure: str,
    item: str,
    now: tuple[float, float | None, float | None],
    was: tuple[float, float | None, float | None],
    name: str | None,
) -> None:
    found = list(
        falls([AnswerFigure(figure, now[0], item, *now[1:], 100)], {(figure, item): EarlierFigure(*was, 100, THEN)})
    )
    assert [finding.name for finding in found] == ([] if name is None else [name])
    for finding in found:
        assert finding.level == "problem"
        assert "2026-11-27" in finding.sentence
        assert finding.advice


def test_what_nothing_is_known_of_is_not_worse() -> None:
    assert not list(falls([AnswerFigure("rows", 0), AnswerFigure("recall_at_10", 0.0, low=0.0, high=0.1)], {}))


@given(st.lists(SHARE, min_size=3, max_size=3).map(sorted), st.lists(SHARE, min_size=3, max_size=3).map(sorted))
def test_recall_never_falls_both_ways_nor_beside_itself(one: list[float], other: list[float]) -> None:
    def fell(now: list[float], was: list[float]) -> bool:
        before = {("recall_at_10", ""): EarlierFigure(was[1], was[0], was[2], None, THEN)}
        return bool(list(falls([AnswerFigure("recall_at_10", now[1], low=now[0], high=now[2])], before)))

    assert not fell(one, one)
    assert not (fell(one, other) and fell(other, one))
    assert fell(one, other) == (one[2] < other[0])
