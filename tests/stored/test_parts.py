"""Of several collections each is looked at, where none is named."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_here
from told_in_full import faults_of

from embaudit.questions.vectors.opened import look_at_each
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.stores.opened import open_store
from embaudit.stores.place import SeveralParts


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
