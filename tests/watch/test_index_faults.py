"""Nights of an index on which something else fails: no store, no end, a damaged state, a full table."""

from __future__ import annotations

from pathlib import Path

import pytest
from index_library import Library, ids, named

from embaudit.warehouse.query import run_query
from embaudit_flows import watch_record
from embaudit_flows.watch import watch


def test_a_night_without_the_store_or_without_an_end_is_no_night(library: Library) -> None:
    library.write(named(0, 20))
    first = library.night()
    library.write(named(20, 22))
    # Killed before it was recorded.
    library.look().check()
    content = library.path.read_bytes()
    library.path.unlink()
    lost = library.night()
    assert (lost.verdict, lost.is_red, lost.since) == ("gone", True, first.asked)
    assert f"There is no file or folder {library.path}." in lost.line
    library.path.write_bytes(content)
    found = library.night()
    assert (found.since, found.added, found.verdict) == (first.asked, 2, "wholly its own")


@pytest.mark.slow
def test_what_could_not_be_recorded_is_found_again(
    library: Library, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look is what the next one is told against once its row is in the warehouse, and not before."""
    library.write(named(0, 20))
    watch(str(library.list))
    (kept,) = (home / "indexes").iterdir()
    before = kept.read_bytes()
    library.write(named(20, 23))

    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(watch_record, "record_indexes", ends)
        with pytest.raises(KeyboardInterrupt):
            watch(str(library.list))
    assert kept.read_bytes() == before
    assert list(kept.parent.iterdir()) == [kept]
    assert watch(str(library.list)).indexes[0].added == 3
    assert run_query(home / "warehouse.duckdb", "SELECT added FROM index_check ORDER BY asked").rows == [(0,), (3,)]


@pytest.mark.slow
@pytest.mark.parametrize("breaks", ["gone", "damaged"])
def test_a_store_that_does_not_answer_one_night(library: Library, breaks: str) -> None:
    library.write(named(0, 20))
    first = library.night()
    library.write(named(20, 24), revision=1)
    red = library.night()
    content = library.path.read_bytes()
    if breaks == "gone":
        library.path.unlink()
    else:
        library.path.write_bytes(content[:3_000])
    lost = library.night()
    expected = "gone" if breaks == "gone" else "could not be told"
    assert (lost.verdict, lost.rows, lost.since) == (expected, None, red.asked)
    assert str(library.path) in lost.line
    assert f"The next night tells new rows against {red.asked:%Y-%m-%d %H:%M} UTC." in lost.line
    assert lost.problems[1:] == red.problems, "what is open stays so"
    library.path.write_bytes(content)
    library.write(named(24, 27))
    found = library.night()
    assert (found.since, found.added, found.new_foreign) == (red.asked, 3, 0)
    assert ids(found) == named(20, 24)
    assert first.problems == []


@pytest.mark.slow
def test_a_look_that_is_cut_off_leaves_what_the_night_before_left(library: Library) -> None:
    library.write(named(0, 20))
    library.night()
    library.write(named(20, 24), revision=1)
    before = library.look().path.read_bytes()
    # Killed before it was recorded.
    library.look().check()
    assert library.look().path.read_bytes() == before
    assert ids(library.night()) == named(20, 24)


def test_a_state_that_is_damaged_is_named(library: Library) -> None:
    library.write(named(0, 20))
    library.night()
    library.look().path.write_bytes(b"PK\x03\x04 and no more")
    found = library.night()
    assert found.verdict == "could not be told"
    assert f"Begin anew: rm {library.look().path}" in found.line
    library.look().path.unlink()
    assert library.night().verdict == "wholly its own"
