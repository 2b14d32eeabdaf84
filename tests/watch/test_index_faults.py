"""Nights of an index on which something else fails: no store, no end, a damaged memory, a full table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from index_library import Library, named

from embaudit.warehouse.query import run_query
from embaudit.words.errors import EmbauditError, EmptyStore, StorageError
from embaudit_flows import ask
from embaudit_flows.watch import watch


def test_a_night_without_the_store_or_without_an_end_is_no_night(library: Library) -> None:
    library.write(named(0, 20))
    first = library.night()
    library.write(named(20, 22))
    # Killed before it was kept.
    library.question.answer()
    content = library.path.read_bytes()
    library.path.unlink()
    with pytest.raises(EmbauditError, match="There is no file or folder"):
        library.night()
    library.path.write_bytes(content)
    found = library.night()
    assert first.report.since is not None
    assert found.report.since is not None
    assert found.report.since.since == first.report.since.now
    assert (found["added"], found.verdict) == (2, "wholly its own")


@pytest.mark.slow
def test_what_could_not_be_kept_is_found_again(library: Library, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is what the next one is told against once its answer is in the warehouse, and not before."""
    library.write(named(0, 20))
    watch(str(library.list))
    question = library.question
    (kept,) = (home / "indexes").iterdir()
    before = kept.read_bytes()
    library.write(named(20, 23))

    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ask, "keep_answer", ends)
        with pytest.raises(KeyboardInterrupt):
            watch(str(library.list))
    assert kept.read_bytes() == before
    assert list(kept.parent.iterdir()) == [kept]
    assert watch(str(library.list)).answers[0].line.startswith("Rows since")
    added = run_query(home / "warehouse.duckdb", "SELECT added FROM index_history ORDER BY asked").rows
    assert added == [(0,), (3,)]
    assert question == library.question


@pytest.mark.slow
def test_a_store_that_is_damaged_one_night(library: Library) -> None:
    library.write(named(0, 20))
    library.night()
    library.write(named(20, 24), revision=1)
    red = library.night()
    content = library.path.read_bytes()
    library.path.write_bytes(content[:3_000])
    with pytest.raises(EmbauditError, match=library.path.name):
        library.night()
    library.path.write_bytes(content)
    library.write(named(24, 27))
    found = library.night()
    assert (found["added"], found["new_foreign"]) == (3, 0)
    assert found.ids == red.ids == named(20, 24)


def test_a_memory_that_is_damaged_is_named(library: Library) -> None:
    library.write(named(0, 20))
    since = library.night().report.since
    assert since is not None
    since.path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(StorageError, match="cannot be read") as damaged:
        library.night()
    assert damaged.value.next_step == f"Begin anew: rm {since.path}"
    since.path.unlink()
    assert library.night().verdict == "wholly its own"


def test_an_empty_index_and_one_without_texts(library: Library) -> None:
    library.write(named(0, 3))
    assert library.night().verdict == "wholly its own"
    library.remove(named(0, 3))
    with pytest.raises(EmptyStore):
        library.night()
    library.write(named(0, 4))
    found = library.night()
    assert (found["added"] + found["overwritten"], found.verdict) == (1, "wholly its own")
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("ALTER TABLE docs DROP COLUMN text")
    without = library.night()
    assert without.verdict == "could not be told"
    assert "has no texts" in without.line
