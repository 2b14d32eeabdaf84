"""A SentenceTransformer in memory: the folder that it is saved to is the same function, or the error says that not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from tiny import tiny_bert
from tiny_models import build, change_json, change_tensors, declare, pooling
from zoo import NORMALIZE

from embaudit.api.audit import save_model
from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.embedders.opened import open_function
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import CheckpointError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


Change = Callable[[Any], object]


def set_to(**values: Any) -> Change:
    def change(model: Any) -> None:
        for name, value in values.items():
            setattr(model, name, value)

    return change


def scaled(module: Any, given: Any, features: dict[str, Any]) -> None:
    features["token_embeddings"][..., 0] *= 3


def shouting(model: Any) -> None:
    encode = model.encode
    model.encode = lambda inputs, **options: encode([f"{text} river" for text in inputs], **options)


SAVED: dict[str, Change] = {
    "as loaded": lambda model: None,
    "a shorter limit": set_to(max_seq_length=7),
    "prompts": set_to(prompts={"query": "river: ", "document": "stone: "}, default_prompt_name="document"),
    "fewer dimensions": set_to(truncate_dim=5),
    "half precision": lambda model: model.half(),
    "bfloat16": lambda model: model.bfloat16(),
    "another pooling": lambda model: set_to(pooling_mode="cls")(model[1]),
    "prompts outside the mean": lambda model: (
        set_to(prompts={"query": "river: ", "document": ""})(model),
        model.set_pooling_include_prompt(False),
    ),
    "a limit of the tokenizer": lambda model: set_to(model_max_length=9)(model.tokenizer),
    "lengths of queries": lambda model: set_to(query_length=6, document_length=12)(model[0]),
    "in training": lambda model: model.train(),
    "without its last module": lambda model: model._modules.popitem(),
}
LOST: dict[str, Change] = {
    "a hook": lambda model: model[0].register_forward_hook(scaled),
    "a method": shouting,
    # transformers does not save it.
    "a side": lambda model: set_to(truncation_side="left", model_max_length=9)(model.tokenizer),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def model(tmp_path: Path) -> SentenceTransformer:
    library = pytest.importorskip("sentence_transformers")
    folder = declare(build("bert", tmp_path / "model"), pooling("mean"), NORMALIZE)
    loaded: SentenceTransformer = library.SentenceTransformer(str(folder), device="cpu")
    return loaded


def request(**settings: Any) -> AuditRequest:
    return AuditRequest.of(checkpoint="a loaded model", profile="quick", device="cpu", **settings)


@pytest.mark.parametrize("change", SAVED.values(), ids=SAVED)
def test_what_is_saved_is_audited(model: Any, change: Change, home: Path) -> None:
    change(model)
    was_training = model.training
    place = save_model(model, request())
    assert place.parent == home / "models"
    assert model.training is was_training


@pytest.mark.parametrize("change", LOST.values(), ids=LOST)
def test_what_is_not_saved_is_reported(model: Any, change: Change, home: Path) -> None:
    change(model)
    with pytest.raises(CheckpointError, match="other vectors than the folder that it was saved to") as caught:
        save_model(model, request())
    assert str(home / "models") in caught.value.kept


@pytest.mark.parametrize(
    "settings", [{"pooling": "cls"}, {"max_length": 8}, {"prompt": "river: "}], ids=lambda given: next(iter(given))
)
def test_an_audit_of_another_function_is_not_compared(model: Any, settings: dict[str, Any], home: Path) -> None:
    shouting(model)
    assert save_model(model, request(**settings)).is_dir()


# ---- layouts that libraries write as a standard, and that are no Transformer with a pooled vector: read, or named ----


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
        change_json(folder / "config.json", architectures=[architecture])
        (folder / "modules.json").unlink()

    return write


def stanford(folder: Path) -> None:
    (folder / "modules.json").unlink()
    (folder / "artifact.metadata").write_text(json.dumps({"dim": 128, "query_token_id": "[unused0]"}))


def with_head(**tensors: tuple[int, ...]) -> Callable[[Path], None]:
    """Further tensors among the weights, of these shapes, and no modules."""

    def write(folder: Path) -> None:
        more = {f"linear.{name}": torch.zeros(shape) for name, shape in tensors.items()}
        change_tensors(folder / "model.safetensors", lambda found: found | more)
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
