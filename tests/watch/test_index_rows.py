"""How rows of an index are known again: by hashes, in arrays, whatever their order."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from index_library import Library, named

from embaudit.questions.vectors.profile import hash_rows, hash_values
from embaudit.questions.vectors.since import inspected
from embaudit.questions.vectors.since.rows import ADDED, OVERWRITTEN, RowMarks, SeenRows, what_is_new

HASHES = ["0xd9cf81b9c0c00000", "0xc8f1eb643b400000", "0xd229f6ca45a00000"]


HASH_OF_A = 3405396810240292928


def test_a_million_rows_are_told_apart_by_arrays() -> None:
    """What is kept is 18 bytes a row, and telling rows apart takes no object for each."""
    rows = 200_000
    marks = RowMarks(
        np.arange(rows, dtype=np.uint64) * 7, np.arange(rows, dtype=np.uint64) * 11, np.full(rows, 8, np.int32)
    )
    seen = SeenRows.of(marks, np.zeros(rows))
    assert sum(one.nbytes for one in (seen.rows, seen.groups, seen.names)) == 18 * rows
    later = RowMarks(marks.names[100:].copy(), marks.contents[100:].copy(), marks.dimensions[100:])
    later.contents[5] += np.uint64(1)
    later.names[7] += np.uint64(1)
    found = what_is_new(later, seen)
    assert (found.added, found.overwritten, found.removed) == (1, 1, 101)
    assert (int(found.came[7]), int(found.came[5])) == (ADDED, OVERWRITTEN)


def test_rows_in_another_order_and_pieces_of_one_document_are_not_new() -> None:
    """Several rows may have one id; a piece that is added to a document is told as one that changed it."""
    names, contents = np.array([1, 1, 1, 2], np.uint64), np.array([10, 11, 12, 13], np.uint64)
    marks = RowMarks(names, contents, np.full(4, 8, np.int32))
    seen = SeenRows.of(marks, np.zeros(4))
    order = [2, 3, 0, 1]
    same = what_is_new(RowMarks(names[order], contents[order], marks.dimensions), seen)
    assert (same.added, same.overwritten, same.removed) == (0, 0, 0)
    more = RowMarks(np.append(names, names[:1]), np.append(contents, np.uint64(14)), np.full(5, 8, np.int32))
    found = what_is_new(more, seen)
    assert (found.added, found.overwritten, found.removed) == (0, 1, 0)


def test_of_many_rows_that_are_wrong_some_are_kept_and_all_are_counted(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspected, "MOST_KNOWN", 3)
    library.write(named(0, 20))
    library.night()
    library.write(named(20, 28), vectors=np.zeros((8, 32)))
    for count in (8, 7):
        found = library.night()
        assert (found.verdict, len(found.ids)) == ("not wholly its own", 4)
        assert f"{count} of the {count} rows" in found.line
        library.write(["doc-20"])


def test_hashes_are_those_of_every_process_and_version() -> None:
    """What was kept last night by another numpy must not make every row a new one."""
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert [hex(int(one)) for one in hash_rows(vectors)] == HASHES
    assert hash_values(["a", None, 3], 3).tolist() == [HASH_OF_A, 0, hash_values(["3"], 1)[0]]


@pytest.mark.parametrize(("again", "is_said"), [(20, True), (11, True), (9, False)])
def test_a_night_that_adds_everything_anew_is_said(library: Library, again: int, is_said: bool) -> None:
    library.write(named(0, 20))
    library.night()
    with closing(sqlite3.connect(library.path)) as connection, connection:
        rows = connection.execute("SELECT text, vector FROM docs ORDER BY rowid LIMIT ?", (again,)).fetchall()
        named_anew = [(f"new-{number}", *row) for number, row in enumerate(rows)]
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", named_anew)
    library.write(named(20, 20 + 20 - again))
    line = library.night().line
    assert (f"{again} of 20 rows that were added repeat the text and the vector" in line) == is_said
    assert "was there: is everything" not in library.night().line
