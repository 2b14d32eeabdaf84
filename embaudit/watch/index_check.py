"""Looks at an index of a watch list: what came into it since the last look, and whether its function built it.

Every night, a sample of the rows that are new and one of those that were there are encoded again. What was found stays
red until those rows are mended, gone or accepted: a row with which something is wrong is known by its hash until it is
changed, and the other rows of a red night, if not all of them were encoded, are looked at again every night.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.stores.opened import open_store
from embaudit.stores.place import SeveralFit
from embaudit.stores.store import Store
from embaudit.system.installed import content_key
from embaudit.warehouse.tables.index_check import CheckVerdict
from embaudit.watch.index_function import WatchedEmbedder, open_held
from embaudit.watch.index_golden import ask_golden, said_of_golden
from embaudit.watch.index_look import IndexInspection, IndexNow
from embaudit.watch.index_open import OpenRows
from embaudit.watch.index_rows import OLD, RowMarks, SeenRows, marks_of, repeated, what_is_new
from embaudit.watch.index_said import (
    said_of_another,
    said_of_copies,
    said_of_failure,
    said_of_look,
    what_to_do,
    whose,
)
from embaudit.watch.index_seen import FOLDER, SeenIndex, keep_seen, read_seen
from embaudit.watch.index_whole import ROWS_LOST, WHOLE, LastLook, is_gone, problem_of, rows_lost
from embaudit.watch.watch_list import IndexEntry
from embaudit.words.errors import CorpusError, EmbauditError, EmptyStore
from embaudit.words.estimate import Estimate
from embaudit.words.masking import masked

LOOK = "Look whether it was moved, or what deleted it."
# (key of the check that found it first, name of the finding) of what somebody accepted.
Accepted = Collection[tuple[str, str]]


class CheckedIndex(BaseModel):
    """What a look at an index found; a row of the table ``index_check``."""

    model_config = ConfigDict(frozen=True)

    check_key: str
    store: str
    asked: datetime
    since: datetime | None = None
    function: str
    checkpoint_id: str | None = None
    passport: str | None = None
    passport_id: str | None = None
    verdict: CheckVerdict = "could not be told"
    line: str
    rows: int | None = None
    most_rows: int | None = None
    added: int | None = None
    overwritten: int | None = None
    removed: int | None = None
    new_encoded: int | None = None
    new_foreign: int | None = None
    new_share: float | None = None
    new_share_low: float | None = None
    new_share_high: float | None = None
    old_encoded: int | None = None
    old_foreign: int | None = None
    old_share: float | None = None
    old_share_low: float | None = None
    old_share_high: float | None = None
    zeros: int | None = None
    not_finite: int | None = None
    without_vector: int | None = None
    copies: int | None = None
    dimension: int | None = None
    other_dimensions: int | None = None
    golden_queries: int | None = None
    golden_found: int | None = None
    golden_share: float | None = None
    golden_share_low: float | None = None
    golden_share_high: float | None = None
    golden_lost: list[dict[str, str]] = []
    open_rows: list[dict[str, str]] = []
    problems: list[dict[str, str]] = []
    accepted: list[str] = []
    seconds: float = 0.0
    # What to type; it ends the line, too.
    advice: str = ""

    @property
    def is_red(self) -> bool:
        """Whether something is open that nobody accepted."""
        return bool(self.problems) or self.verdict == "another function"


class IndexLook:
    """One look at an index, in two steps: what was found is recorded before it is what the next look is told against.

    Args:
        home: the folder of results.
        reports: the folder with passports.
        accepted: what somebody accepted until now.
        last: what the warehouse knows of it; None in a first look.
    """

    def __init__(
        self, entry: IndexEntry, home: Path, reports: Path, accepted: Accepted, last: LastLook | None = None
    ) -> None:
        self._entry, self._reports, self._accepted, self._last = entry, reports, accepted, last
        self.path = seen_of(entry, home)
        self._kept: tuple[SeenIndex, SeenRows] | None = None

    def check(self) -> CheckedIndex:
        """Look at it; what fails is the outcome, and raises nothing."""
        start = time.monotonic()
        now = datetime.now(UTC)
        entry = self._entry
        facts: dict[str, Any] = {
            "check_key": content_key(index=entry.name, asked=now.isoformat()),
            "store": entry.name,
            "asked": now,
            "function": masked(entry.function),
        }
        before: OpenRows | None = None
        try:
            seen = read_seen(self.path)
            if seen is not None:
                facts["since"] = seen[0].asked
                before = OpenRows(seen[0].groups, seen[0].old_share, self._accepted)
            held = open_held(entry, self._reports)
            with held.function:
                facts |= self._facts(held, seen, before, facts["check_key"], now)
        except EmbauditError as error:
            facts |= self._unread(error, before, facts.get("since"), facts["check_key"], now)
        return CheckedIndex(**facts, seconds=time.monotonic() - start)

    def keep(self) -> None:
        """Let the next look be told against this one; one that failed leaves what was kept before."""
        if self._kept is not None:
            keep_seen(self.path, *self._kept)

    def _unread(
        self, error: EmbauditError, before: OpenRows | None, since: datetime | None, key: str, now: datetime
    ) -> dict[str, Any]:
        """Nothing could be read: the index is gone, or it cannot be told; what was open stays open."""
        facts, last = _as_before(before), self._last
        verdict = "empty" if isinstance(error, EmptyStore) else "could not be told"
        if is_gone(self._entry):
            # Whatever failed first: the function may be missing, too.
            verdict, error = "gone", CorpusError(f"There is no file or folder {self._entry.store}.", next_step=LOOK)
        said = " ".join(filter(None, (error.happened, error.kept)))
        whole = problem_of(verdict, said, last, key, now, self._accepted)
        advice = " ".join(part for part in (error.next_step, what_to_do(self._entry, whole)) if part)
        line = said_of_failure(error, facts["problems"], since, advice)
        lost = [] if last is None else [one for one in last.problems if one["name"] == ROWS_LOST]
        problems = [*whole, *lost, *facts["problems"]]
        most = None if last is None else last.most_rows
        return {**facts, "verdict": verdict, "line": line, "problems": problems, "advice": advice, "most_rows": most}

    def _facts(
        self,
        held: WatchedEmbedder,
        seen: tuple[SeenIndex, SeenRows] | None,
        before: OpenRows | None,
        key: str,
        now: datetime,
    ) -> dict[str, Any]:
        function, passport = held.function, held.passport
        facts: dict[str, Any] = {
            "function": masked(held.name),
            "checkpoint_id": function.identity or None,
            "passport": None if passport is None else str(passport.path),
            "passport_id": None if passport is None else passport.id,
        }
        if passport is not None and passport.otherwise:
            # What it gives tonight says nothing of rows that it built before.
            facts |= {"verdict": "another function", **_as_before(before)}
            return {**facts, "line": said_of_another(passport, self._entry, facts["problems"])}
        store = _opened(self._entry, held)
        marks = marks_of(store)
        new = what_is_new(marks, None if seen is None else seen[1])
        judged_by = function.identity or function.asked_as
        if seen is None or before is None or seen[0].judged_by != judged_by:
            # Another function: what was held against the one before is held against this one, like every old row.
            before = OpenRows.anew(now)
            new = replace(new, groups=np.zeros(len(marks), np.uint16))
        nights = 0 if seen is None else seen[0].nights
        is_new, is_old = new.came != OLD, (new.came == OLD) & (new.groups == 0)
        now_there = IndexNow(
            store=store,
            marks=marks,
            held=held,
            dimension=_usual_before(marks, new.came),
            rows=self._entry.rows,
            also=self._entry.also,
            seed=nights,
        )
        old = (
            now_there.look(is_old, "the rows that were there" if seen else "the rows") if _any(is_old, marks) else None
        )
        now_there = now_there if old is None else now_there.as_embedded(old)
        what = f"the {int(is_new.sum()):,} rows added or overwritten"
        came = now_there.look(is_new, what) if is_new.any() else None
        groups = before.look_again(now_there, new)
        before.judge_old(old, marks.rows, key, now)
        if came is not None:
            groups = before.add(came, is_new, groups, key, now)
        golden, said = (None if seen is None else seen[0].golden), ""
        asked_golden: dict[str, Any] = {}
        if self._entry.golden is not None:
            golden, asked_golden = ask_golden(self._entry, function, golden, self._accepted, key, now)
            said = said_of_golden(golden, asked_golden)
        self._kept = (
            SeenIndex(
                check_key=key,
                asked=now,
                nights=nights + 1,
                judged_by=judged_by,
                old_share=0.0 if old is None or old.share is None else old.share[2],
                groups=before.groups,
                golden=golden,
            ),
            SeenRows.of(marks, groups),
        )
        is_told = any(one is not None and one.share is not None for one in (old, came))
        lost_queries = golden.problems if golden is not None and self._entry.golden is not None else []
        most, whole = rows_lost(self._entry, len(marks), self._last, key, now, self._accepted)
        # Where every row is of an accepted night, nothing is left to look at.
        is_told = is_told or (old is None and came is None)
        verdict = next(
            (
                name
                for name, is_so in (
                    ("empty", not len(marks)),
                    ("rows lost", bool(whole)),
                    ("not wholly its own", bool(before.problems)),
                    ("golden queries lost", bool(lost_queries)),
                    ("could not be told", not is_told),
                )
                if is_so
            ),
            "wholly its own",
        )
        if verdict in WHOLE:
            told = (
                whose(old, came) if len(marks) else f"It has no rows; it had {most:,}." if most else "It has no rows."
            )
            whole = problem_of(verdict, told, self._last, key, now, self._accepted)
        problems = [*whole, *before.problems, *lost_queries]
        since = seen[0].asked if seen else None
        advice = what_to_do(self._entry, problems)
        accepted = before.accepted
        copied = said_of_copies(new.added, repeated(marks, new.came))
        return {
            **facts,
            **asked_golden,
            "verdict": verdict,
            "line": said_of_look(new, old, came, problems, key, since, [said, copied, *accepted, advice]),
            "advice": advice,
            "accepted": accepted,
            "rows": len(marks),
            "most_rows": most,
            "added": new.added,
            "overwritten": new.overwritten,
            "removed": new.removed,
            **_figures("new", came),
            **_figures("old", old),
            **_alone(came, marks, is_new if came is not None else is_old, now_there.dimension),
            "open_rows": before.rows,
            "problems": problems,
        }


def seen_of(entry: IndexEntry, home: Path) -> Path:
    """Where it is kept what an index held; another way to read it is another index."""
    asked = entry.asked_rows
    read = (entry.store, asked.part, asked.where, asked.vector, asked.text, asked.id, str(asked.texts), asked.numbers)
    name = hashlib.sha256(repr(read).encode()).hexdigest()[:16]
    return home / FOLDER / f"{name}.npz"


def _as_before(before: OpenRows | None) -> dict[str, Any]:
    """What stays open where nothing was looked at."""
    return (
        {"problems": [], "open_rows": []} if before is None else {"problems": before.problems, "open_rows": before.rows}
    )


def _opened(entry: IndexEntry, held: WatchedEmbedder) -> Store:
    try:
        return open_store(entry.store, entry.asked_rows)
    except SeveralFit:
        from embaudit.questions.vectors.report import dimension_of

        return open_store(entry.store, replace(entry.asked_rows, dimension=dimension_of(held.function)))


def _usual_before(marks: RowMarks, came: np.ndarray) -> int:
    """The dimension of most rows that were there; of all, if none was."""
    old = replace(marks, dimensions=marks.dimensions[came == OLD])
    return old.usual_dimension or marks.usual_dimension


def _any(chosen: np.ndarray, marks: RowMarks) -> bool:
    # An index without any row is looked at, too: that is worth a sentence.
    return bool(chosen.any()) or not len(marks)


def _figures(what: str, looked: IndexInspection | None) -> dict[str, Any]:
    if looked is None:
        return {f"{what}_encoded": 0, f"{what}_foreign": 0}
    return {
        f"{what}_encoded": looked.encoded,
        f"{what}_foreign": len(looked.foreign),
        **Estimate(*looked.share or ()).columns(f"{what}_share"),
    }


def _alone(looked: IndexInspection | None, marks: RowMarks, chosen: np.ndarray, dimension: int) -> dict[str, Any]:
    """What the vectors of new rows are by themselves; of all, in a first look."""
    dimensions = marks.dimensions[chosen]
    return {
        "zeros": 0 if looked is None else len(looked.report.alone.profile.zeros),
        "not_finite": 0 if looked is None else len(looked.report.alone.profile.not_finite),
        "without_vector": int((dimensions == 0).sum()),
        "copies": int((marks.copies & chosen).sum()),
        "dimension": dimension,
        "other_dimensions": int(((dimensions > 0) & (dimensions != dimension)).sum()),
    }
