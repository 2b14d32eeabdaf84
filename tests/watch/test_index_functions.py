"""By what an index on a watch list is judged: passports in force, functions that were exchanged, Python objects."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from index_library import Library, Put, named, texts_of

from embaudit.checkpoint import LoadOptions
from embaudit.embedders.opened import open_function
from embaudit.questions.answered import parameters_of
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import write_passport
from embaudit.watch.watch_list import read_watch_list
from embaudit_flows.ask import answers_of_entry

pytestmark = pytest.mark.slow


def test_a_function_that_was_exchanged_is_what_every_row_is_compared_with(library: Library, put: Put) -> None:
    library.write(named(0, 20))
    library.night()
    library.write(named(20, 24), revision=1)
    assert library.night().ids == named(20, 24)
    put(library.folder / "model", 1)
    found = library.night()
    assert sorted(found.ids) == sorted(named(0, 20))
    assert (found["added"], round(found["foreign"] * 24)) == (0, 20)


def test_rows_are_not_compared_with_a_function_that_is_not_its_passports(
    library: Library, home: Path, weights: Callable[[int], Path]
) -> None:
    library.write(named(0, 20))
    path = library.folder / "right.passport.json"
    with open_function(str(library.folder / "model"), LoadOptions(device="cpu", dtype="float32")) as function:
        write_passport(make_passport(function), path)
    library.function = path.name
    (entry,) = read_watch_list(library.list).questions
    warehouse = str(home / "warehouse.duckdb")
    verified, rows = answers_of_entry(entry, warehouse)
    assert (verified.verdict, rows.verdict) == ("the same function", "wholly its own")
    assert parameters_of(library.question)["function"] == str(library.folder / "model")
    shutil.copytree(weights(1), library.folder / "model", dirs_exist_ok=True)
    (other,) = answers_of_entry(entry, warehouse)
    assert (other.asks, other.verdict, other.subject) == ("verify", "another function", str(library.folder / "model"))
    # A list with a damaged passport is read, and the night says which.
    path.write_text("{}")
    (entry,) = read_watch_list(library.list).questions
    (damaged,) = answers_of_entry(entry, warehouse)
    assert (damaged.level, damaged.verdict) == ("not measured", "not answered")
    assert f"{path} is no passport" in damaged.line


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
    assert first.verdict == "wholly its own"
    write(named(5, 34))
    found = library.night()
    assert (found["added"], found["removed"], found["new_foreign"], found.verdict) == (4, 5, 0, "wholly its own")
    write(named(5, 34), 9.0)
    changed = library.night()
    assert (changed["overwritten"], changed["new_foreign"], changed.ids[:2]) == (29, 29, ["5", "6"])


def test_credentials_are_shown_nowhere(library: Library, home: Path) -> None:
    for address in ("postgresql://me:s3cretpass@127.0.0.1:9/db", "postgresql://127.0.0.1:9/db?password=s3cretpass"):
        library.store = address
        (entry,) = read_watch_list(library.list).questions
        (found,) = answers_of_entry(entry, str(home / "warehouse.duckdb"))
        assert found.verdict == "not answered"
        assert found.subject.startswith("postgresql://127.0.0.1:9/db")
        assert "s3cretpass" not in found.model_dump_json()
