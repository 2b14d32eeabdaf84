"""Corpora, pairs and scores are data: nothing in them, or beside them, is run."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import Touch, bare_pickle, code

from embaudit.corpora import load_corpus
from embaudit.corpora.records import read_chosen_pairs
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import CorpusError, EmbauditError, UsageError

TEXTS = ["the river runs to the sea", "the old town has a church"]


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "code-was-run"


@pytest.mark.parametrize("name", ["corpus.py", "corpus.pkl", "corpus.npy", "corpus.npz", "corpus.pt", "corpus.bin"])
def test_a_format_that_can_run_code_is_no_format(tmp_path: Path, marker: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".py"):
        path.write_text(code(marker))
    elif name.endswith(".npy"):
        np.save(path, np.array([Touch(marker)], dtype=object), allow_pickle=True)
    elif name.endswith(".npz"):
        np.savez(path, text=np.array([Touch(marker)], dtype=object))
    else:
        path.write_bytes(bare_pickle(marker))
    for corpus in ("wikipedia", "sts"):
        with pytest.raises(CorpusError):
            load_corpus(corpus, str(path))
    with pytest.raises(EmbauditError):
        read_chosen_pairs(path)
    assert not marker.exists()


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl", ".json", ".parquet"])
def test_a_pickle_under_another_name_is_a_broken_file(tmp_path: Path, marker: Path, suffix: str) -> None:
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(pickle.dumps(Touch(marker)))
    with suppress(CorpusError):
        load_corpus("wikipedia", str(path))
    assert not marker.exists()


def test_a_script_beside_the_data_is_not_run(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``datasets`` library once ran FOLDER/FOLDER.py to load a folder."""
    folder = tmp_path / "passages"
    folder.mkdir()
    for name in ("passages.py", "dataset.py", "__init__.py", "conftest.py"):
        (folder / name).write_text(code(marker))
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"_id": "1", "text": text}) + "\n" for text in TEXTS))
    monkeypatch.chdir(folder)
    assert [text.text for text in load_corpus("msmarco", str(folder)).texts] == TEXTS
    assert not marker.exists()


def test_parquet_with_a_pickled_arrow_type(tmp_path: Path, marker: Path) -> None:
    """CVE-2023-47248: older pyarrow unpickled the type of a column when it read the file."""
    metadata = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": bare_pickle(marker)}
    text = pa.field("text", pa.string(), metadata=metadata)
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(TEXTS)], schema=pa.schema([text])), path)
    assert [one.text for one in load_corpus("wikipedia", str(path)).texts] == TEXTS
    assert not marker.exists()


def test_parquet_with_pickled_objects(tmp_path: Path, marker: Path) -> None:
    """Bytes stay bytes, and pandas' own notes on a column are not followed."""
    notes = {"columns": [{"name": "text", "pandas_type": "object", "numpy_type": "object", "metadata": None}]}
    schema = pa.schema([pa.field("text", pa.binary())], metadata={b"pandas": json.dumps(notes).encode()})
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([bare_pickle(marker)])], schema=schema), path)
    with suppress(CorpusError):
        load_corpus("wikipedia", str(path))
    assert not marker.exists()


@pytest.mark.parametrize("source", ["https://evil.example/corpus.csv", "file:///etc/passwd", "s3://bucket/corpus.csv"])
def test_an_address_is_no_source(source: str) -> None:
    """pyarrow, pandas and DuckDB would fetch these; a corpus comes from a file or from the hub."""
    with pytest.raises(CorpusError, match="no file or folder"):
        load_corpus("wikipedia", source)


def test_an_address_with_a_password_is_refused_before_a_flow_knows_it() -> None:
    with pytest.raises(UsageError, match="password") as caught:
        AuditRequest.of(checkpoint="m", corpora={"wikipedia": "https://user:canary-password@example.com/corpus.csv"})
    assert "canary-password" not in str(caught.value)
