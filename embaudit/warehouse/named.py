"""What a name stands for: one audit by its id, or a checkpoint's state, its newest result of each measure and question.

A checkpoint is audited in parts: a later audit of other measures, texts or settings adds to its state and replaces
nothing.

What a name stands for among answers: the newest to each question about it, or one by its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import duckdb

from embaudit.declared.rule import Level
from embaudit.questions.report import AnswerFigure
from embaudit.words.errors import CheckFailed, UsageError
from embaudit.words.masking import shown_place

LATEST, PREVIOUS = "latest", "previous"
LIST_THEM = "List what it has: embaudit list audits, or embaudit list checkpoints"


@dataclass(frozen=True)
class State:
    """The audits that a name stands for.

    Attributes:
        audits: what counts of each, by its id, newest first: the measures, and ``audit`` for what was found about the
            audit as a whole; None for all of it.
        checkpoint_id: of the state; None for a single audit.
    """

    audits: Mapping[str, frozenset[str] | None]
    checkpoint_id: str | None = None

    @property
    def newest(self) -> str:
        return next(iter(self.audits))

    def of(self, measure: str) -> list[str]:
        """The audits that count for a measure, newest first."""
        return [audit_id for audit_id, measures in self.audits.items() if measures is None or measure in measures]


def find_audit(connection: duckdb.DuckDBPyConnection, given: str) -> str:
    """Find a published audit by its id, its first digits, or ``latest``.

    Raises:
        UsageError: if there is none, or several match.
        CheckFailed: if it is not published.
    """
    if given == LATEST:
        newest = connection.execute(
            "SELECT audit_id FROM audit WHERE status = 'published' ORDER BY finished DESC, audit_id LIMIT 1"
        ).fetchone()
        if newest is None:
            raise UsageError("The warehouse has no published audit.", next_step="Run one: embaudit audit CHECKPOINT")
        return str(newest[0])
    found = connection.execute(
        "SELECT audit_id, status, reason FROM audit WHERE starts_with(audit_id, ?) ORDER BY audit_id", [given]
    ).fetchall()
    exact = [row for row in found if row[0] == given]
    if not given or not found:
        raise UsageError(f"The warehouse has no audit {given!r}.", next_step=_audit_it(given))
    if len(found) > 1 and not exact:
        ids = ", ".join(row[0] for row in found[:4])
        raise UsageError(f"{len(found)} audits begin with {given}: {ids}.", next_step="Type more digits.")
    audit_id, status, reason = (exact or found)[0]
    if status != "published":
        raise CheckFailed(
            f"The audit {audit_id} is {status}, so there is nothing to compare: {reason or 'no reason given'}",
            next_step="Run the audit again: it continues where it stopped.",
        )
    return str(audit_id)


def _audit_it(given: str) -> str:
    """What to type for a name without an audit: audit the folder that it is, or see which names there are."""
    from shlex import quote

    is_checkpoint = given.startswith("packaged:") or (Path(given) / "config.json").is_file()
    return f"Audit it first: embaudit audit {quote(given)}" if is_checkpoint else LIST_THEM


def find_state(connection: duckdb.DuckDBPyConnection, given: str) -> State:
    """What a name stands for: that of a checkpoint for its state, anything else as in ``find_audit``.

    Raises:
        UsageError, CheckFailed: as ``find_audit``.
    """
    return find_checkpoint(connection, given) or State({find_audit(connection, given): None})


def find_checkpoint(connection: duckdb.DuckDBPyConnection, given: str) -> State | None:
    """The state of the checkpoint of this name; None if no audited one has it."""
    if given in ("", LATEST):
        return None
    # A folder is recorded by its absolute path; a revision if it was given.
    found = connection.execute(
        "SELECT checkpoint_id FROM named_checkpoint WHERE name IN ($name, $folder) ORDER BY name <> $name LIMIT 1",
        {"name": given, "folder": str(Path(given).expanduser().resolve())},
    ).fetchone()
    return None if found is None else state_of(connection, str(found[0]))


def state_of(connection: duckdb.DuckDBPyConnection, checkpoint_id: str) -> State:
    """The state of a checkpoint that has a published audit."""
    audits = connection.execute(
        "SELECT audit_id, list(measure ORDER BY measure) FROM latest_result WHERE checkpoint_id = ? "
        "GROUP BY audit_id, finished ORDER BY finished DESC, audit_id",
        [checkpoint_id],
    ).fetchall()
    return State({str(audit_id): frozenset(measures) for audit_id, measures in audits}, checkpoint_id)


def find_result(connection: duckdb.DuckDBPyConnection, given: str, measure: str) -> str:
    """The newest audit of a measure that a name stands for; for ``latest``, that of the warehouse.

    Falls back on an audit without the measure, for the caller to say what it lacks.

    Raises:
        UsageError, CheckFailed: as ``find_audit``.
    """
    if given == LATEST:
        newest = connection.execute(
            "SELECT audit_id FROM latest_result WHERE measure = ? ORDER BY finished DESC, audit_id LIMIT 1", [measure]
        ).fetchone()
        return find_audit(connection, given) if newest is None else str(newest[0])
    state = find_state(connection, given)
    return next(iter(state.of(measure)), state.newest)


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
