"""Parts of a report: each has its line, the verdict is that of the worst, and each number is exact or an estimate."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_here
from told_in_full import faults_of

import embaudit
from embaudit.declared.document import Table
from embaudit.questions.vectors.opened import look_at_each
from embaudit.questions.vectors.page import stored_page
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.stores import place
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralParts
from embaudit.stores.store import drawn_groups


def store_of(folder: Path, tiny_index: Any, **tables: np.ndarray) -> Path:
    file = folder / "rows.db"
    with sqlite3.connect(file) as connection:
        for name, vectors in tables.items():
            connection.execute(f"CREATE TABLE {name} (text TEXT, v BLOB)")
            rows = [(text, one.tobytes()) for text, one in zip(tiny_index.texts, vectors, strict=False)]
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
    connection.close()
    return file


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_here(("vectors", *arguments), dict(os.environ), folder)


def test_each_has_its_line(tiny_index: Any, tmp_path: Path) -> None:
    own, others = tiny_index.vectors, tiny_index.others
    file = str(store_of(tmp_path, tiny_index, good=own[:100], other=others[:100], empty=own[:0]))
    options = ("--device", "cpu", "--rows", "50", "--no-explanation")
    done = called(tmp_path, str(tiny_index.folder), file, *options, "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert {name: one.get("verdict") for name, one in told["collections"].items() if name != "empty"} == {
        "good": "wholly its own",
        "other": "not wholly its own",
    }
    assert told["verdict"] == "not all in order"
    done = called(tmp_path, str(tiny_index.folder), file, *options, "--markdown")
    for said in ("good: The index is wholly the", "other: The index is not wholly the", "from other"):
        assert said in done.stdout.replace("\\", "")
    assert called(tmp_path, str(tiny_index.folder), file, *options, "--from", "good").returncode == 0
    # A table of rows is of one.
    done = called(tmp_path, str(tiny_index.folder), file, *options, "--table", "rows.csv")
    assert (done.returncode, "tables that may hold vectors" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("tables", "code", "line"),
    [
        (("good", "also_good"), 0, "All 2 collections are in order."),
        (("good", "other"), 1, "Of 2 collections, 1 is not in order, 1 is."),
        (("good", "lost"), 0, "Of 2 collections, 1 is in order, 1 could not be told."),
        (("other", "good", "lost"), 1, "Of 3 collections, 1 is not in order, 1 is, 1 could not be told."),
        (("lost", "gone"), 2, "Of 2 collections, 2 could not be told."),
    ],
)
def test_the_verdict_is_that_of_the_worst(
    tables: tuple[str, ...], code: int, line: str, tiny_index: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own, others = tiny_index.vectors, tiny_index.others
    file = store_of(tmp_path, tiny_index, good=own[:60], also_good=own[:60], other=others[:60])
    with pytest.raises(SeveralParts) as raised:
        open_store(file)
    assert raised.value.names == ("good", "also_good", "other")
    question = VectorsQuestion.of(
        store=file.name, function=tiny_index.folder, device="cpu", rows=50, with_explanation=False
    )

    def look(name: str) -> Any:
        return question.model_copy(update={"from_table": name}).answer()

    report = look_at_each("rows.db", tables, look)
    assert (report.exit_code, report.line) == (code, line)
    assert faults_of(report) == []
    json.dumps(report.as_json(), allow_nan=False)


def test_of_several_columns_of_vectors_each_has_its_line(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 24))
    rows = [{"text": f"text {row}", "title": one.tolist(), "body": (-one).tolist()} for row, one in enumerate(vectors)]
    rows[3]["body"] = None
    (tmp_path / "v.jsonl").write_text("\n".join(map(json.dumps, rows)))
    report = VectorsQuestion(store=tmp_path / "v.jsonl").answer()
    assert report.line == "Of 2 columns of vectors, 1 is not in order, 1 is."
    assert next(one for one in report.findings if one.level == "problem").advice == "To see all of it: --vector body"
    assert list(report.as_json()["collections"]) == ["title", "body"]


# ---- exact or an estimate ----


@pytest.mark.parametrize("is_foreign", [False, True], ids=["own", "mixed"])
@pytest.mark.parametrize(
    ("rows", "every_row", "is_exact"),
    [(100, False, False), (600, False, True), (100, True, True)],
    ids=["sample", "all sampled", "every row"],
)
def test_what_is_said_of_a_checkpoint(
    rows: int, every_row: bool, is_exact: bool, is_foreign: bool, tiny_index: Any, tmp_path: Path
) -> None:
    vectors = tiny_index.vectors.copy()
    if is_foreign:
        vectors[::9] = tiny_index.others[::9]
    pq.write_table(pa.table({"text": tiny_index.texts, "embedding": list(vectors)}), tmp_path / "index.parquet")
    given = {"rows": rows, "every_row": every_row, "with_explanation": False, "device": "cpu"}
    report = embaudit.vectors(tmp_path / "index.parquet", tiny_index.folder, **given)
    assert (": exact, since each was encoded again" in report.line) == is_exact
    if not is_foreign:
        assert ("95 % interval" in report.line) != is_exact
    told = report.as_json()
    share = told["against"]["share_not_its_own"]
    assert share["is_exact"] == (share["low"] == share["high"]) == (rows == 600)
    assert (told["every_row"] or {"is_exact": None})["is_exact"] == (True if every_row else None)
    for finding in report.findings:
        if finding.low is not None:
            assert ("(95 % interval)" in finding.sentence) == (finding.low != finding.high), finding.sentence
            assert ("exact" in finding.sentence) == (finding.low == finding.high), finding.sentence
        if every_row:
            assert "--all" not in finding.advice


@pytest.mark.parametrize("rows", [300, 1_200])
def test_what_is_said_of_the_vectors_alone(rows: int, tmp_path: Path) -> None:
    np.save(tmp_path / "index.npy", np.random.default_rng(0).normal(size=(rows, 8)).astype(np.float32))
    report = embaudit.vectors(tmp_path / "index.npy")
    told = report.as_json()["vectors"]
    table = stored_page(report).sections[0].parts[0]
    assert isinstance(table, Table)
    said = {str(row[0]): (str(row[1]), str(row[2])) for row in table.rows}
    is_whole = rows <= 500
    assert told["copies"]["is_exact"] == told["largest_hub"]["is_exact"] == is_whole
    for what, (value, counted) in said.items():
        if what == "stored as":
            continue
        is_estimate = what.startswith(("rows that", "rows with", "skewness")) and not is_whole
        assert counted.startswith("a sample" if is_estimate else "every row: exact"), what
        assert ("[" in value) == ("95 % interval" in counted), what
    assert told["of_a_sample"] == ([] if is_whole else ["hubness_skewness"])


# ---- of a store that is too large, row groups are drawn, and what is said of all rows holds ----


FILES, GROUPS, ROWS, D = 6, 80, 10, 4


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """4 800 rows in 480 groups, of which a job wrote the last tenth as zeros; and a limit far below."""
    generator = np.random.default_rng(0)
    for number in range(FILES):
        vectors = generator.normal(size=(GROUPS * ROWS, D)).astype(np.float32)
        if number == FILES - 1:
            vectors[-480:] = 0
        ids = [number * GROUPS * ROWS + row for row in range(len(vectors))]
        table = pa.table({"id": ids, "vector": vectors.tolist()})
        pq.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=ROWS)
    monkeypatch.setattr("embaudit.questions.vectors.question.LARGE", 4_000)
    monkeypatch.setattr("embaudit.stores.opened.DRAWN", 2_400)
    return tmp_path


def test_a_draw_reads_whole_groups_and_says_how_many(large: Path) -> None:
    store = open_store(large, ReadOptions(most=4_000, seed=3))

    rows = [one for batch in store.batches() for one in batch.ids or ()]
    assert store.drawn is not None
    assert (store.drawn.rows, store.drawn.groups, store.drawn.read) == (4_800, 480, 2_400)
    assert len(rows) == 2_400 == store.rows
    assert {row // ROWS for row in rows} == {row // ROWS for row in rows if row % ROWS == 0}
    assert rows == sorted(rows)
    assert rows == [one for batch in store.batches() for one in batch.ids or ()]
    assert open_store(large, ReadOptions(most=4_000, seed=4)).drawn is not None
    assert open_store(large, ReadOptions(most=4_800)).drawn is None


def test_the_share_of_all_rows_holds_what_it_is(large: Path) -> None:
    report = embaudit.vectors(large)

    (zeros,) = (finding for finding in report.findings if finding.name == "zeros")
    assert "(of all 4,800 rows 0." in zeros.sentence
    assert "2,400 of 4,800 rows were read, in 240 of 480 row groups" in " ".join(report.index.notes)
    drawn = report.index.drawn
    assert drawn is not None
    _, low, high = drawn.share(report.alone.profile.zeros)
    assert low <= 0.1 <= high
    assert high - low < 0.12
    assert embaudit.vectors(large, whole=True).alone.profile.rows == 4_800


def test_intervals_over_groups_cover() -> None:
    """Rows of a job lie together; of 200 draws, at least nine of ten intervals hold its share."""
    sizes = [[10] * 1_000]
    wrong = np.arange(2_000, 3_000)
    covered = 0
    for seed in range(200):
        (chosen,), drawn = drawn_groups(sizes, 3_000, seed)
        numbers = np.concatenate([np.arange(group * 10, group * 10 + 10) for group in chosen])
        _, low, high = drawn.share(np.flatnonzero(np.isin(numbers, wrong)))
        covered += low <= 0.1 <= high
    assert covered >= 180


def test_too_few_groups_are_read_whole() -> None:
    chosen, drawn = drawn_groups([[5] * 40, [5] * 60], 20, 0)

    assert [len(one) for one in chosen] == [40, 60]
    assert drawn.read == drawn.rows == 500


def test_what_is_too_large_is_ten_million_rows() -> None:
    assert (place.LARGE, place.DRAWN) == (10_000_000, 2_000_000)
