"""Watched indexes: new revisions, roles, rows that are known again, faults, and what is published."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from commands import run_here
from index_library import Library, named
from some_rows import mostly_slow
from tiny import tiny_bert
from tiny_models import change_json

from embaudit.checkpoint import Encoder, LoadOptions, TextKind, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import Canary, Passport, as_base64
from embaudit.questions.vectors.profile import hash_rows, hash_values
from embaudit.questions.vectors.since import inspected
from embaudit.questions.vectors.since.rows import ADDED, OVERWRITTEN, RowMarks, SeenRows, what_is_new
from embaudit.warehouse.query import run_query
from embaudit.watch.history import compare_passports, switch_revisions
from embaudit.words.errors import EmbauditError, EmptyStore, StorageError
from embaudit_flows import ask
from embaudit_flows.watch import watch

CPU = LoadOptions(device="cpu")


@pytest.fixture(scope="module")
def passports(weights: Callable[[int], Path]) -> list[Passport]:
    return [make_passport(CheckpointFunction(load_checkpoint(str(weights(seed)), CPU)), CPU) for seed in (0, 1)]


def test_passports_of_one_function_are_one_index(passports: list[Passport]) -> None:
    found = compare_passports(passports[0], passports[0])
    assert found is not None
    assert (found.verdict, found.compared) == ("same index", "canaries")
    assert found.median_cosine == pytest.approx(1)


def test_passports_of_two_functions_are_not(passports: list[Passport]) -> None:
    found = compare_passports(*passports)
    assert found is not None
    vectors = [{one.text: one.numbers for one in some.canaries} for some in passports]
    cosines = [
        vectors[0][text] @ vectors[1][text] / np.linalg.norm(vectors[0][text]) / np.linalg.norm(vectors[1][text])
        for text in vectors[0].keys() & vectors[1].keys()
    ]
    assert found.verdict == "other vectors"
    assert found.median_cosine == pytest.approx(np.median(cosines), abs=1e-6)
    assert "embaudit switch" in found.line


def test_another_dimension_needs_another_index(passports: list[Passport]) -> None:
    half = passports[0].reading.dimension // 2
    shorter = passports[1].model_copy(update={"reading": passports[1].reading.model_copy(update={"dimension": half})})
    found = compare_passports(passports[0], shorter)
    assert found is not None
    assert (found.verdict, found.median_cosine) == ("rebuild", None)


def test_nothing_in_common_says_nothing(passports: list[Passport]) -> None:
    other = passports[1].model_copy(update={"canaries": ()})
    assert compare_passports(passports[0], other) is None


def test_revisions_that_can_be_loaded_are_compared_as_switch_does(weights: Callable[[int], Path]) -> None:
    found = switch_revisions(str(weights(0)), str(weights(0)), CPU)
    assert (found.verdict, found.compared) == ("same index", "texts")


def test_passports_that_differ_as_half_precision_rounds_are_one_index(passports: list[Passport]) -> None:
    """A revision that is saved in half precision, as ``embaudit switch`` says of it."""
    rng = np.random.default_rng(0)

    def rounded(one: Canary) -> Canary:
        noise = 2e-2 * np.linalg.norm(one.numbers) * rng.normal(size=len(one.numbers)) / np.sqrt(len(one.numbers))
        return one.model_copy(update={"vector": as_base64(one.numbers + noise)})

    half = passports[0].model_copy(update={"canaries": tuple(map(rounded, passports[0].canaries))})
    found = compare_passports(passports[0], half)
    assert found is not None
    assert (found.verdict, "no more than half precision rounds" in found.line) == ("same index", True)
    # A defect of one kind is none.
    moved = [rounded(one) if one.kind == "digits" else one for one in passports[0].canaries]
    other = compare_passports(passports[0], passports[0].model_copy(update={"canaries": tuple(moved)}))
    assert other is not None
    assert other.verdict == "other vectors"


# ---- roles ----


@pytest.mark.parametrize(("before", "tonight"), mostly_slow([("document", "text"), ("text", "document")], 1))
def test_rows_of_a_night_in_another_role_are_red(
    tmp_path: Path, before: TextKind, tonight: TextKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    folder = tiny_bert(tmp_path / "model")
    change_json(folder / "config_sentence_transformers.json", prompts={"query": "find: ", "document": "passage: "})
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    encode = tuple(Encoder(checkpoint.reading(role)).encode_texts for role in (before, tonight))
    library = Library(tmp_path, tmp_path / "docs.sqlite", encode)
    library.write(named(0, 40))
    assert library.night().verdict == "wholly its own"
    library.write(named(40, 60))
    assert library.night().verdict == "wholly its own"
    library.write(named(60, 80), revision=1)
    found = library.night()
    assert found.verdict == "not wholly its own"
    assert "20 of the 20 rows" in found.line


# ---- rows ----


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


# ---- faults ----


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


# ---- published ----


@pytest.mark.slow
def test_by_the_flow_the_tables_and_the_commands(
    library: Library, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library.write(named(0, 20))
    assert watch(str(library.list)).summary == "1 question answered well"
    library.write(named(20, 24), revision=1)
    state = watch(str(library.list), return_state=True)
    assert (state.name, state.type.value) == ("Index got worse", "FAILED")
    night = state.result(raise_on_failure=False)
    assert (night.outcome.summary, night.exit_code) == (f"1 problem: Index got worse: {library.path}", 1)
    assert "20, doc-21" in state.message
    warehouse = home / "warehouse.duckdb"
    history = run_query(warehouse, "index-history")
    assert history.columns[2:7] == ["verdict", "rows", "change", "added", "overwritten"]
    assert [row[2:6] for row in history.rows] == [("not wholly its own", 24, 4, 4), ("wholly its own", 20, None, 0)]
    wrong = run_query(warehouse, 'SELECT "row", finding FROM wrong_row ORDER BY place').rows
    assert wrong == [(name, "other_vectors") for name in named(20, 24)]
    open_now = run_query(warehouse, "open-items").rows
    assert [(source, what, item) for source, _, what, _, item, *_ in open_now] == [
        (str(library.path), "answer", "vectors: not wholly its own")
    ]
    here = {**os.environ, "EMBAUDIT_HOME": str(home)}
    done = run_here(("accept", library.path.name, "--reason", "known", "--by", "me"), here, tmp_path)
    assert "vectors: not wholly its own" in done.stdout
    assert run_query(warehouse, "open-items").rows == []
    # What comes before the next look is not accepted with it.
    library.write(named(24, 26), revision=1)
    (problem,) = watch(str(library.list), return_state=True).result(raise_on_failure=False).outcome.problems
    assert "2 of the 2 rows added or overwritten are not the checkpoint's (100.0%): doc-24, doc-25" in problem.said
    library.write(named(24, 26))
    shown = run_here(("watch", str(library.list)), here, tmp_path)
    assert shown.returncode == 0
    assert "1 question answered well" in shown.stdout
    assert "Accepted: 4 of the 4 rows" in shown.stdout
    assert "embaudit query answers" in shown.stdout
    seen = run_here(("watch", str(library.list), "--dry-run"), here, tmp_path)
    assert "ask vectors" in seen.stdout
