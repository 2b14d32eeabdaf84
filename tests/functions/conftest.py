"""Pipelines of sentence-transformers, in memory and saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_pipelines import PIPELINES, pipeline


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Each model in memory."""
    pytest.importorskip("sentence_transformers")
    return {kind: pipeline(kind, tmp_path_factory.mktemp("parts")) for kind in PIPELINES}


@pytest.fixture(scope="session")
def saved_pipelines(pipelines: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each saved to a folder."""
    place = tmp_path_factory.mktemp("pipelines")
    for kind, model in pipelines.items():
        model.save_pretrained(str(place / kind.replace(" ", "_")), create_model_card=False)
    return {kind: place / kind.replace(" ", "_") for kind in pipelines}
