"""What is said of the end of a long text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.measures.integrity.function import function_findings


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
