"""Questions on a watch list: an entry is a question with all of its parameters, and how often it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from embaudit.declared.option import PLAIN, Option
from embaudit.embedders.endpoint.recognise import is_address
from embaudit.questions.asked import QUESTIONS, question_of
from embaudit.questions.question import Question
from embaudit.stores.place import StorePlace
from embaudit.system.small_files import complaint
from embaudit.watch.happening import Problem
from embaudit.watch.places import beside, require_consent
from embaudit.words.errors import UsageError
from embaudit.words.masking import keep_credentials

# By verdict or by question, what a problem is called at night; of all others, ``PROBLEM``.
CALLED = {"recall fell": "recall_fell", "rows lost": "rows_gone", "search": "not_found", "why": "not_found"}
PROBLEM, UNANSWERED = "problem_found", "not_answered"
OWN_KEYS = ("every", "send_texts")


class AskedEntry(BaseModel):
    """A question that is asked at night.

    Attributes:
        every: night, or a week after it was last asked.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    question: Question
    every: Literal["night", "week"] = "night"


class AnsweredNow(BaseModel):
    """What a night was answered; the table ``answer`` has the rest.

    Attributes:
        before: the verdict of the time before; None the first time.
        is_new: whether it was asked tonight; False if it stands since an earlier night.
    """

    answer_id: str = ""
    asks: str
    subject: str
    verdict: str = "not answered"
    level: str = "not measured"
    line: str
    before: str | None = None
    is_new: bool = True
    is_accepted: bool = False

    @property
    def problems(self) -> Iterator[Problem]:
        """What is wrong, if anything is."""
        changed = f" It was: {self.before}." if self.before not in (None, self.verdict) else ""
        if self.level == "problem" and not self.is_accepted:
            called = CALLED.get(self.verdict) or CALLED.get(self.asks, PROBLEM)
            yield Problem(called, self.subject, f"{self.asks}: {self.line}{changed}")
        elif self.level == "not measured":
            yield Problem(UNANSWERED, self.subject, f"{self.asks}: {self.line}{changed}")


def read_questions(
    tables: Mapping[str, list[dict[str, Any]]], folder: Path, shared: Mapping[str, Any]
) -> list[AskedEntry]:
    """The questions of a watch list; file names in them are relative to it.

    Args:
        tables: by question, the tables that ask it.
        shared: settings of the whole list that a question may have, too: ``device``.

    Raises:
        UsageError: naming the entry.
    """
    entries = []
    for asks, asked in tables.items():
        for nth, table in enumerate(asked, 1):
            given = {name: value for name, value in table.items() if name not in OWN_KEYS}
            fields = QUESTIONS[asks].model_fields
            given = {**{name: value for name, value in shared.items() if name in fields}, **given}
            try:
                entry = AskedEntry(
                    question=_placed(question_of(asks, given), folder, send_texts=table.get("send_texts", False)),
                    every=table.get("every", "night"),
                )
            except (UsageError, ValueError) as error:
                said = error.happened if isinstance(error, UsageError) else str(error)
                if isinstance(error, ValidationError):
                    said = complaint(dict(error.errors()[0]), AskedEntry)
                raise UsageError(
                    f"Entry {nth} of [[{asks}]] is wrong: {said}", next_step="See docs/watch.md."
                ) from error
            entries.append(entry)
    return entries


def _placed(question: Question, folder: Path, *, send_texts: bool) -> Question:
    """The question with files beside the list made absolute.

    Raises:
        ValueError: if texts would be sent to another machine and nobody said so.
    """
    update: dict[str, Any] = {}
    for name, field in type(question).model_fields.items():
        written = next((one for one in field.metadata if isinstance(one, Option)), PLAIN)
        value = getattr(question, name)
        if value is None or not (written.holds or written.is_file or name == "corpus"):
            continue
        several = isinstance(value, list | tuple)
        placed = []
        for each in value if several else [value]:
            named = str(each)
            if written.holds == "store":
                keep_credentials(named)
                place = StorePlace(named)
                # Also if nothing is there tonight: it is called the same every night.
                placed.append(named if place.scheme else str(folder / place.path))
            elif written.holds == "function":
                if is_address(named):
                    require_consent(named, send_texts)
                placed.append(beside(named, folder))
            else:
                placed.append(str(folder / Path(named).expanduser()) if written.is_file else beside(named, folder))
        update[name] = placed if several else placed[0]
    return question.model_copy(update=update)
