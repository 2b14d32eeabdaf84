"""What is kept of an answer, whichever question was asked; its report: a verdict, findings, a page, an exit code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from embaudit.declared.document import Page
from embaudit.declared.figure import Direction
from embaudit.declared.rule import Finding, Level, Rule, worst_first
from embaudit.declared.table import SHARE, BigInt, Interval, Json, Row, Series, column, rule
from embaudit.questions.names import ASKS
from embaudit.words.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE
from embaudit.words.estimate import Estimate

# Where a search was lost, in a word; what became of a row that should not come up.
Up = Literal["came up", "not shown"]
Lost = Literal["absent", "filter", "found", "vector", "search", "cut-off", "text", "function", "not told", Up]
# Names of questions, as their commands are called; a passport is no answer, but what `verify` compares with.
if TYPE_CHECKING:
    Asks = str
else:
    Asks = Literal[ASKS]


class AnswerRow(Row, table="answer", key=("answer_id",), scope="content"):
    """Each answer to a question: what was asked of what, by content, and the verdict."""

    answer_id: str = column("Key of the question, what it was asked of, and when.")
    question_key: str = column("Key of the question as it was asked, whatever its store, checkpoint and files hold.")
    content_key: str | None = column(
        "Key of the question, the content of all that it names, and this embaudit; null: what is asked is live, or a "
        "file was to be written."
    )
    computed_id: str = column("The answer that was computed, and has the findings and figures; itself, if it was.")
    problems: str = column(
        "Keys of what is wrong, one each: another if something else is, or much more; '' without a problem."
    )
    asks: Asks = column("The question: the command that asks it.")
    subject: str = column("What it was asked of: a store, a checkpoint, an endpoint; without credentials.")
    function: str = column("The function that it was compared with or asked through; '' if there was none.")
    question: Json = column("Parameters that were given, by name; without credentials.")
    verdict: str = column("The verdict, in the question's own words.")
    level: Level = column("problem, look, ok; not measured: it could not be told.")
    line: str = column("The verdict in a sentence.")
    exit_code: int = column("What its command ends with.", ge=0)
    asked: datetime = column("When it was asked.")
    seconds: float = column("How long it took; 0 if it holds since it was computed.", ge=0)
    embaudit_version: str = column("Version of embaudit that found it.")

    @rule
    def only_what_has_content_is_reused(answer_id: Series, computed_id: Series, content_key: Series) -> Series:
        """Without a content key, it was computed."""
        return content_key.notna() | (answer_id == computed_id)

    @rule
    def only_the_ok_ends_well(level: Series, exit_code: Series) -> Series:
        """A problem, and what could not be told, never end with 0."""
        return ~level.isin(["problem", "not measured"]) | (exit_code > 0)


class AnswerFindingRow(Row, table="answer_finding", key=("answer_id", "place"), scope="content"):
    """The findings of each answer, the worst first."""

    answer_id: str = column("The answer that was computed.")
    place: int = column("Order within the answer, from 0.", ge=0)
    name: str = column("The rule behind it; stable across answers.")
    level: Level = column("problem, look, ok; not measured: not enough evidence to say.")
    sentence: str = column("What was found, with its number and interval.")
    meaning: str = column("What it means for whoever serves it; '' if nothing has to be said.")
    advice: str = column("What to do next; '' if nothing.")
    value: float | None = column("The number in the sentence.")
    low: float | None = column("Lower end of its 95 % interval.")
    high: float | None = column("Upper end of its 95 % interval.", at_least="low")


class AnswerFigureRow(Row, table="answer_figure", key=("answer_id", "figure", "item"), scope="content"):
    """The figures of each answer: recall by setting, rows, shares, how far vectors are apart."""

    answer_id: str = column("The answer that was computed.")
    figure: str = column("What was measured, as in the JSON of its command.")
    item: str = column("Of what: a setting, a kind of text, a data set; '' of all of it.")
    value: float = column("The figure.")
    low: float | None = column("Lower end of its 95 % interval; null if it is exact, or has none.")
    high: float | None = column("Upper end of it.", at_least="low")
    of: BigInt | None = column("Of how many: queries, rows, texts; null if that says nothing.", ge=0)


class WhyCaseRow(Row, table="why_case", key=("answer_id", "place"), scope="content"):
    """Each search that `why` walked: found, or where it was lost."""

    answer_id: str = column("The answer that was computed.")
    place: int = column("Order within the answer, from 0.", ge=0)
    query: str = column("What was asked.")
    expected: str = column("The id or text that it should find.")
    lost: Literal[
        "absent",
        "filter",
        "found",
        "vector",
        "search",
        "cut-off",
        "text",
        "function",
        "not told",
        "came up",
        "not shown",
    ] = column(
        "Where it was lost, in a word; found if it was not. Of a row that should not come up: came up, not shown."
    )
    cause: str = column("What exactly, in a word or two; '' where the first says it.")
    sentence: str = column("What happened there.")
    mend: str = column("What would mend it; '' if nothing has to be.")
    exact_rank: int | None = column("Where exact search ranks it; null: its vector is not there.", ge=1)
    store_rank: int | None = column("Where the store's own search has it; null: not among the results.", ge=1)
    tried: str | None = column("The mend that was tried on it; null: none, or an earlier version.")
    is_confirmed: bool | None = column("Whether that alone puts it among the results; null: it was not tried.")
    mended_rank: int | None = column("Its rank then; null: none.", ge=1)
    stage: str | None = column(
        "The stage of the application that loses it; null: none does, no stages were named, or an earlier version."
    )


class WrongRow(Row, table="wrong_row", key=("answer_id", "place"), scope="content"):
    """Rows of a store with which an answer found something wrong, as far as it knows them one by one."""

    answer_id: str = column("The answer that was computed.")
    place: int = column("Order within the answer, from 0.", ge=0)
    row: str = column("Its id; where there is none, its number. Of a row that is absent, the id that was expected.")
    finding: str = column("What is wrong, as in the column name of answer_finding.")
    since: datetime | None = column("When that was first found and not mended; null: nothing is remembered.")


def wrong_row(row: object, finding: str, since: datetime | None = None) -> dict[str, object]:
    """A row of ``WrongRow``."""
    return {"row": str(row), "finding": finding, "since": since}


class CrowdingRow(Row, table="crowding_row", key=("answer_id", "place"), scope="content"):
    """Rows of a store that are among the first results of many unrelated queries."""

    answer_id: str = column("The answer that was computed.")
    place: int = column("Order within the answer, from 0: the row that comes up most.", ge=0)
    row: str = column("Its id; where there is none, its number.")
    met: int = column("Sentinels that have it among their first: queries on what other rows say.", ge=1)
    sentinels: int = column("How many asked.", ge=1)
    share: float = column(
        "met of sentinels.", within=SHARE, interval=Interval("Clopper and Pearson's interval of a share of sentinels")
    )
    first: int = column("For how many rows each asked: ten, in small stores fewer.", within=(1, 10))
    chance: float = column("The share that a row has by chance: first of all rows that differ.", within=SHARE)
    deviations: float = column("Robust standard deviations that it is nearer to all sentinels than the median row.")
    displaced: int = column("Different rows that would stand among these sentinels' first without it.", ge=0)
    copies: BigInt = column("Rows with its vector, itself included.", ge=1)
    level: Literal["problem", "look"] = column("As in answer_finding.")
    text: str = column("Beginning of its text.")


ROWS: tuple[type[Row], ...] = (AnswerRow, AnswerFindingRow, AnswerFigureRow, WhyCaseRow, WrongRow, CrowdingRow)

# Of figures that are better one way, the worse direction; of others it depends on what was meant.
WORSE_WHEN: dict[str, Direction] = {
    **dict.fromkeys(
        ("recall_at_10", "recall_at_100", "found", "median_cosine", "nDCG@10", "Spearman's ρ", "auc"), "lower"
    ),
    **dict.fromkeys(("foreign", "foreign_rows", "absent", "unexpected", "changed", "copies", "zeros"), "higher"),
    **dict.fromkeys(("not_finite", "without_vector", "without_text", "missed", "lost", "kinds_apart"), "higher"),
    **dict.fromkeys(("new_foreign", "new_share", "new_zeros", "new_not_finite", "new_without_vector"), "higher"),
}


@dataclass(frozen=True)
class AnswerFigure:
    """One figure of an answer; see ``AnswerFigureRow``."""

    figure: str
    value: float
    item: str = ""
    low: float | None = None
    high: float | None = None
    of: int | None = None


def figure_of(figure: str, estimate: Estimate, item: str = "", of: int | None = None) -> AnswerFigure:
    """The figure that an estimate is."""
    value = nan if estimate.value is None else estimate.value
    return AnswerFigure(figure, value, item, estimate.low, estimate.high, of)


HOW_IT_IS_READ = Rule(
    "how_it_is_read",
    look_if="a store is read otherwise than it may be meant",
    reason="what is left out, or taken for something, is said",
)
HOW_IT_IS_ASKED = Rule("how_it_is_asked", reason="`ok`: what a store is asked otherwise than an application may ask it")


class Report(ABC):
    """A comparison's outcome, for people and for programs.

    Attributes:
        levels: how bad each verdict is.
        exits: what a command ends with, by that level.
        findings: in the order of the parts.
        seconds: that it took.
    """

    levels: ClassVar[Mapping[str, Level]]
    exits: ClassVar[Mapping[Level, int]] = {
        "ok": EXIT_DONE,
        "look": EXIT_DONE,
        "problem": EXIT_TRIPPED,
        "not measured": EXIT_USAGE,
    }
    findings: tuple[Finding, ...]
    seconds: float

    @property
    @abstractmethod
    def verdict(self) -> str:
        """One of ``levels``."""

    @property
    @abstractmethod
    def line(self) -> str:
        """The verdict in one line."""

    @abstractmethod
    def page(self) -> Page:
        """What people read."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What only this answer has, in the types of JSON: what was asked of what, and all that was found."""

    def answer_figures(self) -> Iterator[AnswerFigure]:
        """The figures that are kept of it, beside those of its findings."""
        yield from ()

    def rows(self) -> Mapping[type[Row], Sequence[dict[str, Any]]]:
        """What else is kept of it: rows of declared tables, without the answer's id and their place in it."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """Everything in it: what every answer has, in the words of the tables' columns, and ``content``."""
        return {
            "verdict": self.verdict,
            "line": self.line,
            **self.content(),
            "findings": [asdict(finding) for finding in self.by_level()],
            "figures": [asdict(figure) for figure in self.kept_figures()],
            "seconds": round(self.seconds, 1),
        }

    def kept_figures(self) -> list[AnswerFigure]:
        """Of each name and item one; what is not a number is none."""
        known = {(one.figure, one.item): one for one in self.answer_figures() if isfinite(one.value)}
        return list(known.values())

    def causes(self) -> Sequence[str]:
        """What is wrong, beyond the names of findings: what somebody accepted of one does not stand for another."""
        return ()

    def accept(self, until: datetime) -> Report:
        """The same, of which somebody accepted all that was known then."""
        return self

    def remember(self) -> None:
        """Keep what the next answer to the same question is told against; called once this one is kept or shown.

        Raises:
            StorageError: if it cannot be kept.
        """
        return

    @property
    def level(self) -> Level:
        return self.levels[self.verdict]

    @property
    def exit_code(self) -> int:
        return self.exits[self.level]

    @property
    def cause(self) -> Finding | None:
        """The finding that the verdict's line tells; None if it tells none."""
        return self.by_level()[0] if self.level == "problem" else None

    @property
    def and_look(self) -> str:
        """The end of a line that says that all is well, if something is to be looked at all the same."""
        looks = sum(finding.level == "look" for finding in self.findings)
        return f"; look at {looks} thing{'s' if looks > 1 else ''}" if looks else ""

    def by_level(self) -> list[Finding]:
        """The findings, worst first."""
        return worst_first(self.findings)

    def told(self) -> list[Finding]:
        """The findings of the page: the verdict first, in place of its cause."""
        cause = self.cause
        meaning, advice = (cause.meaning, cause.advice) if cause is not None else ("", "")
        return [
            Finding(self.level, self.line, meaning, advice, name="verdict"),
            *(finding for finding in self.by_level() if finding is not cause),
        ]
