"""An index of documents, of plain texts, or by mistake of queries: each is told apart and named."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from role_clients import Client, fail
from some_rows import mostly_slow
from tiny_models import change_json

import embaudit
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.pages.html import render
from embaudit.questions.vectors.report import StoredReport


@dataclass(frozen=True)
class Prompted:
    """A checkpoint that declares what to put before queries and documents, and an index of it in each role."""

    folder: Path
    checkpoint: Checkpoint
    client: Client
    vectors: dict[str, np.ndarray]
    texts: list[str]


@pytest.fixture(scope="module")
def prompted(tiny_index: Any, tmp_path_factory: pytest.TempPathFactory) -> Prompted:
    folder = tmp_path_factory.mktemp("prompted") / "tiny"
    shutil.copytree(tiny_index.folder, folder)
    change_json(folder / "config_sentence_transformers.json", prompts={"query": "find: ", "document": "passage: "})
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    texts = tiny_index.texts[:300]
    vectors = {
        role: Encoder(checkpoint.reading(role)).encode_texts(texts)  # type: ignore[arg-type]
        for role in ("text", "query", "document")
    }
    client = Client(checkpoint, lambda text: f"find: {text}", documents=lambda text: f"passage: {text}")
    return Prompted(folder, checkpoint, client, vectors, texts)


def kept(place: Path, vectors: np.ndarray, texts: list[str]) -> Path:
    ids = [f"chunk-{row}" for row in range(len(vectors))]
    pq.write_table(pa.table({"id": ids, "text": texts, "embedding": list(vectors)}), place)
    return place


def looked_at(prompted: Prompted, place: Path, vectors: np.ndarray, function: Any, **options: Any) -> StoredReport:
    settings = {"device": "cpu"} if isinstance(function, Path) else {}
    index = kept(place / "index.parquet", vectors, prompted.texts)
    report = embaudit.vectors(index, function, rows=200, **settings, **options)
    assert render(report.page())
    json.dumps(report.as_json(), allow_nan=False)
    return report


@pytest.mark.parametrize("role", ["text", "document"])
@pytest.mark.parametrize("every_row", [False, True], ids=["a sample", "every row"])
def test_an_index_as_a_program_builds_one_is_the_checkpoints(
    prompted: Prompted, tmp_path: Path, role: str, every_row: bool
) -> None:
    """Some programs call encode, others encode_document."""
    report = looked_at(prompted, tmp_path, prompted.vectors[role], prompted.folder, every_row=every_row)
    assert report.verdict == "wholly its own"
    said = [one.sentence for one in report.findings if one.name == "role_of_rows"]
    assert len(said) == (role == "document")
    assert all("Rows were encoded as documents: with 'passage: ' before each text" in one for one in said)


def test_the_precision_of_documents_is_told(prompted: Prompted, tmp_path: Path) -> None:
    half = load_checkpoint(str(prompted.folder), LoadOptions(device="cpu", dtype="bfloat16"))
    vectors = Encoder(half.reading("document")).encode_texts(prompted.texts).astype(np.float32)
    report = looked_at(prompted, tmp_path, vectors, prompted.folder)
    assert report.verdict == "wholly its own"
    assert report.against is not None
    assert report.against.is_in_lower_precision


# (most rows, the others, what is said of these)
MIXED = {
    "without the prompt": ("document", "text", "are the checkpoint's if it leaves out the prompt 'passage: '"),
    "as queries": ("document", "query", "are the checkpoint's if it puts 'find: ' before texts"),
    "as documents": ("text", "document", "are the checkpoint's if it puts 'passage: ' before texts"),
}


@pytest.mark.parametrize("mixed", mostly_slow(MIXED, 1))
def test_rows_in_another_role_are_explained(prompted: Prompted, tmp_path: Path, mixed: str) -> None:
    most, others, said = MIXED[mixed]
    vectors = prompted.vectors[most].copy()
    vectors[:60] = prompted.vectors[others][:60]
    report = looked_at(prompted, tmp_path, vectors, prompted.folder)
    assert report.verdict == "not wholly its own"
    assert report.against is not None
    assert [reason.said for reason in report.against.reasons] == [said]


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_rows_that_a_client_embedded_as_queries_are_named(prompted: Prompted, tmp_path: Path, share: float) -> None:
    vectors = prompted.vectors["document"].copy()
    count = int(share * len(vectors))
    vectors[:count] = prompted.vectors["query"][:count]
    report = looked_at(prompted, tmp_path, vectors, prompted.client)
    assert report.against is not None
    assert [reason.said for reason in report.against.reasons] == ["are the function's if asked for queries"]
    assert looked_at(prompted, tmp_path, prompted.vectors["document"], prompted.client).verdict == "wholly its own"


@pytest.mark.parametrize("done", [{"texts": fail}, {"rows": lambda row: row[:8]}], ids=["refused", "fewer numbers"])
def test_a_client_without_vectors_of_queries_stops_nothing(
    prompted: Prompted, tmp_path: Path, done: dict[str, Any]
) -> None:
    client = Client(prompted.checkpoint, documents=prompted.client.documents, **done)
    vectors = prompted.vectors["document"].copy()
    vectors[:60] = prompted.vectors["query"][:60]
    report = looked_at(prompted, tmp_path, vectors, client)
    assert report.against is not None
    (reason,) = report.against.reasons
    assert not reason.is_known


@pytest.mark.parametrize("is_client", [True, False], ids=["client", "checkpoint"])
def test_why_takes_rows_for_documents(prompted: Prompted, tmp_path: Path, is_client: bool) -> None:
    place = kept(tmp_path / "index.parquet", prompted.vectors["document"], prompted.texts)
    function = prompted.client if is_client else prompted.folder
    settings = {} if is_client else {"device": "cpu"}
    report = embaudit.why(place, function, prompted.texts[33], "chunk-33", **settings)
    assert render(report.page())
    assert "Its vector was not built" not in report.line
    assert "foreign_index" not in {one.name for one in report.findings}


def test_why_says_that_rows_are_queries(prompted: Prompted, tmp_path: Path) -> None:
    place = kept(tmp_path / "index.parquet", prompted.vectors["query"], prompted.texts)
    report = embaudit.why(place, prompted.client, prompted.texts[33], "chunk-33")
    (foreign,) = (one for one in report.findings if one.name == "foreign_index")
    assert foreign.sentence.endswith("most of this index was built otherwise, by asking it for queries.")
