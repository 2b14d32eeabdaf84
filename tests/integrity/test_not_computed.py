"""What files declare and nothing computes, with its healthy twins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import tiny_bert

from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.declared.rule import Finding
from embaudit.measures.integrity.files import file_findings

OURS = {"positions_not_computed", "prompt_not_picked"}


def found_in(folder: Path) -> dict[str, Finding]:
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    return {one.name: one for one in file_findings(checkpoint) if one.name in OURS}


@pytest.mark.parametrize("declared", ["relative_key", "relative_key_query", "rotary"])
def test_positions_that_are_not_computed(tmp_path: Path, declared: str) -> None:
    pytest.importorskip("transformers", minversion="5.0", reason="earlier versions compute them")
    folder = tiny_bert(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"position_embedding_type": declared}))
    found = found_in(folder)["positions_not_computed"]
    assert found.level == "problem"
    assert declared in found.sentence
    assert "transformers<" in found.advice
    (folder / "config.json").write_text(json.dumps(config | {"position_embedding_type": "absolute"}))
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
