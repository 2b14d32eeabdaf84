"""What can happen in a night, and what is done about it: the table in docs/watch.md, the names of runs, exit codes.

The gravest comes first: a run that found several problems has the name of the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from embaudit.words.errors import EXIT_TRIPPED, EXIT_USAGE, ProblemFound

# Who calls: the run itself (its `notify`), or an automation of the server, where the run cannot.
Caller = Literal["the run", "an automation", "nobody"]
AUTOMATION: Caller = "an automation"


@dataclass(frozen=True)
class Happening:
    """One row of the table.

    Attributes:
        what: happened, in a sentence.
        state: name of the run.
        colour: of the run in Prefect's UI.
        exit_code: of ``embaudit watch``; None if no command ends with it.
        kept_in: the table whose rows say it.
        until: what ends it.
    """

    what: str
    state: str
    exit_code: int | None
    kept_in: str
    until: str
    colour: str = "red"
    caller: Caller = "the run"


# How an open item of an audit begins, other than a rule of a policy.
WORSE, DO_NOT_SERVE = "got worse: ", "do not serve: "
ACCEPTED = "or somebody accepts it"


def _wrong(what: str, state: str, kept_in: str, until: str) -> Happening:
    """What was looked at is wrong: a verdict."""
    return Happening(what, state, EXIT_TRIPPED, kept_in, until)


def _unseen(what: str, state: str, kept_in: str, until: str) -> Happening:
    """It could not be looked at."""
    return Happening(what, state, EXIT_USAGE, kept_in, until)


# By the name under which code refers to them.
HAPPENINGS = {
    "broken": _wrong(
        "A checkpoint must not be served.", "Do not serve", "verdict", f"it has other content, {ACCEPTED}"
    ),
    "index_gone": _wrong("A store is not there.", "Index gone", "watch_run", "it is there, or off the list"),
    "index_empty": _wrong("A store has no rows.", "Index empty", "watch_run", "it has rows, or is off the list"),
    "rows_gone": _wrong(
        "A store lost a tenth of its rows (`lost` of its entry), since it had most of them.",
        "Rows lost",
        "answer",
        f"the rows are back, {ACCEPTED}",
    ),
    "rows_wrong": _wrong(
        "Rows of an index (`[[index]]`, `[[vectors]]`) are another function's, damaged, or not what should be there.",
        "Index got worse",
        "answer, wrong_row",
        f"they are encoded again or gone, {ACCEPTED}",
    ),
    "recall_fell": _wrong(
        "The recall of a search that the list asks lies below that of an earlier night, beyond both intervals.",
        "Recall fell",
        "answer",
        f"it is back, {ACCEPTED}",
    ),
    "not_found": _wrong(
        "A search or a golden query that the list asks (`[[search]]`, `[[why]]`, `golden` of `[[index]]`) does not "
        "find what it should.",
        "Not found",
        "answer",
        f"it finds it, {ACCEPTED}",
    ),
    "problem_found": _wrong(
        "Another question of the list (`[[check]]`, `[[switch]]`) is answered by a problem.",
        "Problem found",
        "answer",
        f"the answer is another, {ACCEPTED}",
    ),
    "served_otherwise": _wrong(
        "An endpoint (`[[endpoint]]`, `[[parity]]`, `[[verify]]`), or the function of an index, gives other vectors "
        "than it should.",
        "Not served as audited",
        "answer",
        f"it gives the right ones, {ACCEPTED}",
    ),
    "tripped": _wrong(
        "A policy is not satisfied.", "Gate tripped", "gate_result", f"checkpoint or policy are others, {ACCEPTED}"
    ),
    "worse": _wrong(
        "Figures of a checkpoint got worse.", "Got worse", "regression", f"it has other content, {ACCEPTED}"
    ),
    "audit_failed": _unseen(
        "An audit failed.", "Audit failed", "audit, watched_revision", "a later night's audit is done"
    ),
    "checkpoint_gone": _unseen(
        "A checkpoint's folder is not there.",
        "Checkpoint gone",
        "watched_revision",
        f"it is there, it is taken off the list, {ACCEPTED}",
    ),
    "checkpoint_unreadable": _unseen(
        "A checkpoint cannot be read (half copied, no weights, private).",
        "Checkpoint not read",
        "watched_revision",
        f"it can be read, {ACCEPTED}",
    ),
    "not_answered": _unseen(
        "A question of the list could not be answered.", "Not answered", "watch_run", "it is answered"
    ),
    "endpoint_silent": _unseen(
        "An endpoint does not answer, or cannot be compared.", "Endpoint silent", "watch_run", "it answers"
    ),
    "hub_silent": _unseen("The hub does not answer.", "Hub silent", "watched_revision", "it answers"),
}
RECORDS = "Prefect's records"
# What ends a night before, or without, its end; automations are made by `embaudit setup-server --notify BLOCK`.
CUT_OFF = (
    _unseen(
        "The watch list cannot be read, the disk is full, the warehouse is locked.",
        "Watch failed",
        RECORDS,
        "the next night",
    ),
    Happening(
        "The process of a run was killed, or its machine died.",
        *("Crashed", None, RECORDS, "the next night, which continues what is staged", "orange", AUTOMATION),
    ),
    Happening(
        "The server was gone for longer than a run tries to reach it again.",
        *("Crashed", None, RECORDS, "the server is back, and the next night", "orange", AUTOMATION),
    ),
    Happening("No worker took a run.", "Late", None, RECORDS, "a worker takes it", "yellow", AUTOMATION),
    Happening("No night ran for 25 hours.", "no run", None, RECORDS, "a night runs", "none", AUTOMATION),
    Happening(
        "A second night began while one was at work, or within 90 s of a kill.",
        *("AwaitingConcurrencySlot", None, RECORDS, "the first has ended; it sees nothing new, or goes on"),
        *("yellow", "nobody"),
    ),
)


@dataclass(frozen=True)
class Problem:
    """Something that happened, and to what.

    Attributes:
        name: as in ``HAPPENINGS``.
        subject: the source, the endpoint or the store.
        said: what is wrong with it, in sentences.
    """

    name: str
    subject: str
    said: str

    @property
    def happening(self) -> Happening:
        return HAPPENINGS[self.name]

    def __str__(self) -> str:
        return f"{self.happening.state}: {self.subject}: {self.said}"


class NightProblem(ProblemFound):
    """A night found problems; everything else is done and recorded.

    Attributes:
        outcome: what the night did.
    """

    outcome: Any = None


def in_order(problems: list[Problem]) -> list[Problem]:
    """The gravest first."""
    order = list(HAPPENINGS)
    return sorted(problems, key=lambda problem: order.index(problem.name))


def exit_code_of(problems: list[Problem]) -> int:
    """1 is a verdict and nothing else: where something could not be looked at, it is 2."""
    return max((problem.happening.exit_code or 0 for problem in problems), default=0)


def as_markdown() -> str:
    """The table of docs/watch.md."""
    rows = ["| what happens | run's name | colour | exit code | who calls | kept in | open until |", "|---" * 7 + "|"]
    for one in (*HAPPENINGS.values(), *CUT_OFF):
        cells = (one.what.rstrip("."), f"*{one.state}*", one.colour, one.exit_code, one.caller, one.kept_in, one.until)
        rows.append("| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(as_markdown())
