"""Cases that are lost at a known step of a store, from end to end, with a real checkpoint of random weights."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_here

import embaudit
from embaudit.questions.why import ranked


def ranks(index: Any, query: int) -> np.ndarray:
    """Rows by cosine to the query that is the text of a row, nearest first."""
    return np.argsort(-(index.vectors @ index.vectors[query]), kind="stable")


@pytest.fixture(scope="module")
def place(tiny_index: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index in which rows 1 to 5 are broken, each in its way."""
    vectors = tiny_index.vectors.copy().astype(np.float32)
    vectors[1], vectors[2], vectors[3] = 0, np.nan, -vectors[3]
    vectors[4] = vectors[5]
    table = pa.table(
        {
            "id": [f"row-{n}" for n in range(len(vectors))],
            "text": tiny_index.texts,
            "team": ["a" if n % 2 else "b" for n in range(len(vectors))],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
        }
    )
    file = tmp_path_factory.mktemp("why") / "index.parquet"
    pq.write_table(table, file)
    return file


def lost(report: Any) -> list[str]:
    return [one["lost"] for one in report.as_json()["cases"]]


def test_each_case_is_lost_where_it_was_broken(tiny_index: Any, place: Path) -> None:
    texts = tiny_index.texts
    order = ranks(tiny_index, 50)
    cases = {
        texts[0]: "gone",
        texts[1]: "row-1",
        texts[2]: "row-2",
        texts[3]: "row-3",
        texts[20]: "row-20",
        texts[21]: ["gone", "row-21"],
        texts[22]: texts[22],
        texts[50]: f"row-{order[-1]}",
    }
    report = embaudit.why(place, str(tiny_index.folder), cases, text="text", id="id")
    assert lost(report) == ["absent", "vector", "vector", "vector", "found", "found", "found", "function"]
    assert report.exit_code == 1
    assert report.page().sections


def test_a_vector_of_another_rows_text_is_named(tiny_index: Any, place: Path) -> None:
    cases = {f"{tiny_index.texts[4]}": "row-4"}
    report = embaudit.why(place, str(tiny_index.folder), cases, text="text", id="id", k=1)
    (case,) = report.as_json()["cases"]
    assert case["is_of"] == "row-5"
    assert case["lost"] in ("vector", "found")


def test_what_a_filter_leaves_out(tiny_index: Any, place: Path) -> None:
    report = embaudit.why(
        place, str(tiny_index.folder), {tiny_index.texts[20]: "row-20"}, text="text", id="id", where={"team": "a"}
    )
    assert lost(report) == ["filter"]


def test_a_score_that_is_too_low(tiny_index: Any, place: Path) -> None:
    report = embaudit.why(
        place, str(tiny_index.folder), {tiny_index.texts[20]: "row-20"}, text="text", id="id", min_score=1.5
    )
    assert lost(report) == ["cut-off"]


def test_the_command(tiny_index: Any, place: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden.csv"
    golden.write_text(f"query,expect\n{tiny_index.texts[20]},row-20\n{tiny_index.texts[1]},row-1\n")
    told = ["why", str(place), str(tiny_index.folder), "--golden", str(golden), "--text", "text", "--id", "id"]
    page = tmp_path / "why.html"
    result = run_here((*told, "--json", "--out", str(page)), os.environ, tmp_path)
    assert result.returncode == 1, result.stderr
    assert [one["lost"] for one in json.loads(result.stdout)["cases"]] == ["found", "vector"]
    assert "row-1" in page.read_text() or "zeros" in page.read_text()


def test_approximate_search_that_misses(tiny_index: Any, tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    vectors = np.ascontiguousarray(tiny_index.vectors, dtype=np.float32)
    index = faiss.index_factory(vectors.shape[1], "IVF64,Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    index.nprobe = 1
    faiss.write_index(index, str(tmp_path / "rows.faiss"))
    texts = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"text": tiny_index.texts}), texts)
    _, given = index.search(vectors, 10)
    missed = {
        tiny_index.texts[n]: str(one)
        for n in range(len(vectors))
        for one in ranks(tiny_index, n)[2:6][::-1]
        if one not in given[n]
    }
    cases = dict(list(missed.items())[:5])
    assert cases
    report = embaudit.why(tmp_path / "rows.faiss", str(tiny_index.folder), cases, texts=texts)
    assert lost(report) == ["search"] * len(cases)
    assert "nprobe" in report.as_json()["cases"][0]["mend"]


