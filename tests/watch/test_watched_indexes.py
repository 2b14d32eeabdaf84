"""Indexes on a watch list: what came into one since the night before, whose rows these are, and what is open."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from commands import run_here

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.cli.main import cli
from embaudit.comparisons.passport.file import write_passport
from embaudit.comparisons.passport.make import make_passport
from embaudit.comparisons.stored.row_hash import hash_rows, hash_values
from embaudit.errors import WarehouseError
from embaudit.functions.opened import open_function
from embaudit.warehouse.migrate import known_views
from embaudit.warehouse.open_items import read_accepted_in_indexes
from embaudit.warehouse.query import run_query
from embaudit.watch import index_look
from embaudit.watch.index_check import CheckedIndex, IndexLook
from embaudit.watch.index_rows import ADDED, OVERWRITTEN, RowMarks, SeenRows, what_is_new
from embaudit.watch.index_said import command
from embaudit.watch.watch_list import IndexEntry, read_watch_list
from embaudit_flows import watch_record
from embaudit_flows.watch import watch
from embaudit_flows.watch_record import FOREIGN_STATE

Put = Callable[[Path, int], Path]
HASHES = ["0xd9cf81b9c0c00000", "0xc8f1eb643b400000", "0xd229f6ca45a00000"]
HASH_OF_A = 3405396810240292928


def texts_of(names: Sequence[str]) -> list[str]:
    return [f"the {name} of the old river in winter {len(name) * 7}" for name in names]


@dataclass
class Library:
    """A store of its own, in a SQLite file, that jobs write to; and the two revisions they may run with."""

    folder: Path
    path: Path
    encode: tuple[Callable[[Sequence[str]], np.ndarray], ...]
    has_ids: bool = True
    accepted: set[tuple[str, str]] = field(default_factory=set)
    more: str = ""
    store: str = ""
    function: str = "model"

    def write(self, names: Sequence[str], revision: int = 0, vectors: np.ndarray | None = None) -> None:
        """Rows with these ids, added or overwritten."""
        rows = self.encode[revision](texts_of(names)) if vectors is None else vectors
        with closing(sqlite3.connect(self.path)) as connection, connection:
            key = "TEXT PRIMARY KEY" if self.has_ids else "TEXT"
            connection.execute(f"CREATE TABLE IF NOT EXISTS docs (id {key}, text TEXT, vector BLOB)")
            for name, text, row in zip(names, texts_of(names), rows, strict=True):
                row_id = name if self.has_ids else None
                blob = None if row is None else np.asarray(row, np.float32).tobytes()
                connection.execute("INSERT OR REPLACE INTO docs VALUES (?, ?, ?)", (row_id, text, blob))

    def remove(self, names: Sequence[str]) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executemany("DELETE FROM docs WHERE text = ?", [(text,) for text in texts_of(names)])

    @property
    def list(self) -> Path:
        path = self.folder / "watch.toml"
        path.write_text(
            f'[settings]\ndevice = "cpu"\n[[index]]\nstore = "{self.store or self.path.name}"\n'
            f'function = "{self.function}"\n{self.more}\n'
        )
        return path

    @property
    def entry(self) -> IndexEntry:
        (entry,) = read_watch_list(self.list).index
        return entry

    def look(self) -> IndexLook:
        return IndexLook(self.entry, self.folder / "home", self.folder / "home" / "reports", self.accepted)

    def night(self) -> CheckedIndex:
        look = self.look()
        found = look.check()
        look.keep()
        return found


def named(start: int, stop: int) -> list[str]:
    return [f"doc-{number}" for number in range(start, stop)]


def ids(found: CheckedIndex) -> list[str]:
    return [row["id"] for row in found.open_rows]


@pytest.fixture
def library(tmp_path: Path, put: Put, weights: Callable[[int], Path]) -> Library:
    put(tmp_path / "model", 0)

    def of(seed: int) -> Callable[[Sequence[str]], np.ndarray]:
        encoder = Encoder(load_checkpoint(str(weights(seed)), LoadOptions(device="cpu")))
        return lambda texts: encoder.encode_texts(list(texts))

    return Library(tmp_path, tmp_path / "library.sqlite", (of(0), of(1)))


def test_five_nights(library: Library) -> None:
    library.write(named(0, 40))
    first = library.night()
    assert (first.verdict, first.since, first.rows, first.added, first.old_encoded) == (
        *("wholly its own", None),
        *(40, 0, 40),
    )
    assert "First look: 40 rows. All 40 rows are the checkpoint's." in first.line
    assert (first.dimension, first.zeros, first.other_dimensions, first.problems) == (32, 0, 0, [])

    library.write(named(40, 50))
    second = library.night()
    assert (second.verdict, second.since, second.added, second.new_encoded, second.new_foreign) == (
        *("wholly its own", first.asked),
        *(10, 10, 0),
    )
    assert (second.new_share, second.old_share) == (0, 0)

    library.write(named(50, 58), revision=1)
    library.write(named(58, 60))
    third = library.night()
    assert third.verdict == "not wholly its own"
    assert (third.added, third.new_encoded, third.new_foreign, third.old_foreign) == (10, 10, 8, 0)
    assert (third.new_share, third.new_share_low, third.new_share_high) == (0.8, 0.8, 0.8)
    assert ids(third) == named(50, 58)
    assert "8 of the 10 rows added or overwritten are not the checkpoint's (80.0%): doc-50, doc-51" in third.line
    assert "and 3 more" in third.line
    assert f"embaudit vectors {library.folder / 'model'} {library.path} --all --table rows.parquet" in third.line
    assert f"embaudit accept {library.path} --reason TEXT" in third.line

    fourth = library.night()
    assert (fourth.verdict, fourth.added, fourth.new_encoded) == ("not wholly its own", 0, 0)
    assert ids(fourth) == named(50, 58)
    assert [problem["key"] for problem in fourth.problems] == [third.check_key]
    assert "No row is new since" in fourth.line
    assert f"Open since {third.asked:%Y-%m-%d}: 8 of the 10 rows of {third.asked:%Y-%m-%d} are not the" in fourth.line

    library.write(named(50, 58))
    fifth = library.night()
    assert (fifth.verdict, fifth.added, fifth.overwritten, fifth.new_foreign) == ("wholly its own", 0, 8, 0)
    assert (fifth.problems, fifth.open_rows) == ([], [])


def test_a_golden_query_that_is_lost_one_night_is_red_until_it_is_found(library: Library) -> None:
    names = named(0, 40)
    asked = dict(zip(("doc-3", "doc-9", "doc-99"), texts_of(["doc-3", "doc-9", "doc-99"]), strict=True))
    (library.folder / "golden.csv").write_text(
        "query,expect\n" + "".join(f"{text},{name}\n" for name, text in asked.items())
    )
    library.more = 'golden = "golden.csv"\nk = 3'
    library.write(names)
    first = library.night()
    assert (first.verdict, first.golden_queries, first.golden_found) == ("wholly its own", 3, 2)
    assert [one["lost"] for one in first.golden_lost] == ["absent"]
    assert "Golden queries: 2 of 3 are found; 1 lost before." in first.line
    assert not first.is_red

    library.remove(["doc-9"])
    second = library.night()
    assert (second.verdict, second.golden_found, second.is_red) == ("golden queries lost", 1, True)
    assert "A golden query is found no more: 'the doc-9" in second.line
    assert "no such row" in second.line
    third = library.night()
    assert [problem["key"] for problem in third.problems] == [second.check_key]
    assert f"Open since {second.asked:%Y-%m-%d}: A golden query" in third.line

    library.write(["doc-9", "doc-99"])
    mended = library.night()
    assert (mended.verdict, mended.golden_found, mended.golden_lost) == ("wholly its own", 3, [])
    library.remove(["doc-99"])
    assert library.night().verdict == "golden queries lost"
    library.accepted = {(library.night().problems[0]["key"], "golden")}
    assert library.night().verdict == "wholly its own"


@pytest.mark.slow
def test_a_half_mended_night_stays_red(library: Library) -> None:
    library.more = "rows = 20"
    library.write(named(0, 60))
    library.night()
    library.write(named(60, 100), revision=1)
    red = library.night()
    assert (red.added, red.new_encoded, red.new_foreign) == (40, 20, 20)
    assert "100.0% [" in red.line
    assert "of the 40 rows added or overwritten are not the checkpoint's, 20 of 20 that were encoded again" in red.line
    # Whoever mends only what was named has mended a part.
    library.write(ids(red))
    half = library.night()
    assert half.verdict == "not wholly its own"
    assert set(ids(half)) == set(named(60, 100)) - set(ids(red))
    library.remove(named(60, 100))
    done = library.night()
    assert (done.verdict, done.removed, done.open_rows) == ("wholly its own", 40, [])


@pytest.mark.parametrize("has_ids", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_rows_are_known_again(library: Library, has_ids: bool) -> None:
    library.has_ids = has_ids
    library.write(named(0, 30))
    library.night()
    library.remove(named(0, 4))
    library.write(named(30, 33))
    if has_ids:
        library.write(["doc-9"], vectors=library.encode[1](texts_of(["doc-9"])))
    else:
        library.remove(["doc-9"])
        library.write(["doc-9"], revision=1)
    found = library.night()
    # Without ids, a row that is overwritten is one that is gone and another one.
    counts = (3, 1, 4) if has_ids else (4, 0, 5)
    assert (found.added, found.overwritten, found.removed) == counts
    assert (found.new_encoded, found.new_foreign, found.old_foreign) == (4, 1, 0)
    assert ids(found) == (["doc-9"] if has_ids else ["row 29"])
    assert library.night().verdict == "not wholly its own"


@pytest.mark.slow
def test_a_text_that_was_edited_and_not_encoded_again_is_found(library: Library) -> None:
    library.write(named(0, 20))
    library.night()
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("UPDATE docs SET text = 'a law of the bank and the court' WHERE id = 'doc-3'")
    found = library.night()
    assert (found.overwritten, found.new_foreign, ids(found)) == (1, 1, ["doc-3"])


def test_a_night_without_the_store_or_without_an_end_is_no_night(library: Library) -> None:
    library.write(named(0, 20))
    first = library.night()
    library.write(named(20, 22))
    # Killed before it was recorded.
    library.look().check()
    content = library.path.read_bytes()
    library.path.unlink()
    lost = library.night()
    assert (lost.verdict, lost.is_red, lost.since) == ("could not be told", False, first.asked)
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
def test_nights_of_a_chroma_folder(library: Library) -> None:
    chromadb = pytest.importorskip("chromadb", reason="needs chromadb: pip install 'embaudit[chroma]'")
    library.store = "chroma"
    library.more = 'from = "docs"'

    def write(names: Sequence[str], revision: int = 0) -> None:
        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(library.folder / "chroma"), settings=settings)
        vectors = library.encode[revision](texts_of(names))
        collection = client.get_or_create_collection("docs", embedding_function=None)
        collection.upsert(ids=list(names), embeddings=vectors, documents=texts_of(names))
        client.close()

    write(named(0, 40))
    assert library.night().verdict == "wholly its own"
    write(named(35, 45))
    second = library.night()
    # What is written again as it was is not new.
    assert (second.added, second.overwritten, second.verdict) == (5, 0, "wholly its own")
    write(named(43, 48), revision=1)
    third = library.night()
    assert (third.added, third.overwritten, ids(third)) == (3, 2, named(43, 48))
    assert f"{library.folder / 'chroma'} --from docs --all" in third.line
    assert third.store == f"{library.folder / 'chroma'} (from docs)"
    write(named(43, 48))
    assert library.night().verdict == "wholly its own"


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
    assert (lost.verdict, lost.rows, lost.since) == ("could not be told", None, red.asked)
    assert str(library.path) in lost.line
    assert f"The next night tells new rows against {red.asked:%Y-%m-%d %H:%M} UTC." in lost.line
    assert lost.problems == red.problems, "what is open stays so"
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


def test_what_is_wrong_with_new_vectors_alone(library: Library) -> None:
    library.write(named(0, 30))
    library.night()
    own = library.encode[0](texts_of(named(30, 34))).astype(np.float32)
    own[0], own[1, 3] = 0, np.nan
    library.write(named(30, 34), vectors=own)
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("INSERT INTO docs SELECT 'twice', text, vector FROM docs WHERE id = 'doc-2'")
        connection.execute("INSERT INTO docs VALUES ('none', 'a text', NULL)")
        connection.execute("INSERT INTO docs VALUES ('short', 'a text', ?)", (np.ones(16, np.float32).tobytes(),))
    found = library.night()
    assert (found.zeros, found.not_finite, found.without_vector, found.copies, found.other_dimensions) == (
        1,
        1,
        1,
        1,
        1,
    )
    assert (found.new_foreign, found.verdict) == (0, "not wholly its own")
    for sentence in (
        "1 of the 7 rows added or overwritten holds zeros only: doc-30.",
        "1 of the 7 rows added or overwritten holds NaN or infinity: doc-31.",
        "1 of the 7 rows added or overwritten has no vector: none.",
        "1 of the 7 rows added or overwritten has another number of dimensions: short.",
    ):
        assert sentence in found.line
    again = library.night()
    assert {problem["name"] for problem in again.problems} == {problem["name"] for problem in found.problems}
    library.write(named(30, 34))
    library.remove(["short"])
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("DELETE FROM docs WHERE id IN ('none', 'short')")
    assert library.night().verdict == "wholly its own"


@pytest.mark.slow
def test_an_encoder_that_gave_one_vector_to_all_texts(library: Library) -> None:
    library.write(named(0, 30))
    library.night()
    library.write(named(30, 42), vectors=library.encode[0](["the same text"] * 12))
    found = library.night()
    assert (found.new_foreign, {one["name"] for one in found.problems}) == (12, {"other_vectors", "equal_vectors"})
    assert "12 different texts of the 12 rows added or overwritten have one and the same vector." in found.line
    assert "old river" not in found.model_dump_json() + library.look().path.read_bytes().decode(errors="replace")


def accept_all(library: Library, found: CheckedIndex, names: Collection[str] = ()) -> None:
    library.accepted |= {
        (problem["key"], problem["name"]) for problem in found.problems if not names or problem["name"] in names
    }


@pytest.mark.slow
def test_what_was_accepted_stays_so_and_what_comes_later_is_red(library: Library) -> None:
    library.write(named(0, 30))
    library.write(named(30, 33), revision=1)
    first = library.night()
    assert (first.verdict, first.old_foreign, ids(first)) == ("not wholly its own", 3, named(30, 33))
    accept_all(library, first)
    assert library.night().verdict == "wholly its own"
    library.write(named(33, 36), revision=1)
    red = library.night()
    assert ids(red) == named(33, 36)
    accept_all(library, red)
    for _ in range(2):
        green = library.night()
        assert (green.verdict, green.problems) == ("wholly its own", [])
    # Rows that were accepted, and are written again wrongly, are new ones.
    library.write(named(34, 36), vectors=-library.encode[1](texts_of(named(34, 36))))
    assert ids(library.night()) == named(34, 36)


@pytest.mark.slow
def test_a_function_that_was_exchanged_is_what_every_row_is_held_against(library: Library, put: Put) -> None:
    library.write(named(0, 20))
    library.night()
    library.write(named(20, 24), revision=1)
    assert ids(library.night()) == named(20, 24)
    put(library.folder / "model", 1)
    found = library.night()
    assert sorted(ids(found)) == sorted(named(0, 20))
    assert (found.added, found.old_foreign) == (0, 20)


def test_what_was_embedded_may_be_a_template(library: Library) -> None:
    library.more = "text = '{id}: {text}'"
    library.write(named(0, 20), vectors=library.encode[0]([f"{name}: {text}" for name, text in told(named(0, 20))]))
    assert library.night().verdict == "wholly its own"
    library.write(named(20, 23), vectors=library.encode[0]([f"{name}: {text}" for name, text in told(named(20, 23))]))
    found = library.night()
    assert (found.added, found.new_encoded, found.new_foreign) == (3, 3, 0)
    assert "--text '{id}: {text}' --all" in command(library.entry)


def told(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(names, texts_of(names), strict=True))


def test_which_passport_is_in_force_is_said(library: Library, tmp_path: Path, weights: Callable[[int], Path]) -> None:
    library.write(named(0, 20))
    path = tmp_path / "right.passport.json"
    with open_function(str(library.folder / "model"), LoadOptions(device="cpu", dtype="float32")) as function:
        write_passport(make_passport(function), path)
        identity = function.identity
    # That of an audit of this content.
    in_reports = tmp_path / "home" / "reports" / f"{identity}.passport.json"
    in_reports.parent.mkdir(parents=True)
    shutil.copy(path, in_reports)
    by_folder = library.night()
    assert (by_folder.checkpoint_id, by_folder.passport, by_folder.passport_id) == (identity, str(in_reports), identity)
    # Its file names the function.
    library.function = path.name
    by_file = library.night()
    assert (by_file.function, by_file.passport) == (str(library.folder / "model"), str(path))
    assert (by_file.verdict, by_file.since) == ("wholly its own", by_folder.asked)
    shutil.copytree(weights(1), library.folder / "model", dirs_exist_ok=True)
    other = library.night()
    assert (other.verdict, other.is_red, other.rows) == ("another function", True, None)
    assert f"is no longer the function of its passport {path}" in other.line
    assert other.line.endswith(f"embaudit verify {path} {path.parent / path.name}")
    shutil.copytree(weights(0), library.folder / "model", dirs_exist_ok=True)
    assert (library.night().verdict, library.night().since is not None) == ("wholly its own", True)


def counted(texts: list[str]) -> np.ndarray:
    """A hosted model, whose files nobody sees."""
    return np.array([[len(text), text.count("e") + 1, text.count("1") + 0.5] for text in texts], dtype=np.float64)


def test_a_python_object_and_a_folder_of_parquet(library: Library) -> None:
    library.function = f"python:{__name__}:counted"
    library.path = library.folder / "library.parquet"

    def write(names: Sequence[str], shift: float = 0.0) -> None:
        vectors = np.add(counted(texts_of(names)), (0, shift, 0))
        columns = {"id": [int(name[4:]) for name in names], "text": texts_of(names), "vector": vectors.tolist()}
        pq.write_table(pa.table(columns), library.path)

    write(named(0, 30))
    first = library.night()
    assert (first.verdict, first.checkpoint_id, first.passport) == ("wholly its own", None, None)
    write(named(5, 34))
    found = library.night()
    assert (found.added, found.removed, found.new_foreign, found.verdict) == (4, 5, 0, "wholly its own")
    write(named(5, 34), 9.0)
    changed = library.night()
    assert (changed.overwritten, changed.new_foreign, ids(changed)[:2]) == (29, 29, ["5", "6"])


def test_an_empty_index_and_one_without_texts(library: Library) -> None:
    library.write(named(0, 3))
    assert library.night().verdict == "wholly its own"
    library.remove(named(0, 3))
    empty = library.night()
    assert (empty.verdict, empty.is_red) == ("could not be told", False)
    library.write(named(0, 4))
    found = library.night()
    assert (found.added + found.overwritten, found.verdict) == (4 if empty.rows == 0 else 1, "wholly its own")
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("ALTER TABLE docs DROP COLUMN text")
    without = library.night()
    assert (without.verdict, without.new_share) == ("could not be told", None)
    assert "has no texts" in without.line


def test_credentials_are_shown_nowhere(library: Library, home: Path) -> None:
    library.store = "postgresql://me:s3cretpass@127.0.0.1:9/db"
    found = library.night()
    assert (found.verdict, found.store) == ("could not be told", "postgresql://127.0.0.1:9/db")
    assert "s3cretpass" not in found.model_dump_json()
    assert "s3cretpass" not in command(library.entry)
    library.store = "postgresql://127.0.0.1:9/db?user=me&password=s3cretpass"
    assert "s3cretpass" not in library.night().model_dump_json()


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
    monkeypatch.setattr(index_look, "MOST_KNOWN", 3)
    library.write(named(0, 20))
    library.night()
    library.write(named(20, 28), vectors=np.zeros((8, 32)))
    for count in (8, 7):
        found = library.night()
        assert (found.verdict, len(found.open_rows)) == ("not wholly its own", 4)
        assert f"{count} of the {count} rows" in found.line
        library.write(["doc-20"])


def test_hashes_are_those_of_every_process_and_version() -> None:
    """What was kept last night by another numpy must not make every row a new one."""
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert [hex(int(one)) for one in hash_rows(vectors)] == HASHES
    assert hash_values(["a", None, 3], 3).tolist() == [HASH_OF_A, 0, hash_values(["3"], 1)[0]]


def test_by_the_flow_the_tables_and_the_commands(
    library: Library, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library.write(named(0, 20))
    assert watch(str(library.list)).summary == "1 index wholly the function's"
    library.write(named(20, 24), revision=1)
    state = watch(str(library.list), return_state=True)
    assert state.name == FOREIGN_STATE
    assert state.result().summary == f"not wholly its function's: {library.path}"
    warehouse = home / "warehouse.duckdb"
    found = run_query(warehouse, "index-checks")
    row = dict(zip(found.columns, found.rows[0], strict=True))
    assert (row["verdict"], row["new_foreign"], row["passport_id"]) == ("not wholly its own", 4, None)
    assert row["checkpoint_id"] is not None
    open_now = run_query(warehouse, "open-items").rows
    assert [(source, what, item) for source, _, what, _, item, *_ in open_now] == [
        (str(library.path), "index", "other_vectors")
    ]
    here = {**os.environ, "EMBAUDIT_HOME": str(home)}
    done = run_here(("accept", library.path.name, "--reason", "known", "--by", "me"), here, tmp_path)
    assert "in the index: other_vectors" in done.stdout
    assert run_query(warehouse, "open-items").rows == []
    shown = run_here(("watch", str(library.list)), here, tmp_path)
    assert shown.returncode == 0
    assert "1 index wholly the function's" in shown.stdout
    assert "embaudit query index-checks" in shown.stdout
    seen = run_here(("watch", str(library.list), "--dry-run"), here, tmp_path)
    assert f"look for rows that are not those of {library.folder / 'model'}" in seen.stdout


def test_a_warehouse_from_before_there_were_indexes_is_upgraded(published_warehouse: Path) -> None:
    older = known_views()["found_item"].partition("UNION ALL\nSELECT in_index")[0] + ";"
    with duckdb.connect(published_warehouse) as connection:
        connection.execute(older)
        connection.execute("DROP TABLE index_check")
        open_before = connection.execute("SELECT * FROM found_item ORDER BY ALL").fetchall()
    assert read_accepted_in_indexes(published_warehouse, 0) == set()
    words = ["--warehouse", str(published_warehouse)]
    refused = CliRunner().invoke(cli, ["accept", "owner/x", "--reason", "r", "--by", "me", *words]).exception
    assert isinstance(refused, WarehouseError)
    assert "embaudit upgrade" in refused.next_step
    assert CliRunner().invoke(cli, ["upgrade", *words]).exception is None
    with duckdb.connect(published_warehouse, read_only=True) as connection:
        assert connection.execute("SELECT * FROM found_item ORDER BY ALL").fetchall() == open_before
    assert run_query(published_warehouse, "index-checks").rows == []
