"""Each number of an index says whether it is a count of every row or an estimate, with its interval, from a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embaudit
from embaudit.declared.document import Table
from embaudit.questions.vectors.page import stored_page


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
