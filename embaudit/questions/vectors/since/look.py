"""Looks at what came into an index since the last time, and at what was there, and says what is open of either.

At every look, a sample of the rows that are new and one of those that were there are encoded again. What was found
stays a problem until those rows are mended, gone or accepted: a row with which something is wrong is known by its hash
until it is changed, and the other rows of a look that found something, if not all of them were encoded, are looked at
again every time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.declared.rule import Finding, rules_in
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.report import AnswerFigure
from embaudit.questions.vectors import crowding, findings, report, text_copies
from embaudit.questions.vectors.crowding import Crowding, crowding_in
from embaudit.questions.vectors.report import StoredReport
from embaudit.questions.vectors.since.inspected import ANOTHER_DIMENSION, NAMED, IndexInspection, IndexNow
from embaudit.questions.vectors.since.open_rows import OpenRows
from embaudit.questions.vectors.since.rows import (
    OLD,
    RowMarks,
    SeenIndex,
    SeenRows,
    WhatIsNew,
    keep_seen,
    marks_of,
    read_seen,
    repeated,
    what_is_new,
)
from embaudit.stores.place import ReadOptions
from embaudit.stores.store import Store
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import first_of

MEANING = "A search does not find these rows as it finds the others."
MEND = "Encode them again, or delete them: until then they stay open. To see each of them: --all --table rows.parquet"


# By which something is a problem of rows.
RULES = {rule.name: rule for rule in (*rules_in(findings, report, text_copies, crowding), ANOTHER_DIMENSION)}


@dataclass(frozen=True)
class SinceLast:
    """What came into an index since it was last looked at, and what is open.

    Attributes:
        since: when that was; None the first time, when all rows are old.
        now: when this look is.
        new: how each row came to be there.
        old, came: what looking at either found; None if there are no such rows.
        open_rows: what was found and is not mended, now and before.
        copied: of the rows that were added, how many repeat one that was there.
        marks, dimension: the rows, and the numbers of most vectors that were there.
        path, judged_by, looks, groups: what is kept of it.
        crowding: what sentinels find among all rows; None if none were asked.
    """

    since: datetime | None
    now: datetime
    new: WhatIsNew
    old: IndexInspection | None
    came: IndexInspection | None
    open_rows: OpenRows
    copied: int
    marks: RowMarks
    dimension: int
    path: Path
    judged_by: str
    looks: int
    groups: np.ndarray
    crowding: Crowding | None = None

    def accept(self, until: datetime) -> SinceLast:
        return replace(self, open_rows=self.open_rows.accept(until))

    def keep(self) -> None:
        """Let the next look be told against this one.

        Raises:
            StorageError: if it cannot be written.
        """
        seen = SeenIndex(
            asked=self.now,
            looks=self.looks,
            judged_by=self.judged_by,
            old_share=0.0 if self.old is None or self.old.share is None else self.old.share[2],
            groups=self.open_rows.groups,
        )
        keep_seen(self.path, seen, SeenRows.of(self.marks, self.groups))

    def findings(self) -> Iterator[Finding]:
        """A problem for everything that is open."""
        for group, name in self.open_rows.open:
            said = group.said[name]
            sentence = said if group.since[name] == self.now else f"Open since {group.since[name]:%Y-%m-%d}: {said}"
            yield RULES[name].finding("problem", sentence, MEANING, MEND)

    @property
    def line(self) -> str:
        """What came, what is wrong with it, what is still open."""
        problems = [finding.sentence for finding in self.findings()]
        looks = ((self.came, "new rows"), (self.old, "rows" if self.since is None else "old rows"))
        whose = [_whose(looked, what) for looked, what in looks if looked is not None]
        return " ".join(
            part for part in (self._what_came, *(problems or whose), self._copies, *self.open_rows.accepted) if part
        )

    @property
    def _what_came(self) -> str:
        if self.since is None:
            return f"First look: {len(self.marks):,} rows."
        counts = {"added": self.new.added, "overwritten": self.new.overwritten, "removed": self.new.removed}
        told = [f"{count:,} {what}" for what, count in counts.items() if count]
        if gone := self.new.removed_ids:
            told[-1] += f" ({first_of(gone, NAMED)})"
        since = f"{self.since:%Y-%m-%d %H:%M} UTC"
        return f"Rows since {since}: {', '.join(told)}." if told else f"No row is new since {since}."

    @property
    def _copies(self) -> str:
        """That most rows that came repeat others: they were added anew; empty if they do not."""
        added = self.new.added
        if self.copied <= added / 2:
            return ""
        many = f"{self.copied:,} of {added:,} rows that were added" if added > 1 else "The row that was added"
        verb = "repeat" if added > 1 else "repeats"
        return (
            f"{many} {verb} the text and the vector of a row that was there: is everything added anew at each start? "
            "Give each text an id of its own, such as its hash, and add it by upsert."
        )

    def figures(self) -> Iterator[AnswerFigure]:
        """Rows that came and went, and what the vectors of new rows are by themselves; of all, in a first look."""
        came, dimensions = self.came, self.marks.dimensions
        yield AnswerFigure("rows", len(self.marks))
        for name in ("added", "overwritten", "removed"):
            yield AnswerFigure(name, getattr(self.new, name))
        if came is not None:
            yield AnswerFigure("new_foreign", len(came.foreign), of=came.encoded)
            if came.share is not None:
                share = Estimate(*came.share)
                yield AnswerFigure("new_share", came.share[0], low=share.low, high=share.high, of=came.encoded)
            profile, chosen = came.report.alone.profile, self.new.came != OLD
            yield AnswerFigure("new_zeros", len(profile.zeros))
            yield AnswerFigure("new_not_finite", len(profile.not_finite))
            yield AnswerFigure("new_without_vector", int((dimensions[chosen] == 0).sum()))
            others = (dimensions[chosen] > 0) & (dimensions[chosen] != self.dimension)
            yield AnswerFigure("new_other_dimensions", int(others.sum()))
            yield AnswerFigure("new_copies", int((self.marks.copies & chosen).sum()))

    def as_json(self) -> dict[str, Any]:
        return {
            "since": None if self.since is None else self.since.isoformat(),
            **{figure.figure: figure.value for figure in self.figures()},
            "removed_ids": list(self.new.removed_ids),
            "accepted": self.open_rows.accepted,
        }


def look_since(
    store: Store,
    function: EmbeddingFunction,
    path: Path,
    *,
    rows: int,
    also: Sequence[str],
    load: Callable[[str], EmbeddingFunction],
) -> StoredReport:
    """Look at an index: what came since the last look by itself, and what was there.

    Args:
        path: what the last look left (``memory_of``).
        rows: of the new rows, and of the old ones, that are encoded again.
        also, load: as for ``look_at``.

    Raises:
        EmbauditError: if the store, the function or what was kept cannot be read.
    """
    now = datetime.now(UTC)
    seen = read_seen(path)
    marks = marks_of(store)
    new = what_is_new(marks, None if seen is None else seen[1])
    judged_by = function.identity or function.asked_as
    if seen is None or seen[0].judged_by != judged_by:
        # Another function: what was compared with the one before is compared with this one, like every old row.
        open_rows = OpenRows.anew(now)
        new = replace(new, groups=np.zeros(len(marks), np.uint16))
    else:
        open_rows = OpenRows(seen[0].groups, seen[0].old_share, now)
    looks = 0 if seen is None else seen[0].looks
    is_new, is_old = new.came != OLD, (new.came == OLD) & (new.groups == 0)
    dimension = _usual_before(marks, new.came)
    there = IndexNow(store, marks, function, load, dimension, rows, also, looks, crowding=crowding_in(store, function))
    old = came = None
    # An index without any row is looked at, too: that is worth a sentence.
    if is_old.any() or not len(marks):
        old = there.look(is_old, "the rows that were there" if seen else "the rows")
        there = there.as_embedded(old)
    if is_new.any():
        came = there.look(is_new, f"the {int(is_new.sum()):,} rows added or overwritten")
    groups = open_rows.look_again(there, new)
    open_rows.judge_old(old, marks.rows)
    if came is not None:
        groups = open_rows.add(came, is_new, groups)
    last = SinceLast(
        since=None if seen is None else seen[0].asked,
        now=now,
        new=new,
        old=old,
        came=came,
        open_rows=open_rows,
        copied=repeated(marks, new.came),
        marks=marks,
        dimension=there.dimension,
        path=path,
        judged_by=judged_by,
        looks=looks + 1,
        groups=groups,
        crowding=there.crowding,
    )
    # Where every row is of a look whose findings were accepted, none is left to look at.
    looked = old or came or there.look(new.groups > 0, "the rows of earlier looks")
    own = tuple(one for one in looked.report.findings if one.level != "problem")
    return replace(looked.report, index=store, since=last, findings=(*last.findings(), *own))


def memory_of(folder: Path, named: str, read: ReadOptions) -> Path:
    """Where it is kept what an index held; another way to read it is another index."""
    way = (named, read.part, read.where, read.vector, read.text, read.id, str(read.texts), read.numbers)
    return folder / f"{hashlib.sha256(repr(way).encode()).hexdigest()[:16]}.npz"


def _usual_before(marks: RowMarks, came: np.ndarray) -> int:
    """The dimension of most rows that were there; of all, if none was."""
    old = replace(marks, dimensions=marks.dimensions[came == OLD])
    return old.usual_dimension or marks.usual_dimension


def _whose(looked: IndexInspection, what: str) -> str:
    """Whose the rows are in which nothing was found."""
    share = looked.share
    if share is None:
        why = next((one.sentence for one in looked.report.findings if one.level == "not measured"), "")
        return f"Cannot tell whose the {what} are. {why}".rstrip()
    is_all = looked.encoded >= looked.rows
    bound = "" if is_all or share[2] == 0 else f" (at most {share[2]:.2%} of all {looked.rows:,} are not)"
    which = f"All {looked.encoded:,} {what}" if is_all else f"Of the {what}, {looked.encoded:,} drawn at random"
    return f"{which} are the {looked.kind}'s{bound}."
