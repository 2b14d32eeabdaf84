"""Questions on a watch list: an entry is a question with all of its parameters, and how often it is asked.

``[[endpoint]]`` and ``[[index]]`` are short forms of several questions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from embaudit.declared.option import written_as
from embaudit.embedders.endpoint.client import KEY_VARIABLE
from embaudit.embedders.endpoint.recognise import is_address, is_loopback
from embaudit.embedders.opened import is_checkpoint
from embaudit.questions.names import model_of, question_of
from embaudit.questions.passport.passport import read_passport
from embaudit.questions.question import Question
from embaudit.stores.place import StorePlace
from embaudit.system.small_files import complaint
from embaudit.watch.happening import ACCEPTED, HAPPENINGS, Problem
from embaudit.words.errors import UsageError
from embaudit.words.masking import has_credentials, keep_credentials

# By verdict or by question, what a problem is called at night; of all others, ``PROBLEM``.
CALLED = {
    **{"recall fell": "recall_fell", "rows lost": "rows_gone", "search": "not_found", "why": "not_found"},
    **{"vectors": "rows_wrong", "parity": "served_otherwise", "verify": "served_otherwise"},
}
PROBLEM, UNANSWERED = "problem_found", "not_answered"
OWN_KEYS = ("every", "send_texts")
# Of ``[[index]]``, what is asked of its search.
GOLDEN = ("golden", "k")


class AskedEntry(BaseModel):
    """What an entry of a watch list asks at night.

    Attributes:
        questions: in their order. Where one finds another function than it should be, those behind it are not asked.
        every: night, or a week after it was last asked.
        makes_passport: whether a passport that is not there yet is made, and compared with from the next time on; if
            not, nothing is verified.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    questions: tuple[Question, ...]
    every: Literal["night", "week"] = "night"
    makes_passport: bool = False


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
    # If something is known better than by its verdict: as in ``HAPPENINGS``.
    called: str = ""

    @property
    def problems(self) -> Iterator[Problem]:
        """What is wrong, if anything is."""
        if self.level == "problem" and not self.is_accepted:
            called = CALLED.get(self.verdict) or CALLED.get(self.asks, PROBLEM)
        elif self.level == "not measured":
            called = self.called or ("endpoint_silent" if self.asks in ("parity", "verify") else UNANSWERED)
        else:
            return
        changed = f" It was: {self.before}." if self.before not in (None, self.verdict) else ""
        until = HAPPENINGS[called].until
        accept = f" (embaudit accept {quote(self.subject)} --reason TEXT)" if until.endswith(ACCEPTED) else ""
        said = f"{self.asks}: {self.line}{changed} It is green when {until}{accept}."
        yield Problem(called, self.subject, said)


def read_questions(
    tables: Mapping[str, list[dict[str, Any]]], path: Path, shared: Mapping[str, Any], passports: Path
) -> list[AskedEntry]:
    """The questions of a watch list; file names in them are relative to it.

    Args:
        tables: by question or short form, the tables that ask it.
        path: of the watch list.
        shared: settings of the whole list that a question may have, too: ``device``.
        passports: the folder with those of watched endpoints.

    Raises:
        UsageError: naming the file and the entry.
    """
    entries, folder = [], path.parent
    for kind, asked in tables.items():
        for nth, table in enumerate(asked, 1):

            def placed(asks: str, given: Mapping[str, Any], table: Mapping[str, Any] = table) -> Question:
                known = _keys(asks)
                given = {known.get(name, name): value for name, value in given.items()}
                given = {**{name: value for name, value in shared.items() if name in known}, **given}
                return _placed(question_of(asks, given), folder, send_texts=table.get("send_texts", False))

            given = {name: value for name, value in table.items() if name not in OWN_KEYS}
            try:
                questions = (
                    SHORT_FORMS[kind](given, placed, folder, passports)
                    if kind in SHORT_FORMS
                    else [placed(kind, given)]
                )
                made = kind == "endpoint"
                entry = AskedEntry(questions=(*questions,), every=table.get("every", "night"), makes_passport=made)
            except (UsageError, ValueError) as error:
                said = error.happened if isinstance(error, UsageError) else str(error)
                if isinstance(error, ValidationError):
                    said = complaint(dict(error.errors()[0]), AskedEntry)
                raise UsageError(
                    f"Entry {nth} of [[{kind}]] in {path} is wrong: {said}", next_step="See docs/watch.md."
                ) from error
            entries.append(entry)
    return entries


