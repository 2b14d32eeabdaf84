"""Tasks of a question: find an answer that holds, find a new one, keep it, write its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from embaudit.declared.table import Row
from embaudit.pages.html import render
from embaudit.pages.write import write_file
from embaudit.questions.answer import AnswerRow
from embaudit.questions.answered import again
from embaudit.questions.question import Progress, Question
from embaudit.questions.report import Report
from embaudit.steps.results import stage_rows
from embaudit.warehouse.answers import beside_kept, find_answer, is_worse_again
from embaudit.words.errors import StorageError
from embaudit_tasks.publish import publish_checked
from embaudit_tasks.steps import audit_task, say

FOLDER = "answers"


@audit_task("look for an answer", "look for an answer {key}")
def reuse_answer(key: str, warehouse: str, wait_seconds: float, staging: str) -> dict[str, Any] | None:
    """The answer to the same question about the same content, which holds; that it was asked again is recorded."""
    kept = find_answer(warehouse, key, wait_seconds)
    # What is worse than last night is found anew, so that its finding is kept.
    if kept is None or is_worse_again(kept, warehouse, wait_seconds):
        return None
    row = again(kept, datetime.now(UTC))
    keep_answer.fn({AnswerRow: [row]}, warehouse, wait_seconds, staging)
    return row


@audit_task("answer", "{name}")
def answer_question(question: Question, name: str, warehouse: str, wait_seconds: float) -> Report:
    """Find the answer, and what of it is worse than before."""
    report = question.answer(Progress(say))
    if not isinstance(report, Report):
        raise TypeError(f"{question.asks} ends in no report")
    return beside_kept(question, report, warehouse, wait_seconds)


@audit_task("keep the answer")
def keep_answer(
    rows: Mapping[type[Row], Sequence[Mapping[str, Any]]], warehouse: str, wait_seconds: float, staging: str
) -> None:
    """Check and publish the rows of an answer, all or nothing."""
    key = str(rows[AnswerRow][0]["answer_id"])
    staged = [stage_rows(staging, "answer", key, row, list(some)) for row, some in rows.items() if some]
    publish_checked(staged, warehouse, wait_seconds, kept="Other answers are as they were.")


@audit_task("write page", "write page of {answer_id}")
def write_answer(report: Report, answer_id: str, reports: str) -> str:
    """Write ``REPORTS/answers/<answer_id>.html``, replacing an earlier one; returns its path."""
    path = page_of(answer_id, reports)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"Cannot write the page {path}: {error}.", kept="The answer is kept.") from error
    write_file(render(report.page()), path)
    return str(path)


def page_of(answer_id: str, reports: str) -> Path:
    return Path(reports) / FOLDER / f"{answer_id}.html"
