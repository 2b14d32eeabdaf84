"""Rows that an application loses after its search: at which stage, what stands there instead, and how many are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from searched_stages import DENSE, Searched, ids
from told_in_full import assert_told

import embaudit
from embaudit.pages.ci import checked_of
from embaudit.questions.answered import rows_of
from embaudit.questions.report import AnswerFigureRow, WhyCaseRow
from embaudit.questions.why.application import StageRow
from embaudit.questions.why.question import WhyQuestion
from embaudit.questions.why.stage_trace import inferred, trace_of

WORDS = ids(6, 2, 7, 8)
FUSED = ids(2, 1, 6, 3, 7, 4, 8, 5)
# An application that shows row-3: what a stage gives instead, where it is then lost, how, and after which.
WHOLE = {
    "dense": DENSE,
    "words": WORDS,
    "fused": FUSED,
    "filtered": FUSED[:6],
    "reranked": FUSED[5::-1],
    "shown": ids(4, 7, 3),
}
PLANTED: dict[str, tuple[dict[str, list[str]], str, str, str]] = {
    "nothing": ({}, "", "", ""),
    "dense, and words have it": ({"dense": ids(1, 2, 4, 5), "words": [*WORDS, "row-3"]}, "", "", ""),
    "both branches": (
        {"dense": ids(1, 2, 4), "fused": ids(2, 1, 6), "filtered": ids(2, 1), "reranked": ids(1, 2), "shown": ids(1)},
        "dense",
        "never",
        "",
    ),
    "a fusion": (
        {"fused": ids(2, 1, 6, 7), "filtered": ids(2, 1), "reranked": ids(1, 2), "shown": ids(1)},
        "fused",
        "overtaken",
        "dense",
    ),
    "a filter": (
        {"filtered": ids(2, 1, 6, 7, 4), "reranked": ids(4, 2), "shown": ids(4)},
        "filtered",
        "left out",
        "fused",
    ),
    "a reranker": ({"reranked": ids(4, 7, 2), "shown": ids(4)}, "reranked", "overtaken", "filtered"),
    "a cut": ({"shown": ids(4, 7)}, "shown", "cut", "reranked"),
    "a broken stage": ({"reranked": [], "shown": []}, "reranked", "empty", "filtered"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_loss_is_told_at_its_stage(searched: Searched, name: str) -> None:
    changed, stage, how, before = PLANTED[name]
    report = searched.why(lambda query: WHOLE | changed)
    assert report.stages is not None
    (trace,) = report.stages.traces.values()
    assert (trace.lost_at, trace.how, trace.before) == (stage, how, before)
    # The search itself finds the row: what is lost is the application's.
    assert report.counts == {"found": 1}
    assert (report.verdict, report.exit_code) == (("lost", 1) if stage else ("found", 0))
    (finding,) = [one for one in report.findings if one.name == "stages"]
    assert finding.level == ("problem" if stage else "ok")
    assert stage in finding.sentence
    (row,) = report.rows()[WhyCaseRow]
    assert row["stage"] == (stage or None)
    # Of JUnit's cases, the query's own.
    assert list(checked_of(report))[-1].level == ("problem" if stage else "ok")


def test_what_stands_instead_has_its_rank_before_and_after(searched: Searched) -> None:
    report = searched.why(lambda query: {"dense": DENSE, "reranked": [("row-5", 0.9), ("row-1", 0.5), ("row-9", 0.4)]})
    (case,) = report.as_json()["cases"]
    assert case["stages"]["ranks"] == {"dense": 3, "reranked": None}
    assert case["stages"]["instead"] == [
        {"id": "row-5", "rank": 1, "rank_before": 5, "score": 0.9},
        {"id": "row-1", "rank": 2, "rank_before": 1, "score": 0.5},
        {"id": "row-9", "rank": 3, "rank_before": None, "score": 0.4},
    ]
    sentence = case["stages"]["sentence"]
    assert sentence == (
        "The application loses it at the stage reranked: dense has it 3rd, and reranked has 3 rows, 2 from behind it "
        "or new."
    )
    sections = {section.title: section for section in report.page().sections}
    assert [row[:2] for row in sections["In its place"].parts[0].rows] == [(1, "row-5"), (2, "row-1"), (3, "row-9")]  # type: ignore[union-attr]


def test_golden_queries_are_counted_after_each_stage_and_kept(searched: Searched) -> None:
    asked: list[str] = []

    def application(query: str) -> dict[str, list[str]]:
        asked.append(query)
        row = searched.texts.index(query)
        near = ids(*range(row, row + 6))[::-1]
        return {
            "dense": near,
            "filtered": near if row < 13 else near[:-1],
            "shown": near[-3:] if row < 11 else near[:3],
        }

    report = searched.why(application, 10, 11, 12, 13)
    assert asked == [searched.texts[row] for row in (10, 11, 12, 13)]
    assert report.stages is not None
    assert [(name, *report.stages.left(name)) for name in report.stages.names] == [
        ("dense", 4, 4),
        ("filtered", 3, 4),
        ("shown", 1, 4),
    ]
    assert report.line.startswith("4 of 4 are found")
    assert "the application loses 3 of these" in report.line
    (finding,) = [one for one in report.findings if one.name == "stages"]
    assert finding.sentence == "The application loses 3 of 4 rows (75% [19%, 99%]): 1 at filtered, 2 at shown."
    table = next(one for one in report.page().sections if one.title == "The application's stages").parts[0]
    assert [(row[0], row[1], row[4], row[5]) for row in table.rows] == [  # type: ignore[union-attr]
        ("dense", 4, 0, 6),
        ("filtered", 3, 1, 6),
        ("shown", 1, 2, 3),
    ]
    question = WhyQuestion.of(store=searched.file, function=searched.model, query={"q": "row-1"}, stages=application)
    rows = rows_of(question, report, None, datetime.now(UTC))
    assert [row["stage"] for row in rows[WhyCaseRow]] == [None, "shown", "shown", "filtered"]
    figures = {row["item"]: row["value"] for row in rows[AnswerFigureRow] if row["figure"] == "found"}
    assert figures == {"": 1.0, "dense": 1.0, "filtered": 0.75, "shown": 0.25}


def test_rows_that_are_not_there_are_no_losses_of_the_application(searched: Searched) -> None:
    report = embaudit.why(
        searched.file,
        searched.model,
        "a query",
        "row-none",
        text="text",
        id="id",
        stages=lambda query: {"shown": DENSE},
    )
    assert_told(report)
    assert report.counts == {"absent": 1}
    assert report.stages is not None
    assert not report.stages.traces


def test_some_strange_ids_and_an_empty_stage_are_findings(searched: Searched) -> None:
    report = searched.why(lambda query: {"dense": DENSE, "words": [], "shown": [*DENSE, 99]})
    said = {one.name: (one.level, one.sentence) for one in report.findings}
    assert said["empty_stage"] == ("look", "The stage words gives nothing for this query.")
    assert said["stage_ids"][1].startswith("1 of 6 ids that the stage shown gives are not in the store: '99'.")
    assert report.exit_code == 0


def rows(**stages: str) -> dict[str, list[StageRow]]:
    return {name: [StageRow(one) for one in given] for name, given in stages.items()}


@pytest.mark.parametrize(
    ("stages", "lost_at"),
    [
        (rows(dense="xab", words="bcd", fused="abc"), "fused"),
        (rows(words="bcd", dense="xab", fused="abc"), "fused"),
        (rows(dense="xabc", filtered="abc", shown="ab"), "filtered"),
        # A filter of one branch, beside another one.
        (rows(dense="xabc", filtered="ab", words="cde", fused="abcde"), "filtered"),
        # Neighbours that are put in beside what was found.
        (rows(dense="xabc", widened="abcyz", shown="ay"), "widened"),
        (rows(dense="xab", words="cde"), "words"),
        (rows(dense="ab", words="cx", fused="acx"), ""),
    ],
)
def test_what_a_stage_takes_from_is_seen_from_its_rows(stages: Mapping[str, Sequence[StageRow]], lost_at: str) -> None:
    assert trace_of(stages, frozenset("x"), inferred([stages])).lost_at == lost_at
