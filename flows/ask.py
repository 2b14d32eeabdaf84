"""Asks any question as a flow: planned by content, kept in the warehouse, shown in Prefect's UI, red if it is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.states import Completed
from pydantic import BaseModel

from embaudit.pages.text import plain, render
from embaudit.questions.answered import answer_key, question_key, rows_of, subjects_of
from embaudit.questions.names import question_of
from embaudit.questions.passport.question import VerifyQuestion
from embaudit.questions.question import Question
from embaudit.questions.report import AnswerRow, Asks
from embaudit.stores.place import StorePlace
from embaudit.system.settings import Settings, warehouse_at
from embaudit.warehouse.answers import latest_answer
from embaudit.watch.asked import AnsweredNow, AskedEntry
from embaudit.words.errors import EmbauditError, EmptyStore, ProblemFound, is_of_interrupt, one_line
from embaudit.words.masking import shown_place
from embaudit_flows.ending import ends_in_words, key_of_source, marked
from embaudit_flows.notify import Notifier, notify_on_failure
from embaudit_flows.server.set_up import gpu_slot, require_lasting_home
from embaudit_tasks.publish import FOLDER, answer_question, keep_answer, page_of, reuse_answer, write_answer
from embaudit_tasks.steps import in_a_run, run_logger

# Nights are not of the same length: what is asked every week may be asked some hours early.
WEEK = timedelta(days=6, hours=12)
TOLD = ("answer_id", "verdict", "level", "line")
# What a question is asked of, whichever it is.
PLACES = ("store", "checkpoint", "passport", "old", "new", "function", "other")
KEPT = "The answer is kept, with its findings and figures (embaudit query answers)."


class AnswerOutcome(BaseModel):
    """An answer that is kept; ``answer`` and the tables beside it have the rest.

    Attributes:
        is_reused: whether the same was asked of the same content before, so that nothing was computed.
        page: file of its page.
    """

    answer_id: str
    asks: str
    subject: str
    function: str
    verdict: str
    level: str
    line: str
    exit_code: int
    is_reused: bool
    page: str | None = None


class AnswerProblem(ProblemFound):
    """An answer that is a problem, or could not be told; the run is called by its verdict.

    Attributes:
        outcome: the answer.
    """

    outcome: AnswerOutcome


def _run_name() -> str:
    from prefect.runtime import flow_run

    given = flow_run.parameters
    return named(str(given.get("asks")), given.get("question") or {})


def named(asks: str, question: Mapping[str, Any]) -> str:
    """What was asked of what, before it is known whether that can be asked; without credentials."""
    places = [question[name] for name in PLACES if name in question]
    return " ".join([asks, *(shown_place(str(place)) for place in places)])


@flow(name="ask", flow_run_name=_run_name, persist_result=False)
@ends_in_words("Not answered")
def ask(asks: Asks, question: dict[str, Any], warehouse: str | None = None, notify: str | None = None) -> AnswerOutcome:
    """Ask a question, and keep its answer.

    Args:
        asks: which: check, parity, vectors, verify, search, why or switch.
        question: its parameters by name, as in Python and in docs/commands.md: {"store": …, "function": …}.
        warehouse: as in the flow ``audit``.
        notify: a Prefect notification block to notify of a problem or failure; by default the one that the server was
            set up with.
    """
    require_lasting_home()
    with notify_on_failure(Notifier(notify), named(asks, question)):
        outcome = answered(question_of(asks, question), warehouse)
        _show_line(outcome)
        return _ended(outcome)


def answered(question: Question, warehouse: str | None = None) -> AnswerOutcome:
    """Find an answer that holds, or a new one, which is kept.

    Raises:
        EmbauditError: if something that is named cannot be read or asked, or the answer cannot be kept.
    """
    settings = Settings()
    place = str(warehouse_at(warehouse or settings.warehouse_path))
    wait, reports = settings.lock_wait_seconds, str(settings.reports)
    key = answer_key(question)
    kept = None if key is None else reuse_answer(key, place, wait, str(settings.staging))
    if kept is not None:
        earlier = page_of(kept["computed_id"], reports)
        return _outcome(kept, is_reused=True, page=str(earlier) if earlier.exists() else None)
    asked = datetime.now(UTC)
    with gpu_slot(getattr(question, "device", "cpu")):
        name = " ".join([question.asks, *filter(None, subjects_of(question))])
        report = answer_question(question, name, place, wait)
    rows = rows_of(question, report, key, asked)
    (answer,) = rows[AnswerRow]
    keep_answer(rows, place, wait, str(settings.staging))
    report.remember()
    page: str | None = None
    try:
        page = write_answer(report, str(answer["answer_id"]), reports)
    except EmbauditError as error:
        # The rows are kept; a page can be made again.
        run_logger().warning("No page was written: %s", error.happened)
    if in_a_run():
        create_markdown_artifact(
            key=f"answer-{_key(answer)}", markdown=render(report.page()), description=plain(str(answer["line"]))
        )
        if settings.report_url is not None:
            create_link_artifact(
                link=f"{settings.report_url.rstrip('/')}/{FOLDER}/{answer['answer_id']}.html",
                key=f"answer-page-{_key(answer)}",
                description=plain(str(answer["line"])),
            )
    return _outcome(answer, is_reused=False, page=page)


def answers_of_entry(entry: AskedEntry, warehouse: str) -> Iterator[AnsweredNow]:
    """What a night is answered; what cannot be answered is said in its line, and raises nothing.

    Where what is asked is not the function that it should be, nothing is said of what it has built.
    """
    for question in entry.questions:
        passport = getattr(question, "passport", None)
        if passport is not None and not Path(passport).exists() and not entry.makes_passport:
            continue
        answer = _answer_of(question, entry, warehouse)
        yield answer
        if answer.asks == "verify" and answer.level != "ok":
            return


def _answer_of(question: Question, entry: AskedEntry, warehouse: str) -> AnsweredNow:
    wait = Settings().lock_wait_seconds
    subject, _ = subjects_of(question)
    of_entry: dict[str, Any] = {"asks": question.asks, "subject": subject}
    try:
        before = latest_answer(warehouse, question_key(question), wait)
        if before is not None:
            of_entry["before"] = before["verdict"]
            is_told = before["level"] != "not measured"
            if entry.every == "week" and is_told and datetime.now(UTC) - before["asked"] < WEEK:
                return AnsweredNow(**of_entry, **{name: before[name] for name in TOLD}, is_new=False)
        if isinstance(question, VerifyQuestion) and not Path(question.passport).exists():
            return AnsweredNow(**of_entry, verdict="first seen", level="ok", line=question.make_first())
        outcome = answered(question, warehouse)
    except EmbauditError as error:
        if _is_gone(question):
            # Whatever failed first: the function may be missing, too.
            line = f"There is no file or folder {subject}. Look whether it was moved, or what deleted it."
            return AnsweredNow(**of_entry, line=line, called="index_gone")
        called = "index_empty" if isinstance(error, EmptyStore) else ""
        return AnsweredNow(**of_entry, line=f"{error.happened} {error.next_step}".strip(), called=called)
    except Exception as error:  # one question must not end a night
        if is_of_interrupt(error):
            raise
        run_logger().exception("An error that nobody expected:")
        return AnsweredNow(**of_entry, line=f"{type(error).__name__}: {one_line(error)} Please report it.")
    return AnsweredNow(**of_entry, **{name: getattr(outcome, name) for name in TOLD})


def _is_gone(question: Question) -> bool:
    """Whether nothing is where its store's file or folder should be; of a server, that is what it says itself."""
    store = getattr(question, "store", None)
    return store is not None and StorePlace(str(store)).is_path and not Path(str(store)).exists()


