"""A SentenceTransformer in memory: the folder that it is saved to is the same function, or the error says that not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tiny_models import build, declare, pooling
from zoo import NORMALIZE

from embaudit.api.audit import save_model
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
