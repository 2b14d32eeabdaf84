"""What a name stands for among answers: the newest to each question about it, or one by its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import duckdb

from embaudit.declared.rule import Level
from embaudit.questions.answer import AnswerFigure
from embaudit.warehouse.named import LATEST, PREVIOUS
from embaudit.words.errors import UsageError
from embaudit.words.masking import shown_place

# Names of answers that are told.
TOLD = 4


@dataclass(frozen=True)
class KeptAnswer:
    """One answer as ``answer`` has it.

    Attributes:
        computed_id: the answer that has its findings and figures.
    """

    answer_id: str
    question_key: str
    content_key: str | None
    computed_id: str
    asked: datetime
    asks: str
    subject: str
    verdict: str
    level: Level
    line: str


COLUMNS = ", ".join(KeptAnswer.__dataclass_fields__)
# Of the answer that was computed, in the order of ``AnswerFigure``.
FIGURES = "SELECT figure, value, item, low, high, of FROM answer_figure WHERE answer_id = $id ORDER BY item, figure"


def find_answers(connection: duckdb.DuckDBPyConnection, given: str) -> list[KeptAnswer]:
    """The newest answer to each question about what is named, newest first; or one, by the first digits of its id.

    A question's key, too, stands for its newest answer.

    Raises:
        UsageError: if the digits are of several.
    """
    if given == LATEST:
        return _read(connection, "FROM answer ORDER BY asked DESC, answer_id LIMIT 1")
    if not given:
        return []
    # A folder is recorded by its absolute path, and an address without credentials.
    of_subject = "FROM latest_answer WHERE subject IN ($1, $2, $3) ORDER BY asked DESC, answer_id"
    if found := _read(connection, of_subject, [given, str(Path(given).expanduser().absolute()), shown_place(given)]):
        return found
    found = _read(connection, "FROM latest_answer WHERE starts_with(question_key, ?)", [given])
    found = found or _read(connection, "FROM answer WHERE starts_with(answer_id, ?) ORDER BY answer_id", [given])
    if len(found) > 1:
        ids = ", ".join(f"{one.answer_id} ({one.asks} {one.subject})" for one in found[:TOLD])
        raise UsageError(f"{len(found)} answers begin with {given}: {ids}.", next_step="Type more digits.")
    return found


def find_answers_before(
    connection: duckdb.DuckDBPyConnection, own: Sequence[KeptAnswer], given: str
) -> list[KeptAnswer]:
    """The answers that changes are measured against; none if these are the first.

    The previous answer is the newest to the same question about other content: a night on which nothing changed says
    nothing of a change. What is asked live has no key of its content, and is compared with the time before.

    Raises:
        UsageError: if what is given has no answers, or is what it would be compared with.
    """
    if given == PREVIOUS:
        before = (
            "FROM answer WHERE question_key = ? AND asked < ? "
            "AND (content_key IS NULL OR content_key IS DISTINCT FROM ?) ORDER BY asked DESC, answer_id LIMIT 1"
        )
        asked = ([one.question_key, one.asked, one.content_key] for one in own)
        return [found for values in asked for found in _read(connection, before, values)]
    found = find_answers(connection, given) or no_answer(given)
    if found[0].answer_id == own[0].answer_id:
        raise UsageError(
            f"The answer {found[0].answer_id} cannot be its own baseline.",
            next_step="Choose another: --baseline ANSWER",
        )
    return found


def no_answer(given: str) -> NoReturn:
    raise UsageError(
        f"The warehouse has no answer about {given!r}.",
        next_step="Ask with --keep, or list what was asked: embaudit query answers",
    )


def figures_of(connection: duckdb.DuckDBPyConnection, answer: KeptAnswer) -> list[AnswerFigure]:
    """The figures of an answer, by item."""
    return [AnswerFigure(*row) for row in connection.execute(FIGURES, {"id": answer.computed_id}).fetchall()]


def _read(connection: duckdb.DuckDBPyConnection, rest: str, values: object = None) -> list[KeptAnswer]:
    return [KeptAnswer(*row) for row in connection.execute(f"SELECT {COLUMNS} {rest}", values).fetchall()]