def _ended(outcome: AnswerOutcome) -> AnswerOutcome:
    """End the run: as a problem under its verdict's name, or completed with its line.

    Raises:
        AnswerProblem: if the answer is a problem, or could not be told.
    """
    state = outcome.verdict.capitalize()
    if not outcome.exit_code:
        # A returned state becomes the run's, with its message; the caller gets its data.
        said: Any = Completed(message=outcome.line, data=outcome) if in_a_run() else outcome
        return said
    run_logger().warning("%s", outcome.line)
    if Settings().problems != "fail":
        return marked(state, outcome.line, outcome)
    error = AnswerProblem(f"{outcome.subject}: {outcome.line}", kept=KEPT, next_step=f"Its page: {outcome.page}")
    error.state, error.exit_code, error.outcome = state, outcome.exit_code, outcome
    raise error


def _show_line(outcome: AnswerOutcome) -> None:
    again = " (as before: nothing that it depends on has changed)" if outcome.is_reused else ""
    run_logger().info("%s%s", outcome.line, again)


def _outcome(row: Any, *, is_reused: bool, page: str | None) -> AnswerOutcome:
    names = set(AnswerOutcome.model_fields) - {"is_reused", "page"}
    return AnswerOutcome(**{name: row[name] for name in names}, is_reused=is_reused, page=page)


def _key(answer: Any) -> str:
    # Several questions may be asked of one subject.
    subject = key_of_source(f"{answer['asks']}-{answer['subject']}".replace("@", "-"))
    return f"{subject}-{answer['question_key'][:8]}"
