"""Keeps an answer that was asked in a terminal or from Python, as flows keep theirs; without Prefect."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from embaudit.questions.answered import rows_of
from embaudit.questions.question import Question
from embaudit.questions.report import AnswerRow, Report
from embaudit.system.settings import Settings, warehouse_at
from embaudit.words.errors import StorageError
from embaudit_tasks.publish import keep_answer, write_answer


def keep(question: Question, report: Report, key: str | None, asked: datetime, warehouse: str | None = None) -> str:
    """The id under which the warehouse has an answer.

    Args:
        key, asked: ``answer_key`` and the time before it was found.

    Raises:
        EmbauditError: if it cannot be kept.
    """
    settings = Settings()
    rows = rows_of(question, report, key, asked)
    place = str(warehouse_at(warehouse or settings.warehouse_path))
    keep_answer.fn(rows, place, settings.lock_wait_seconds, str(settings.staging))
    report.remember()
    answer_id = str(rows[AnswerRow][0]["answer_id"])
    with suppress(StorageError):
        # The rows are kept, and a page can be made again.
        write_answer.fn(report, answer_id, str(settings.reports))
    return answer_id
