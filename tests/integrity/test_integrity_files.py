"""Contradictions between files of tiny checkpoints, and all checks together."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import build, change_json, declare, dense, json_file, load, pooling, write_json

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import guarded
from embaudit.measures.integrity import integrity
from embaudit.measures.integrity.files import file_findings
from embaudit.measures.integrity.integrity import integrity_findings

TOKENIZER, SETTINGS, POOLING = "tokenizer_config.json", "sentence_bert_config.json", "1_Pooling/config.json"


def truncation(length: int, direction: str = "Right") -> dict[str, object]:
    return {"max_length": length, "strategy": "LongestFirst", "stride": 0, "direction": direction}


def pickle_beside(change: float) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        torch.save({name: tensor + change for name, tensor in tensors.items()}, folder / "pytorch_model.bin")

    return run


def prompts(declared: dict[str, str]) -> Callable[[Path], None]:
    """Prompts of which the query's is the default."""
    return lambda folder: write_json(
        folder / "config_sentence_transformers.json", {"prompts": declared, "default_prompt_name": "query"}
    )


def folder_of(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).mkdir()


def without_module(place: int) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        import json

        entries = json.loads((folder / "modules.json").read_text())
        write_json(folder / "modules.json", entries[:place] + entries[place + 1 :])

    return run


CONTRADICTIONS: dict[str, tuple[Callable[[Path], None], dict[str, str]]] = {
    "none": (lambda folder: None, {}),
    "tokenizer.json cuts earlier": (
        json_file("tokenizer.json", truncation=truncation(16)),
        {"limits_disagree": "look"},
    ),
    "tokenizer.json cuts later": (json_file("tokenizer.json", truncation=truncation(60)), {}),
    "model_max_length is lower": (json_file(TOKENIZER, model_max_length=20), {"limits_disagree": "look"}),
    "model_max_length is none": (json_file(TOKENIZER, model_max_length=int(1e30)), {}),
    "beyond the positions": (json_file(SETTINGS, max_seq_length=100), {"limit_beyond_positions": "problem"}),
    "other side": (
        lambda folder: (
            change_json(folder / "tokenizer.json", truncation=truncation(60, "Left")),
            change_json(folder / TOKENIZER, truncation_side="right"),
        ),
        {"truncation_side": "look"},
    ),
    "texts cut on the left": (
        lambda folder: (
            change_json(folder / "tokenizer.json", truncation=truncation(60, "Left")),
            change_json(folder / TOKENIZER, truncation_side="left"),
        ),
        {"truncation_side": "look"},
    ),
    "another activation": (json_file("config.json", hidden_act="relu"), {"unusual_config": "look"}),
    "an approximation of the activation": (json_file("config.json", hidden_act="gelu_new"), {}),
    "a large epsilon": (json_file("config.json", layer_norm_eps=0.01), {"unusual_config": "look"}),
    "architectures of another family": (
        json_file("config.json", architectures=["RobertaForMaskedLM"]),
        {"unusual_config": "look"},
    ),
    "architectures of a head": (json_file("config.json", architectures=["BertForMaskedLM"]), {}),
    "two poolings": (
        lambda folder: (
            shutil.rmtree(folder / "2_Dense"),
            shutil.rmtree(folder / "3_Normalize"),
            declare(folder, pooling("cls", "mean"), ("Normalize", {})),
        ),
        {"several_poolings": "look"},
    ),
    "a query's prompt for all": (
        prompts({"query": "q: "}),
        {"default_prompt": "look"},
    ),
    "a prompt for all": (
        prompts({"query": "q: ", "document": "q: "}),
        {},
    ),
    "no modules.json": (lambda folder: (folder / "modules.json").unlink(), {"undeclared_pooling": "look"}),
    "no mode of pooling": (
        lambda folder: write_json(folder / POOLING, {"word_embedding_dimension": 32}),
        {"undeclared_pooling": "look"},
    ),
    "pooling of another size": (
        lambda folder: write_json(folder / POOLING, {"word_embedding_dimension": 64, "pooling_mode": "cls"}),
        {"dimensions_disagree": "look"},
    ),
    "Dense not listed": (without_module(2), {"module_not_listed": "problem"}),
    "Normalize not listed": (
        lambda folder: without_module(3)(folder),
        {"module_not_listed": "look"},
    ),
    "a folder of something else": (folder_of("onnx"), {}),
    "the same pickle": (pickle_beside(0.0), {}),
    "another pickle": (pickle_beside(0.01), {"two_weight_files": "problem"}),
}


