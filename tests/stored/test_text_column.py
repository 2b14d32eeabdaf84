"""Which of several columns of texts was embedded: the function's vectors tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embaudit
from embaudit.words.errors import EmbauditError


def written(folder: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return folder / "rows.parquet"


def others(texts: list[str]) -> list[str]:
    return [f"another text, of {len(text)} letters and more" for text in texts]


@pytest.mark.parametrize("foreign", [0, 150])
@pytest.mark.parametrize("names", [("text", "content"), ("content", "text"), ("sentence_chunks", "of the page")])
def test_the_column_whose_texts_give_the_vectors_is_the_one(
    names: tuple[str, str], foreign: int, tiny_index: Any, tmp_path: Path
) -> None:
    """Whether both are called as texts are, or none is; and if a part of the rows is of another function."""
    vectors = tiny_index.vectors.copy()
    vectors[:foreign] = tiny_index.others[:foreign]
    own, other = names
    place = written(tmp_path, **{other: others(tiny_index.texts), own: tiny_index.texts, "v": list(vectors)})
    report = embaudit.vectors(place, tiny_index.folder, device="cpu", rows=600, with_explanation=False)
    assert report.index.columns["text"] == own
    assert report.verdict == ("not wholly its own" if foreign else "wholly its own")
    assert report.against is not None
    assert int(report.against.is_foreign.sum()) == foreign


def test_where_none_gives_the_vectors_it_is_asked(tiny_index: Any, tmp_path: Path) -> None:
    texts = {"text": others(tiny_index.texts), "content": others(tiny_index.texts[::-1])}
    place = written(tmp_path, **texts, v=list(tiny_index.vectors))
    with pytest.raises(EmbauditError, match="2 columns that may be the texts: text, content"):
        embaudit.vectors(place, tiny_index.folder, device="cpu")
    place = written(tmp_path, a=texts["text"], b=texts["content"], v=list(tiny_index.vectors))
    report = embaudit.vectors(place, tiny_index.folder, device="cpu")
    assert report.verdict == "could not be told"


def test_a_table_without_names_needs_none(tiny_index: Any, tmp_path: Path) -> None:
    rows = zip(tiny_index.texts, tiny_index.vectors.tolist(), strict=True)
    lines = [f"{row}\t{text}\t{json.dumps(vector)}" for row, (text, vector) in enumerate(rows)]
    (tmp_path / "rows.tsv").write_text("\n".join(lines), encoding="utf-8")
    report = embaudit.vectors(tmp_path / "rows.tsv", tiny_index.folder, device="cpu", rows=50)
    assert report.verdict == "wholly its own"
    assert report.index.columns["text"] == "column 2"


def test_equal_columns_are_one(tiny_index: Any, tmp_path: Path) -> None:
    same = {"document": tiny_index.texts, "content": tiny_index.texts}
    place = written(tmp_path, **same, v=list(np.asarray(tiny_index.vectors)))
    report = embaudit.vectors(place, tiny_index.folder, device="cpu", rows=50)
    assert report.verdict == "wholly its own"
