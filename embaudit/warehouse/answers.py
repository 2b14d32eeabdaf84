"""Reads answers that are kept: to the same question about the same content, and what they were before."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from embaudit.questions.answered import question_key
from embaudit.questions.question import Question
from embaudit.questions.report import AnswerFigure, AnswerRow, Report
from embaudit.questions.worse import ROWS_GONE, VERDICTS, EarlierFigure, beside_earlier, falls
from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.named import FIGURES


def find_answer(warehouse: Warehouse | str, content_key: str, wait_seconds: float) -> dict[str, Any] | None:
    """The last answer to a question about this content; None if there is none."""
    return _newest(warehouse, "content_key", content_key, wait_seconds)


def latest_answer(warehouse: Warehouse | str, question_key: str, wait_seconds: float) -> dict[str, Any] | None:
    """The last answer to a question, as it was asked; None if it was never asked."""
    return _newest(warehouse, "question_key", question_key, wait_seconds)


def accepted_answers(warehouse: Warehouse | str, answer_ids: Collection[str], wait_seconds: float) -> set[str]:
    """Those of these answers of which somebody accepted what is wrong."""
    if not answer_ids:
        return set()
    with open_reader(warehouse_at(warehouse), wait_seconds) as connection:
        rows = connection.execute(
            "SELECT history.answer_id FROM answer_history AS history JOIN acceptance AS accepted "
            "ON accepted.what = 'answer' AND accepted.audit_id = history.first_answer_id "
            "WHERE list_contains(?, history.answer_id)",
            [list(answer_ids)],
        ).fetchall()
    return {str(answer_id) for (answer_id,) in rows}


def beside_kept(question: Question, report: Report, warehouse: Warehouse | str, wait_seconds: float) -> Report:
    """A report that also says what is worse than in the answers before, without what somebody accepted of them."""
    key = question_key(question)
    accepted = _rows(
        warehouse,
        "SELECT max(accepted) FROM acceptance JOIN answer ON answer_id = audit_id "
        "WHERE what = 'answer' AND question_key = $question HAVING count(*) > 0",
        {"question": key},
        wait_seconds,
    )
    for (until,) in accepted:
        report = report.accept(until)
    return beside_earlier(report, _before(warehouse, key, wait_seconds), getattr(question, "lost", ROWS_GONE.problem))


def is_worse_again(row: Mapping[str, Any], warehouse: Warehouse | str, wait_seconds: float) -> bool:
    """Whether an answer that was well holds again, and is worse than what was answered since.

    Args:
        row: of the answer that would hold.
    """
    if row["level"] == "problem":
        return False
    figures = _rows(warehouse, FIGURES, {"id": row["computed_id"]}, wait_seconds)
    before = _before(warehouse, row["question_key"], wait_seconds)
    lost = json.loads(row["question"]).get("lost", ROWS_GONE.problem)
    return any(falls((AnswerFigure(*figure) for figure in figures), before, lost))


def _before(warehouse: Warehouse | str, question_key: str, wait_seconds: float) -> dict[tuple[str, str], EarlierFigure]:
    """By figure and item, the newest of a question that had not fallen, or whose fall somebody accepted.

    Of rows, the most since then.
    """
    rows = _rows(
        warehouse,
        """
        WITH history AS (
            SELECT
                *,
                EXISTS (
                    FROM acceptance
                    WHERE acceptance.what = 'answer' AND acceptance.audit_id = first_answer_id
                ) AS is_accepted,
                EXISTS (
                    FROM answer_finding AS finding
                    WHERE finding.answer_id = computed_id AND finding.level = 'problem'
                    AND list_contains($falls, finding.name)
                ) AS has_fallen
            FROM answer_history
            WHERE question_key = $question
        )
        SELECT told.figure, told.item, told.value, told.low, told.high, told.of, history.asked
        FROM history
        JOIN answer_figure AS told ON told.answer_id = history.computed_id
        WHERE (is_accepted OR NOT has_fallen)
        AND (
            told.figure <> 'rows'
            OR NOT EXISTS (
                FROM history AS later
                WHERE later.is_accepted AND later.has_fallen AND later.asked > history.asked
            )
        )
        QUALIFY row_number() OVER (
            PARTITION BY told.figure, told.item
            ORDER BY CASE told.figure WHEN 'rows' THEN told.value END DESC, history.asked DESC
        ) = 1
        """,
        {"question": question_key, "falls": list(VERDICTS)},
        wait_seconds,
    )
    return {(figure, item): EarlierFigure(*rest) for figure, item, *rest in rows}


def _newest(warehouse: Warehouse | str, column: str, key: str, wait_seconds: float) -> dict[str, Any] | None:
    columns = tuple(AnswerRow.table.columns)
    sql = f"SELECT {', '.join(columns)} FROM answer WHERE {column} = $key ORDER BY asked DESC, answer_id LIMIT 1"
    rows = _rows(warehouse, sql, {"key": key}, wait_seconds)
    return dict(zip(columns, rows[0], strict=True)) if rows else None


def _rows(
    warehouse: Warehouse | str, sql: str, parameters: Mapping[str, Any], wait_seconds: float
) -> list[tuple[Any, ...]]:
    """None, too, if there is no warehouse yet, or it has kept no answer."""
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return []
    with open_reader(place, wait_seconds) as connection:
        if not connection.execute("FROM duckdb_tables() WHERE table_name = 'answer'").fetchall():
            return []
        return connection.execute(sql, dict(parameters)).fetchall()
