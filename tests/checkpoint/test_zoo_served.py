"""Checkpoints of many families, served by sentence-transformers itself: rightly, and with half their limit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zoo import ZOO

from benchmarks.serving.server import Encode, Refusal, Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.measures.quality.material import Material
from embaudit.questions.parity.parity import ParityReport, compare_with

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
