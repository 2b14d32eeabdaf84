"""What is said of what a token sees, of the end of a text, and of vectors that are none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.measures.integrity.function import function_findings
from embaudit.measures.integrity.numerics import _usable


@pytest.mark.parametrize("seed", [0, 1, 13])
def test_a_token_that_is_not_read_does_not_count_by_the_last_bit(tmp_path: Path, seed: int) -> None:
    """A first token that sees no other: 1 − cosine of one vector with itself is 1e-16, 0 or −2e-16."""
    folder = tiny_bert(tmp_path / "tiny", seed=seed)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"is_decoder": True}))
    encoder = Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu", pooling="cls")))
    (tail,) = (one for one in function_findings(encoder) if one.name == "tail")
    assert "does not move the vector" in tail.sentence
    whole = Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu")))
    (tail,) = (one for one in function_findings(whole) if one.name == "tail")
    assert tail.level == "ok"


@pytest.mark.parametrize("has_end", [True, False])
def test_a_last_token_that_ends_nothing_is_said(tmp_path: Path, has_end: bool) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"is_decoder": True}))
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu", pooling="lasttoken"))
    if not has_end:
        checkpoint = replace(checkpoint, suffix_ids=())
    said = [one.level for one in function_findings(Encoder(checkpoint)) if one.name == "no_end_token"]
    assert said == ([] if has_end else ["look"])


def test_vectors_of_length_0_are_counted() -> None:
    found = _usable(np.array([[0.0, 0.0], [0.6, 0.8], [0.0, 0.0]]))
    assert (found.name, found.level, found.value) == ("zero_vector", "problem", 2)
    assert found.sentence == "2 of 3 hard texts get a vector of length 0."
    assert _usable(np.array([[0.6, 0.8]])).level == "ok"
