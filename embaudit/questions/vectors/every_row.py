"""Every row of an index against the checkpoint: those that it did not build, written while they are found."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.against import SampleComparison
from embaudit.questions.vectors.forms import encode_elsewhere, encode_rows
from embaudit.questions.vectors.found_rows import FoundRows, Row, name_of_comparison
from embaudit.questions.vectors.profile import EXACT, LOOK_FIRST
from embaudit.steps.elsewhere import in_order, lost_workers
from embaudit.stores.store import RowBatch, Store
from embaudit.system.files import replace_atomically
from embaudit.words.errors import EmbauditError, StorageError, UsageError

COLUMNS = ("row", "id", "apart", "text")
# Kept for the page and for JSON; the table has all of them.
KEPT = 10_000
# Texts that are encoded together, wherever: few would be padded much, and many are lost to an interrupt.
TOGETHER = 1_024
Progress = Callable[[str, int, int | None], None]
FOREIGN = Rule(
    "foreign_rows",
    problem_if="with `--all`, a row whose vector is not the function's",
    reason="as `other_vectors`, of every row. `not measured` if no row has a vector to be compared",
)
INTERRUPTED = Rule(
    "interrupted", reason="`not measured`: Ctrl-C before a row was found; the same command goes on from there"
)


@dataclass(frozen=True)
class ForeignRows:
    """The rows that a checkpoint did not build.

    Attributes:
        compared: how many rows were encoded again.
        count: how many of them differ.
        first: up to ``KEPT`` of these: number from 1, id, 1 − cosine, text.
        table: where all of them are; None if nowhere.
        is_whole: False if it was interrupted.
        kind: what they were held against: a checkpoint, an endpoint …
        read: rows of the index that were read.
    """

    compared: int
    count: int
    first: tuple[Row, ...]
    table: Path | None
    read: int
    is_whole: bool = True
    kind: str = "checkpoint"

    def findings(self) -> Iterator[Finding]:
        where = f" {self.table} lists each." if self.table and self.count else ""
        part = f" Interrupted after row {self.read:,}; what was found is kept, and the same command goes on from there."
        if self.count:
            yield FOREIGN.finding(
                "problem",
                f"{self.count:,} of {self.compared:,} rows with a text were not built by this {self.kind}{EXACT}."
                f"{where}{'' if self.is_whole else part}",
                "Queries are compared with vectors of another function.",
                "Encode these rows again.",
                float(self.count),
            )
        elif self.is_whole and not self.compared:
            yield FOREIGN.finding(
                "not measured",
                f"No row was compared: the {self.kind} gives a vector of no row's text.",
                "Nothing is said of any row.",
                LOOK_FIRST.format(self.kind),
            )
        elif self.is_whole:
            every = f"Every one of {self.compared:,} rows" if self.compared > 1 else "The one row"
            yield FOREIGN.finding("ok", f"{every} with a text has the {self.kind}'s vector{EXACT}.", value=0.0)
        if not self.is_whole and not self.count:
            where = f"after row {self.read:,}" if self.read else "before the first row"
            advice = "Run the same command again."
            yield INTERRUPTED.finding("not measured", f"It was interrupted {where}.", advice=advice)

    def as_json(self) -> dict[str, Any]:
        return {
            "compared": self.compared,
            "not_its_own": self.count,
            "table": None if self.table is None else str(self.table),
            "is_whole": self.is_whole,
            "is_exact": True,
            "rows_read": self.read,
            "rows": [dict(zip(COLUMNS, row, strict=True)) for row in self.first],
        }


def find_foreign(
    index: Store,
    function: EmbeddingFunction,
    against: SampleComparison,
    *,
    table: Path | None = None,
    total: int | None = None,
    kept_in: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> ForeignRows:
    """Encode every row again, in parts; Ctrl-C ends it, and what was found until then is written.

    Parts may be encoded by other processes (docs/runners.md). This one reads the index and keeps what is found, in
    order, so that each row counts once.

    Args:
        against: the sample, which says how vectors are stored and what is rounding.
        table: .csv or .parquet.
        kept_in: a folder that remembers how far an interrupted comparison came: the same one goes on from there.

    Raises:
        StorageError: if the table, or what is kept, cannot be written.
        MeasureError: if workers were lost.
    """
    dimension = against.rows.vectors.shape[1]
    form = against.form
    assert form is not None
    # Rows in another precision are the checkpoint's.
    is_in_two = any(reason.is_rounding for reason in against.reasons)
    tolerance = form.ceiling if is_in_two else against.tolerance
    name = name_of_comparison(index, function.asked_as, f"{form.said} {tolerance}")
    found = FoundRows(None if kept_in is None else kept_in / f"rows-{name}.sqlite")
    if found.read:
        progress(f"rows compared (those up to {found.read:,} were before)", found.compared, total)
    is_whole = True
    reading = _Reading(index, dimension, found.read)
    parts = in_order(
        reading.parts(),
        lambda part: part.texts,
        here=partial(encode_rows, function),
        elsewhere=encode_elsewhere(function),
    )
    try:
        with closing(parts):
            for part, ours in parts:
                distances = form.distance(ours, part.vectors)
                own = [part.row(int(one), float(distances[one])) for one in np.flatnonzero(distances > tolerance)]
                found.add(own, int(part.numbers[-1]) + 1, int(np.isfinite(distances).sum()))
                progress("rows compared", len(part.texts), total)
        found.add([], max(found.read, reading.end), 0)
    except KeyboardInterrupt:
        is_whole = False
    except Exception as error:
        found.close()
        told = _with_kept(error, found.read)
        if told is None:
            raise
        raise told from error
    if table is not None:
        _write(found.rows(), table)
    result = ForeignRows(
        found.compared, found.count, tuple(found.rows(KEPT)), table, found.read, is_whole, function.kind
    )
    if is_whole:
        found.forget()
    else:
        found.close()
    return result


def _with_kept(error: Exception, read: int) -> EmbauditError | None:
    """The error with what is kept of an index of which so many rows are done; None to leave it as it is."""
    kept = f"What was found in the first {read:,} rows is kept; the same command goes on from there." if read else ""
    if lost := lost_workers(error, "rows", kept or "The index is as it was."):
        return lost
    if kept and isinstance(error, EmbauditError):
        return type(error)(error.happened, kept=error.kept or kept, next_step=error.next_step)
    return None


@dataclass(frozen=True)
class _Together:
    """Rows that are encoded together.

    Attributes:
        numbers: (m,) from 0, ascending.
        vectors: (m, D) as stored.
    """

    numbers: np.ndarray
    vectors: np.ndarray
    texts: list[str]
    ids: list[str | None]

    def row(self, place: int, apart: float) -> Row:
        return int(self.numbers[place]) + 1, self.ids[place], apart, self.texts[place]


class _Reading:
    """Reads the rows of an index that can be compared, from row ``done`` on.

    Attributes:
        end: up to where it was read.
    """

    def __init__(self, index: Store, dimension: int, done: int) -> None:
        self._index, self._dimension, self._done = index, dimension, done
        self.end = 0

    def parts(self) -> Iterator[_Together]:
        for batch in self._index.batches():
            yield from self._of(batch)
            self.end = batch.start + batch.rows

    def _of(self, batch: RowBatch) -> Iterator[_Together]:
        nothing = np.empty(0, np.int64), np.empty((0, self._dimension))
        places, vectors = batch.vectors.get(self._dimension, nothing)
        texts, ids = batch.texts, batch.ids
        if texts is None or not len(places):
            return
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
        usable = np.isfinite(norms) & (norms > 0) & (places >= self._done - batch.start)
        own = [int(one) for one in np.flatnonzero(usable) if texts[int(places[one])] is not None]
        for start in range(0, len(own), TOGETHER):
            chosen = own[start : start + TOGETHER]
            some = [int(place) for place in places[chosen]]
            yield _Together(
                batch.start + places[chosen],
                vectors[chosen],
                [texts[place] or "" for place in some],
                [None if ids is None or ids[place] is None else str(ids[place]) for place in some],
            )


def check_table(path: Path) -> None:
    """Refuse a table of another format before anything is encoded.

    Raises:
        UsageError: if its name ends in neither .csv nor .parquet.
    """
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"{path} is no table that can be written.", next_step="Name it .csv or .parquet.")


def _write(rows: Iterator[Row], path: Path) -> None:
    """A table that is complete or absent."""
    check_table(path)
    try:
        with replace_atomically(path) as partial:
            (_csv if path.suffix.lower() == ".csv" else _parquet)(rows, partial)
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error}.", next_step="Choose another place: --table FILE") from error


def _csv(rows: Iterator[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def _parquet(rows: Iterator[Row], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("row", pa.int64()), ("id", pa.string()), ("apart", pa.float64()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        while some := list(islice(rows, TOGETHER)):
            columns = dict(zip(COLUMNS, zip(*some, strict=True), strict=True))
            writer.write_table(pa.table({name: list(column) for name, column in columns.items()}, schema=schema))
