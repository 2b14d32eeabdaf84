"""What is said of what a token sees, of vectors that are none, and of what files declare and nothing computes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import tiny_bert
from tiny_models import change_json

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.declared.rule import Finding
from embaudit.measures.integrity.files import file_findings
from embaudit.measures.integrity.function import function_findings
from embaudit.measures.integrity.numerics import _usable


@pytest.mark.parametrize("seed", [0, 1, 13])
def test_a_token_that_is_not_read_does_not_count_by_the_last_bit(tmp_path: Path, seed: int) -> None:
    """A first token that sees no other: 1 − cosine of one vector with itself is 1e-16, 0 or −2e-16."""
    folder = tiny_bert(tmp_path / "tiny", seed=seed)
    change_json(folder / "config.json", is_decoder=True)
    encoder = Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu", pooling="cls")))
    (tail,) = (one for one in function_findings(encoder) if one.name == "tail")
    assert "does not move the vector" in tail.sentence
    whole = Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu")))
    (tail,) = (one for one in function_findings(whole) if one.name == "tail")
    assert tail.level == "ok"


@pytest.mark.parametrize("has_end", [True, False])
def test_a_last_token_that_ends_nothing_is_said(tmp_path: Path, has_end: bool) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    change_json(folder / "config.json", is_decoder=True)
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


# ---- declared and not computed ----


OURS = {"positions_not_computed", "prompt_not_picked"}


def found_in(folder: Path) -> dict[str, Finding]:
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    return {one.name: one for one in file_findings(checkpoint) if one.name in OURS}


@pytest.mark.parametrize("declared", ["relative_key", "relative_key_query", "rotary"])
def test_positions_that_are_not_computed(tmp_path: Path, declared: str) -> None:
    pytest.importorskip("transformers", minversion="5.0", reason="earlier versions compute them")
    folder = tiny_bert(tmp_path / "tiny")
    change_json(folder / "config.json", position_embedding_type=declared)
    found = found_in(folder)["positions_not_computed"]
    assert found.level == "problem"
    assert declared in found.sentence
    assert "transformers<" in found.advice
    change_json(folder / "config.json", position_embedding_type="absolute")
    assert not found_in(folder)


# (what is declared, what nothing picks)
PROMPTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "Nomic's names": ({"search_query": "search_query: ", "search_document": "search_document: "}, ["search_query"]),
    "passage": ({"query": "query: ", "passage": "passage: "}, ["passage"]),
    "Jina's names": ({"retrieval.query": "Query: ", "retrieval.passage": "Passage: "}, ["retrieval.query"]),
    "E5": ({"query": "query: ", "document": "passage: "}, []),
    "queries alone": ({"query": "find: ", "document": ""}, []),
    "tasks": ({"query": "find: ", "document": "title: ", "STS": "similar: ", "Retrieval-query": "find: "}, []),
    "none": ({}, []),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_under_names_that_nothing_picks(tmp_path: Path, name: str) -> None:
    declared, names = PROMPTS[name]
    folder = tiny_bert(tmp_path / "tiny")
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": declared}))
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    found = [one for one in file_findings(checkpoint) if one.name == "prompt_not_picked"]
    assert bool(found) == bool(names)
    for one in names:
        assert any(repr(one) in finding.sentence for finding in found)
    assert {finding.level for finding in found} <= {"look"}


def test_sentence_transformers_does_not_pick_them(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    import numpy as np
    from sentence_transformers import SentenceTransformer

    folder = tiny_bert(tmp_path / "tiny")
    settings = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    model = SentenceTransformer(str(folder), device="cpu")
    plain, document = model.encode(["gold"]), model.encode_document(["gold"])
    assert np.allclose(plain, document) != np.allclose(model.encode(["passage: gold"]), document)
    assert np.allclose(plain, document)
