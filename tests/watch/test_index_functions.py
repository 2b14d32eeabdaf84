"""By what an index on a watch list is judged: passports in force, functions that were exchanged, Python objects."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from index_library import Library, Put, ids, named, texts_of

from embaudit.checkpoint import LoadOptions
from embaudit.embedders.opened import open_function
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import write_passport
from embaudit.watch.index_said import command

pytestmark = pytest.mark.slow


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
    assert (empty.verdict, empty.is_red) == ("empty", True)
    assert f"embaudit accept {library.path} --reason TEXT" in empty.line
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