def _keys(asks: str) -> dict[str, str]:
    """The fields of a question by what a list may call them: as their option is, or as from Python."""
    fields = model_of(asks).model_fields
    return {name: name for name in fields} | {
        written.name.replace("-", "_"): name for name, field in fields.items() if (written := written_as(field)).name
    }


Placed = Callable[[str, Mapping[str, Any]], Question]


def _of_endpoint(given: Mapping[str, Any], placed: Placed, folder: Path, passports: Path) -> Iterator[Question]:
    """``[[endpoint]]``: does it serve its checkpoint, or what it served when it was first asked?"""
    if "address" not in given:
        raise ValueError("it has no address")
    others = {name: value for name, value in given.items() if name != "address"}
    if "checkpoint" in given:
        yield placed("parity", {"other": given["address"], **others})
    else:
        passport = passport_of(given["address"], given, passports)
        yield placed("verify", {"other": given["address"], "passport": passport, **others})


def _of_index(given: Mapping[str, Any], placed: Placed, folder: Path, passports: Path) -> Iterator[Question]:
    """``[[index]]``: is its function what it was, whose are the rows that came, and are its golden queries found?"""
    if not (function := given.get("function")):
        raise ValueError("it has no function")
    called = {name: given[name] for name in ("api", "model") if name in given}
    file, passport = Path(beside(function, folder)), passport_of(function, called, passports)
    if file.suffix == ".json" and file.is_file():
        passport = file
        # One that is damaged is told at night, by what verifies it.
        with suppress(UsageError):
            made = read_passport(file)
            said = {name: getattr(made.settings, name) for name in ("pooling", "max_length", "prompt")}
            given = {**said, **given, "function": (function := made.checkpoint.source)}
    if passport == file or not is_checkpoint(function):
        yield placed("verify", {"other": function, "passport": passport, **called})
    yield placed("vectors", {**{name: one for name, one in given.items() if name not in GOLDEN}, "since_last": True})
    if "golden" in given:
        yield placed("why", {name: one for name, one in given.items() if name in _keys("why")})


SHORT_FORMS = {"endpoint": _of_endpoint, "index": _of_index}


def passport_of(address: str, called: Mapping[str, Any], folder: Path) -> Path:
    """Where the passport of a watched endpoint is, if it was watched without a checkpoint."""
    name = hashlib.sha256(repr((address, called.get("api"), called.get("model"))).encode()).hexdigest()[:16]
    return folder / f"{name}.passport.json"


def _placed(question: Question, folder: Path, *, send_texts: bool) -> Question:
    """The question with files beside the list made absolute.

    Raises:
        ValueError: if texts would be sent to another machine and nobody said so.
    """
    update: dict[str, Any] = {}
    for name, field in type(question).model_fields.items():
        written = written_as(field)
        value = getattr(question, name)
        if not value or not (written.holds or written.is_file or name == "corpus"):
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


def require_consent(address: str, send_texts: bool) -> None:
    """Raises:
    ValueError: if texts would be sent to another machine and nobody said so, or an address holds a password."""
    if not is_address(address):
        return
    if has_credentials(address):
        raise ValueError(f"the address has a password: a key is read from {KEY_VARIABLE}")
    if not is_loopback(address) and not send_texts:
        raise ValueError("it is another machine, and texts would be sent there: if that is meant, send_texts = true")


def beside(name: str, folder: Path) -> str:
    """A file or folder beside the list, if there is one; else what the name stands for."""
    if is_address(name):
        return name
    place = folder / Path(name).expanduser()
    return str(place) if place.exists() else name
