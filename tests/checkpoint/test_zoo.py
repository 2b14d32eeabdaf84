"""The zoo against sentence-transformers: read the same, refused by name, and served rightly or with half its limit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from older import sentence_transformers_6
from rare_zoo import RARE_ZOO
from tiny_models import load
from zoo import ZOO, Entry

from benchmarks.serving.server import Encode, Refusal, Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.checkpoint.agreement import compare_readings
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.measures.quality.material import Material
from embaudit.questions.parity.parity import ParityReport, compare_with
from embaudit.words.errors import CheckpointError

EVERYTHING = ZOO | RARE_ZOO
# One of each kind of reading, for `make test`; the rest takes a minute and more.
QUICK = (
    *("family: xlnet", "limits: truncated on the left, with prompts", "settings: processor_kwargs"),
    *("settings: no special tokens", "layouts: version 6: saved with prompts"),
)
READ = [
    pytest.param(entry, id=name, marks=() if name in QUICK else pytest.mark.slow)
    for name, entry in EVERYTHING.items()
    if not entry.refused
]
REFUSED = [pytest.param(entry, id=name) for name, entry in EVERYTHING.items() if entry.refused]


def test_the_zoo_is_large_enough() -> None:
    assert len(READ) + len(REFUSED) >= 60
    assert set(QUICK) <= EVERYTHING.keys()


@pytest.mark.parametrize("entry", READ)
def test_what_is_read_is_read_the_same(entry: Entry, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="compares with sentence-transformers")
    folder = entry.make(tmp_path / "model")
    if any("query_length" in path.read_text() for path in folder.rglob("sentence_bert_config.json")):
        sentence_transformers_6("lengths of queries and documents")
    rows = list(compare_readings(load(folder)))
    assert {row.method for row in rows} == {"encode", "encode_query", "encode_document"}
    assert [row for row in rows if not row.is_same] == []
    # Refused texts (without a single token) do not count as read the same: most kinds must be compared.
    assert sum(row.difference is not None for row in rows) > len(rows) / 3


@pytest.mark.parametrize("entry", REFUSED)
def test_what_is_not_read_is_refused_by_name(entry: Entry, tmp_path: Path) -> None:
    folder = entry.make(tmp_path / "model")
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    assert re.search(entry.refused, caught.value.happened)
    assert caught.value.next_step
    assert "\n" not in str(caught.value)


# ---- served ----


FAMILIES = [name for name, entry in ZOO.items() if name.startswith("family") and not entry.refused]


def by_sentence_transformers(model: Any) -> Encode:
    def encode(texts: list[str]) -> np.ndarray:
        try:
            return np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float64)
        except Exception as error:  # a text without a token, in a model that takes none
            raise Refusal(400, f"{type(error).__name__}: {error}") from error

    return encode


def compared(checkpoint: Checkpoint, model: Any) -> ParityReport:
    with serving(Served(by_sentence_transformers(model))) as address, open_endpoint(address) as endpoint:
        endpoint.wait_at_most = 0
        return compare_with(CheckpointFunction(checkpoint), endpoint, Material())


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_the_same_function_and_half_its_limit_is_named(name: str, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="serves the checkpoint")
    folder = ZOO[name].make(tmp_path / "model")
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    model = library.SentenceTransformer(str(folder), device="cpu")
    report = compared(checkpoint, model)
    assert report.verdict == "the same function", report.line
    if checkpoint.max_length >= NO_LIMIT:
        return
    model.max_seq_length = checkpoint.max_length // 2
    report = compared(checkpoint, model)
    assert report.verdict == "another function", report.line
    half = model.max_seq_length
    assert re.search(f"reads (the last )?{half} tokens", report.line), report.line
