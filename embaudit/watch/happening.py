"""What can happen in a night, and what is done about it: the table in docs/watch.md, the names of runs, exit codes.

The gravest comes first: a run that found several problems has the name of the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from embaudit.errors import EXIT_TRIPPED, EXIT_USAGE, ProblemFound

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
# By the name under which code refers to them; what was checked and is wrong, then what could not be looked at.
HAPPENINGS = {
    "broken": Happening(
        *("A checkpoint must not be served.", "Do not serve", EXIT_TRIPPED, "verdict"),
        f"it has other content, {ACCEPTED}",
    ),
    "index_gone": Happening(
        *("An index is not there.", "Index gone", EXIT_TRIPPED, "index_check"), f"it is there, {ACCEPTED}"
    ),
    "index_empty": Happening(
        *("An index has no rows.", "Index empty", EXIT_TRIPPED, "index_check"), f"it has rows, {ACCEPTED}"
    ),
    "rows_lost": Happening(
        "An index lost a tenth of its rows (`lost` of its entry), since it had most of them.",
        *("Rows lost", EXIT_TRIPPED, "index_check", f"the rows are back, {ACCEPTED}"),
    ),
    "foreign": Happening(
        *("Rows of an index are another function's, or damaged.", "Index got worse", EXIT_TRIPPED, "index_check"),
        f"they are encoded again or gone, {ACCEPTED}",
    ),
    "golden_lost": Happening(
        *("A golden query is no longer found.", "Golden query lost", EXIT_TRIPPED, "index_check"),
        f"it is found again, {ACCEPTED}",
    ),
    "another_function": Happening(
        *("What is asked for an index is no longer its passport's function.", "Another function", EXIT_TRIPPED),
        *("index_check", "it gives the passport's vectors again, or has a new passport"),
    ),
    "served_otherwise": Happening(
        *("An endpoint serves other vectors than it should.", "Not served as audited", EXIT_TRIPPED, "served"),
        f"it serves the right ones, {ACCEPTED}",
    ),
    "tripped": Happening(
        *("A policy is not satisfied.", "Gate tripped", EXIT_TRIPPED, "gate_result"),
        f"checkpoint or policy are others, {ACCEPTED}",
    ),
    "worse": Happening(
        *("Figures of a checkpoint got worse.", "Got worse", EXIT_TRIPPED, "regression"),
        f"it has other content, {ACCEPTED}",
    ),
    "audit_failed": Happening(
        *("An audit failed.", "Audit failed", EXIT_USAGE, "audit, watched_revision"), "a later night's audit is done"
    ),
    "checkpoint_gone": Happening(
        *("A checkpoint's folder is not there.", "Checkpoint gone", EXIT_USAGE, "watched_revision"),
        f"it is there, it is taken off the list, {ACCEPTED}",
    ),
    "checkpoint_unreadable": Happening(
        *("A checkpoint cannot be read (half copied, no weights, private).", "Checkpoint not read", EXIT_USAGE),
        *("watched_revision", f"it can be read, {ACCEPTED}"),
    ),
    "index_unread": Happening(
        *("An index, or its function, cannot be read, or has no texts.", "Index not read", EXIT_USAGE, "index_check"),
        "it can be read",
    ),
    "endpoint_silent": Happening(
        *("An endpoint does not answer, or cannot be compared.", "Endpoint silent", EXIT_USAGE, "served"),
        "it answers",
    ),
    "hub_silent": Happening(*("The hub does not answer.", "Hub silent", EXIT_USAGE, "watched_revision"), "it answers"),
}
# What ends a night before, or without, its end; automations are made by `embaudit setup-server --notify BLOCK`.
CUT_OFF = (
    Happening(
        "The watch list cannot be read, the disk is full, the warehouse is locked.",
        *("Watch failed", EXIT_USAGE, "Prefect's records", "the next night"),
    ),
    Happening(
        *("The process of a run was killed, or its machine died.", "Crashed", None, "Prefect's records"),
        *("the next night, which continues what is staged", "orange", AUTOMATION),
    ),
    Happening(
        *("The server was gone, and a run lost it.", "Crashed", None, "Prefect's records"),
        *("the server is back, and the next night", "orange", AUTOMATION),
    ),
    Happening("No worker took a run.", "Late", None, "Prefect's records", "a worker takes it", "yellow", AUTOMATION),
    Happening("No night ran for 25 hours.", "no run", None, "Prefect's records", "a night runs", "none", AUTOMATION),
    Happening(
        "A second night began while one was at work, or within 90 s of a kill.",
        *("AwaitingConcurrencySlot", None, "Prefect's records"),
        *("the first has ended; it sees nothing new, or goes on", "yellow", "nobody"),
    ),
)


@dataclass(frozen=True)
class Problem:
    """Something that happened, and to what.

    Attributes:
        name: as in ``HAPPENINGS``.
        subject: the source, the endpoint or the index.
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