def tiny(folder: Path) -> Path:
    return declare(build("bert", folder), pooling("mean"), dense(), ("Normalize", {}))


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_named(tmp_path: Path, name: str) -> None:
    change, expected = CONTRADICTIONS[name]
    change(tiny(tmp_path))
    found = {finding.name: finding.level for finding in file_findings(load(tmp_path))}
    assert found == (expected or {"files_agree": "ok"})


def test_both_files_and_both_values_are_named(tmp_path: Path) -> None:
    change_json(tiny(tmp_path) / "tokenizer.json", truncation=truncation(16))
    [finding] = file_findings(load(tmp_path))
    for named in ("sentence_bert_config.json", "48 tokens", "tokenizer.json", "16"):
        assert named in finding.sentence


@pytest.mark.parametrize(("limit", "levels"), [(64, ["look"]), (65, [])])
def test_a_limit_that_hardly_any_passage_fits_into(tmp_path: Path, limit: int, levels: list[str]) -> None:
    from transformers import BertConfig, BertModel

    folder = tiny(tmp_path)
    config = BertConfig.from_pretrained(folder, max_position_embeddings=256)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    change_json(folder / SETTINGS, max_seq_length=limit)
    found = [finding for finding in file_findings(load(folder)) if finding.name == "short_limit"]
    assert [(finding.level, finding.value) for finding in found] == [(level, limit) for level in levels]


def test_a_tiny_random_model_is_broken_and_said_to_be(tmp_path: Path) -> None:
    found = integrity_findings(load(tiny(tmp_path)))
    problems = [finding.name for finding in found if finding.level == "problem"]
    assert problems[:2] == ["untrained_layers", "untrained_embeddings"]
    assert [finding.level for finding in found] == sorted(
        [finding.level for finding in found], key=["problem", "look", "not measured", "ok"].index
    )


def test_the_packaged_checkpoint_is_fine(minilm: Checkpoint) -> None:
    """The one thing to look at is true of it: tokenizer.json cuts at 128 tokens, sentence_bert_config.json at 256."""
    found = integrity_findings(minilm)
    assert {finding.name: finding.level for finding in found if finding.level != "ok"} == {"limits_disagree": "look"}
    assert len(found) == 8
    assert all(finding.name and finding.sentence.endswith(".") for finding in found)


def test_a_check_that_fails_is_not_passed_over(minilm: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(checkpoint: Checkpoint) -> list[object]:
        raise ValueError("a strange\nmodel")

    monkeypatch.setattr(integrity, "token_findings", broken)
    [failed] = [finding for finding in integrity_findings(minilm) if finding.level == "not measured"]
    assert failed.name == "tokenizer_could_not_run"
    assert "ValueError: a strange model" in failed.sentence


@pytest.mark.parametrize(
    "failure",
    [
        torch.OutOfMemoryError(),
        RuntimeError("can't allocate memory"),
        MemoryError(),
        torch.AcceleratorError("CUDA error: no CUDA-capable device is detected"),
        RuntimeError("CUDA driver error: unknown error"),
    ],
)
def test_what_fails_in_the_machine_is_no_finding(failure: Exception) -> None:
    def greedy() -> list[object]:
        raise failure

    with pytest.raises(type(failure)):
        guarded("weights", greedy)  # type: ignore[arg-type]
