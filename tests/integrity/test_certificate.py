"""Every tensor in memory is traced to a file, over families, names, precisions and things that go wrong."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import (
    FAMILIES,
    build,
    change_json,
    change_tensors,
    declare,
    dense,
    layer_norm,
    load,
    pooling,
    to_pickle,
    to_shards,
)

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding
from embaudit.measures.integrity.certificate import trace
from embaudit.measures.integrity.not_computed import certificate_findings

Rewrite = Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]
LAYER = "encoder.layer.1.output.dense.weight"


def tiny(folder: Path, family: str = "bert", *, limit: int | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    return declare(build(family, folder, limit=limit), pooling("mean"), ("Normalize", {}))


def rewritten(folder: Path, change: Rewrite) -> Path:
    change_tensors(folder / "model.safetensors", change)
    return folder


def statuses(checkpoint: Checkpoint) -> Counter[str]:
    """How many tensors have each status; the pooler that transformers builds for BERT aside."""
    return Counter(record.status for record in trace(checkpoint) if not record.name.startswith("pooler."))


def levels(findings: list[Finding]) -> dict[str, str]:
    return {finding.name: finding.level for finding in findings}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_is_traced(tmp_path: Path, family: str) -> None:
    """Against a slow reference: the stored tensor of the record's name, read whole, has the record's values."""
    checkpoint = load(tiny(tmp_path / "m", family))
    records = {record.name: record for record in trace(checkpoint) if record.name}
    state = checkpoint.model.state_dict()
    assert set(records) == set(state)
    stored = load_file(tmp_path / "m" / "model.safetensors")
    for name, record in records.items():
        if name.startswith("pooler.") and name not in stored:
            assert record.status == "unused"
            continue
        assert record.status in ("same", "tied", "renamed")
        assert torch.equal(state[name], stored[record.stored_name])
        assert record.shape == tuple(state[name].shape)
        assert record.file == "model.safetensors"
    assert levels(certificate_findings(checkpoint)) == {"weights_from_file": "ok"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda tensors: {f"bert.{name}": tensor for name, tensor in tensors.items()}, "renamed"),
        (lambda tensors: {name: tensor.bfloat16() for name, tensor in tensors.items()}, "cast"),
        (lambda tensors: {name: tensor.half() for name, tensor in tensors.items()}, "cast"),
    ],
)
def test_other_names_and_precisions(
    tmp_path: Path, change: Callable[..., dict[str, torch.Tensor]], status: str
) -> None:
    checkpoint = load(rewritten(tiny(tmp_path / "m"), change))
    assert set(statuses(checkpoint)) == {status}
    assert levels(certificate_findings(checkpoint)) == {"weights_from_file": "ok"}


def test_names_of_old_releases(tmp_path: Path) -> None:
    """gamma and beta, which transformers renames."""

    def older(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        renamed = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        return {
            next((name.replace(new, old) for new, old in renamed.items() if new in name), name): tensor
            for name, tensor in tensors.items()
        }

    checkpoint = load(rewritten(tiny(tmp_path / "m"), older))
    found = statuses(checkpoint)
    assert found["renamed"] == 2 * (1 + 2 * 2)
    assert set(found) == {"same", "renamed"}


@pytest.mark.parametrize("pickled", [False, True])
def test_modules_after_pooling_are_traced(tmp_path: Path, pickled: bool) -> None:
    folder = build("bert", tmp_path)
    declare(folder, pooling("mean"), ("Dropout", {"dropout": 0.1}), dense(), layer_norm(16), ("Normalize", {}))
    if pickled:
        tensors = load_file(folder / "4_LayerNorm" / "model.safetensors")
        torch.save(tensors, folder / "4_LayerNorm" / "pytorch_model.bin")
        (folder / "4_LayerNorm" / "model.safetensors").unlink()
    records = {record.name: record for record in trace(load(folder, allow_pickle=pickled))}
    assert records["after_pooling.0.linear.weight"].file == "3_Dense/model.safetensors"
    end = "pytorch_model.bin" if pickled else "model.safetensors"
    assert records["after_pooling.1.norm.bias"].file == f"4_LayerNorm/{end}"
    assert {record.status for name, record in records.items() if "pooler" not in name} == {"same"}


def test_pickled_weights_are_traced(tmp_path: Path) -> None:
    assert set(statuses(load(to_pickle(tiny(tmp_path / "m")), allow_pickle=True))) == {"same"}


def test_shards_are_traced(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "m")
    to_shards(folder, "20KB")
    checkpoint = load(folder)
    assert set(statuses(checkpoint)) == {"same"}
    assert len({record.file for record in trace(checkpoint)}) > 2


def test_values_that_code_changed_are_a_problem(tmp_path: Path) -> None:
    checkpoint = load(tiny(tmp_path / "m"))
    model = copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        model.get_parameter(LAYER)[3, 4] += 1e-6
    changed = replace(checkpoint, model=model)
    assert [record.name for record in trace(changed) if record.status == "changed"] == [LAYER]
    [finding] = certificate_findings(changed)
    assert finding.level == "problem"
    assert LAYER in finding.sentence
    assert "model.safetensors" in finding.sentence


def test_tensors_in_no_file_are_a_problem_unless_nothing_reads_them(tmp_path: Path) -> None:
    checkpoint = load(tiny(tmp_path / "m"))
    model = copy.deepcopy(checkpoint.model)
    [finding] = certificate_findings(checkpoint)
    assert finding.level == "ok"
    assert "except 2 that no vector depends on" in finding.sentence
    model.adapter = torch.nn.Linear(32, 32)
    [finding] = certificate_findings(replace(checkpoint, model=model))
    assert finding.level == "problem"
    assert "adapter.weight" in finding.sentence


UNREAD: dict[str, tuple[dict[str, tuple[int, ...]], dict[str, str]]] = {
    "head of masked tokens": ({"cls.predictions.transform.dense.weight": (32, 32)}, {}),
    "pooler": ({"pooler.dense.weight": (32, 32), "pooler.dense.bias": (32,)}, {}),
    "position ids": ({"embeddings.position_ids": (1, 64)}, {}),
    "classifier": ({"classifier.weight": (3, 32)}, {}),
    "projection": ({"text_projection.weight": (16, 32)}, {"unread_weights": "look"}),
    "bias of a norm": ({"encoder.layer.0.attention.norm2.bias": (32,)}, {"unread_weights": "look"}),
    "another layer": ({"encoder.layer.2.output.dense.weight": (32, 64)}, {"unread_weights": "problem"}),
}


@pytest.mark.parametrize("name", UNREAD)
def test_tensors_that_nothing_reads(tmp_path: Path, name: str) -> None:
    extra, expected = UNREAD[name]
    folder = rewritten(
        tiny(tmp_path / "m"), lambda tensors: tensors | {key: torch.ones(shape) for key, shape in extra.items()}
    )
    checkpoint = load(folder)
    assert levels(certificate_findings(checkpoint)) == (expected or {"weights_from_file": "ok"})
    pooler = name == "pooler"  # which transformers builds if the file has one
    assert statuses(checkpoint)["unread"] == (
        0 if pooler and "pooler" in dict(checkpoint.model.named_children()) else len(extra)
    )


def test_fewer_layers_than_the_file_holds(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "m")
    change_json(folder / "config.json", num_hidden_layers=1)
    [finding] = certificate_findings(load(folder))
    assert finding.level == "problem"
    assert "holds 2 layers, of which config.json lets 1 run: encoder.layer.1" in finding.sentence
