"""A tiny checkpoint with a prompt, and servers of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, mean pooling and Normalize, and a prompt for queries that is no default."""
    folder = tiny_bert(tmp_path_factory.mktemp("parity") / "tiny")
    settings = folder / "config_sentence_transformers.json"
    known = json.loads(settings.read_text()) if settings.is_file() else {}
    settings.write_text(json.dumps(known | {"prompts": {"query": "find: ", "document": ""}}))
    return folder


@pytest.fixture(scope="session")
def served_checkpoint(tiny_folder: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_folder), LoadOptions(device="cpu"))