def test_a_copy_in_place_of_the_row_is_found(tiny_index: Any, tmp_path: Path) -> None:
    """Fifteen rows have one text: which ten of them are given is the store's choice."""
    faiss = pytest.importorskip("faiss")
    texts = [*[tiny_index.texts[0]] * 15, *tiny_index.texts[1:60]]
    rows = np.concatenate([np.repeat(tiny_index.vectors[:1], 15, axis=0), tiny_index.vectors[1:60]])
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(np.ascontiguousarray(rows, dtype=np.float32))
    faiss.write_index(index, str(tmp_path / "rows.faiss"))
    pq.write_table(pa.table({"text": texts}), tmp_path / "texts.parquet")
    _, given = index.search(np.ascontiguousarray(rows[:1], dtype=np.float32), 10)
    missed = next(one for one in range(15) if one not in given[0])

    report = embaudit.why(
        tmp_path / "rows.faiss", str(tiny_index.folder), texts[0], str(missed), texts=tmp_path / "texts.parquet"
    )

    (case,) = report.as_json()["cases"]
    assert (case["lost"], case["cause"]) == ("found", "copy")


def test_ids_of_another_index_are_said_to_be_that(tiny_index: Any, place: Path) -> None:
    report = embaudit.why(place, str(tiny_index.folder), {"a": "x1", "b": "x2"}, text="text", id="id")
    assert lost(report) == ["absent", "absent"]
    assert any("None of the 2 expected rows is in the store" in finding.sentence for finding in report.findings)


def by_letters(texts: list[str]) -> np.ndarray:
    """A function that reads nothing but a text's letters."""
    return np.array([[one.lower().count(chr(97 + letter)) + 0.01 for letter in range(26)] for one in texts])


def rank_by_letters(texts: list[str], query: str, row: int) -> int:
    """The rank that it gives a row among all texts, by a loop."""
    (asked, *known) = by_letters([query, *texts])
    cosines = [float(asked @ one / np.linalg.norm(asked) / np.linalg.norm(one)) for one in known]
    return 1 + sum(cosine > cosines[row] + 1e-6 for cosine in cosines)


@pytest.mark.parametrize("most", [2_000, 60])
def test_another_function_ranks_what_is_lost(
    most: int, tiny_index: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly where all rows are encoded; of more, an interval from those that are drawn."""
    monkeypatch.setattr(ranked, "MOST", most)
    texts = list(tiny_index.texts)
    rows = [int(ranks(tiny_index, query)[-1]) for query in range(30, 42)]
    cases = {texts[query]: f"row-{row}" for query, row in zip(range(30, 42), rows, strict=True)}
    report = embaudit.why(place, str(tiny_index.folder), cases, text="text", id="id", also=by_letters)
    found = [one["another_function"] for one in report.as_json()["cases"]]
    wanted = [rank_by_letters(texts, query, row) for query, row in zip(cases, rows, strict=True)]
    if most > len(texts):
        assert [one["rank"] for one in found] == wanted
        assert all(one["low"] is None and one["rows"] == len(texts) for one in found)
        return
    within = [one["low"] <= rank <= one["high"] for one, rank in zip(found, wanted, strict=True)]
    assert np.mean(within) > 0.8
    assert all(one["compared"] < len(texts) for one in found)


@pytest.mark.parametrize("kind", ["SQLite", "DuckDB", "another column"])
def test_what_is_not_in_the_store_is_looked_for_beside_it(kind: str, tiny_index: Any, tmp_path: Path) -> None:
    """Another table of the same database, or another column of the same rows."""
    vectors = tiny_index.vectors.astype(np.float32)
    tables = {"docs": range(60), "archive": range(60, 90)}
    rows = {
        name: [(f"row-{n}", f"DOC-{n}", tiny_index.texts[n], vectors[n]) for n in some] for name, some in tables.items()
    }
    if kind == "SQLite":
        with closing(sqlite3.connect(tmp_path / "rows.db")) as database, database:
            for name, own in rows.items():
                database.execute(f"CREATE TABLE {name} (id TEXT, doc TEXT, body TEXT, vec BLOB)")
                values = [(*row[:3], row[3].tobytes()) for row in own]
                database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", values)
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(tmp_path / "rows.db")) as database:
            for name, own in rows.items():
                database.execute(f"CREATE TABLE {name} (id TEXT, doc TEXT, body TEXT, vec FLOAT[{vectors.shape[1]}])")
                database.executemany(
                    f"INSERT INTO {name} VALUES (?, ?, ?, ?)", [(*row[:3], row[3].tolist()) for row in own]
                )
    expect = "DOC-5" if kind == "another column" else "row-70"
    report = embaudit.why(
        tmp_path / "rows.db", str(tiny_index.folder), "a query", expect, from_table="docs", id="id", text="body"
    )
    (case,) = report.as_json()["cases"]
    wanted = ("another field", "row-5") if kind == "another column" else ("another part", "row-70")
    assert (case["lost"], case["cause"]) == ("absent", wanted[0])
    assert case["in_another"]["ids"] == (wanted[1],)
    assert ("--id doc" if kind == "another column" else "--from archive") in case["mend"]
