"""A tiny checkpoint, its passport and the file of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import Passport, write_passport

OPTIONS = LoadOptions(device="cpu")


@pytest.fixture(scope="session")
def passed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, mean pooling and Normalize, a limit of 64 tokens, and a prompt for queries that is no default."""
    folder = tiny_bert(tmp_path_factory.mktemp("passport") / "tiny")
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(json.dumps({"prompts": {"query": "find: ", "document": ""}}))
    return folder


@pytest.fixture(scope="session")
def passed(passed_folder: Path) -> Checkpoint:
    return load_checkpoint(str(passed_folder), OPTIONS)


@pytest.fixture(scope="session")
def tiny_passport(passed: Checkpoint) -> Passport:
    return make_passport(CheckpointFunction(passed), OPTIONS)


@pytest.fixture
def passport_file(tiny_passport: Passport, tmp_path: Path) -> Path:
    path = tmp_path / "passport.json"
    write_passport(tiny_passport, path)
    return path
