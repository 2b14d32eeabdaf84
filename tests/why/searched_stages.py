"""A small store whose rows answer their own texts, and what an application says of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny_index import TinyIndex
from told_in_full import assert_told

import embaudit
from embaudit.questions.why.report import WhyReport

ROWS = 60


@dataclass(frozen=True)
class Searched:
    """A store whose rows answer their own texts."""

    file: Path
    model: str
    texts: list[str]

    def why(self, stages: Any, *rows: int, **given: Any) -> WhyReport:
        golden = {self.texts[row]: f"row-{row}" for row in rows or (3,)}
        report = embaudit.why(self.file, self.model, golden, text="text", id="id", stages=stages, device="cpu", **given)
        assert_told(report)
        return report


@pytest.fixture(scope="module")
def searched(tiny_index: TinyIndex, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    file = tmp_path_factory.mktemp("stages") / "index.parquet"
    vectors = list(tiny_index.vectors[:ROWS].astype("float32"))
    ids = [f"row-{row}" for row in range(ROWS)]
    pq.write_table(pa.table({"id": ids, "text": tiny_index.texts[:ROWS], "vector": vectors}), file)
    return Searched(file, str(tiny_index.folder), tiny_index.texts[:ROWS])


def ids(*rows: int) -> list[str]:
    return [f"row-{row}" for row in rows]


DENSE = ids(1, 2, 3, 4, 5)
