"""Keeps an answer that was asked in a terminal or from Python, as flows keep theirs; without Prefect."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from embaudit.questions.answer import AnswerRow
from embaudit.questions.answered import answer_key, rows_of
from embaudit.questions.question import Progress, Question
from embaudit.questions.report import Report
from embaudit.system.address import warehouse_at
from embaudit.system.settings import Settings
from embaudit.words.errors import StorageError
from embaudit_tasks.ask import keep_answer, write_answer


def answer_and_keep(question: Question, progress: Progress, warehouse: str | None = None) -> tuple[Report, str]:
    """A new answer, and the id under which the warehouse has it.

    Raises:
        EmbauditError: if it cannot be answered, or not be kept.
    """
    settings = Settings()
    key, asked = answer_key(question), datetime.now(UTC)
    report = question.answer(progress)
    if not isinstance(report, Report):
        raise TypeError(f"{question.asks} ends in no report")
    rows = rows_of(question, report, key, asked)
    place = str(warehouse_at(warehouse or settings.warehouse_path))
    keep_answer.fn(rows, place, settings.lock_wait_seconds, str(settings.staging))
    answer_id = str(rows[AnswerRow][0]["answer_id"])
    with suppress(StorageError):
        # The rows are kept, and a page can be made again.
        write_answer.fn(report, answer_id, str(settings.reports))
    return report, answer_id
