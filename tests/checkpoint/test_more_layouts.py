"""Layouts that libraries write as a standard, and that are no Transformer with a pooled vector: read, or named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import tiny_bert

from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.embedders.opened import open_function
from embaudit.words.errors import CheckpointError

CPU = LoadOptions(device="cpu")


def pylate(folder: Path) -> None:
    settings = {
        "__version__": {"pylate": "1.3.0"},
        "query_prefix": "[Q] ",
        "document_prefix": "[D] ",
        "query_length": 32,
        "document_length": 300,
        "attend_to_expansion_tokens": False,
        "skiplist_words": [".", ","],
        "similarity_fn_name": "MaxSim",
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))


def named(architecture: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"architectures": [architecture]}))
        (folder / "modules.json").unlink()

    return write


def stanford(folder: Path) -> None:
    (folder / "modules.json").unlink()
    (folder / "artifact.metadata").write_text(json.dumps({"dim": 128, "query_token_id": "[unused0]"}))


def with_head(**tensors: tuple[int, ...]) -> Callable[[Path], None]:
    """Further tensors among the weights, of these shapes, and no modules."""

    def write(folder: Path) -> None:
        file = folder / "model.safetensors"
        more = {f"linear.{name}": torch.zeros(shape) for name, shape in tensors.items()}
        save_file({**load_file(file), **more}, file, metadata={"format": "pt"})
        (folder / "modules.json").unlink()

    return write


LATE = {
    "linear.weight alone": (with_head(weight=(16, 32)), "(linear.weight, 32 to 16 numbers without a bias)"),
    "PyLate": (pylate, "as PyLate writes it (query_prefix)"),
    "HF_ColBERT": (named("HF_ColBERT"), "as Stanford's ColBERT writes it (HF_ColBERT)"),
    "artifact.metadata": (stanford, "as Stanford's ColBERT writes it (artifact.metadata)"),
}


@pytest.mark.parametrize("name", LATE)
def test_late_interaction_is_named(tmp_path: Path, name: str) -> None:
    write, said = LATE[name]
    folder = tiny_bert(tmp_path / "tiny")
    write(folder)
    with pytest.raises(CheckpointError) as raised:
        load_checkpoint(str(folder), CPU)
    assert said in raised.value.happened
    assert "one vector per token" in raised.value.happened
    assert "remove it" not in raised.value.next_step


PLAIN = {
    "nothing else": named("BertModel"),
    "a classifier of two classes": with_head(weight=(2, 32)),
    "a layer with a bias": with_head(weight=(16, 32), bias=(16,)),
    "as wide as the network": with_head(weight=(32, 32)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_folder_is_still_read(tmp_path: Path, name: str) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    PLAIN[name](folder)
    assert load_checkpoint(str(folder), CPU).dimension == 32


def test_the_mean_of_its_tokens_is_read_if_that_is_asked(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    with_head(weight=(16, 32))(folder)
    assert load_checkpoint(str(folder), LoadOptions(device="cpu", pooling="mean")).dimension == 32


@pytest.mark.parametrize("is_mixed", [True, False], ids=["a static route and a transformer's", "two transformers"])
def test_a_router_is_read_by_its_routes(tmp_path: Path, is_mixed: bool) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", minversion="6.0")
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer

    def transformer(seed: int) -> list[object]:
        return [Transformer(str(tiny_bert(tmp_path / f"bert {seed}", seed=seed))), Pooling(32)]

    queries = transformer(1)
    if is_mixed:
        queries = [StaticEmbedding(transformer(1)[0].tokenizer, embedding_dim=32)]  # type: ignore[attr-defined]
    router = Router.for_query_document(queries, transformer(0))
    model = sentence_transformers.SentenceTransformer(modules=[router], device="cpu")
    model.save(str(tmp_path / "router"))
    with open_function(str(tmp_path / "router"), CPU) as function:
        texts = ["the old bridge", "a river in the north"]
        for role, encode in (("query", model.encode_query), ("document", model.encode_document)):
            assert np.allclose(function.encode(texts, role).vectors, encode(texts), atol=1e-6)  # type: ignore[arg-type]
