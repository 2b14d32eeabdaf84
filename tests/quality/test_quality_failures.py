"""What cannot be measured is said: no traceback, and nothing that counts as passed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.declared.rule import Finding
from embaudit.measures.quality import quality as quality_module
from embaudit.measures.quality.alternatives import other_prompts, other_special_tokens
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.passes import MultiPoolingEncoder
from embaudit.measures.quality.quality import quality_findings

pytestmark = pytest.mark.usefixtures("one_thread")


def a_tiny_checkpoint(folder: Path, seed: int = 0) -> Checkpoint:
    return load_checkpoint(str(tiny_bert(folder, seed=seed)), LoadOptions(device="cpu"))


@pytest.fixture(scope="module")
def small_material() -> Material:
    material = sample_material()
    collection, _ = material.collections[0].first(20, 40)
    return Material((material.pairs[0].first(80),), (collection,))


def by_name(findings: tuple[Finding, ...], name: str) -> list[Finding]:
    return [finding for finding in findings if finding.name == name]


def test_random_weights_are_said_to_be_broken(tiny: Checkpoint) -> None:
    report = quality_findings(Encoder(tiny), sample_material())
    assert by_name(report.findings, "no_better_than_words")[0].level == "problem"
    assert json.loads(json.dumps(report.figures))["data"][0]["score"]["value"] is not None


def test_vectors_that_are_not_finite_are_not_measured(tmp_path: Path, small_material: Material) -> None:
    checkpoint = a_tiny_checkpoint(tmp_path / "model", seed=3)
    with torch.no_grad():
        checkpoint.model.encoder.layer[1].output.LayerNorm.weight[0] = float("nan")
    report = quality_findings(Encoder(checkpoint), small_material)
    assert {finding.level for finding in report.findings} == {"not measured"}
    assert "NaN" in report.findings[0].sentence


def test_material_that_is_missing_is_named(tiny: Checkpoint, small_material: Material) -> None:
    encoder = Encoder(tiny)
    nothing = quality_findings(encoder, Material(missing=("the pairs of mine: none has a score.",)))
    assert {finding.level for finding in nothing.findings} == {"not measured"}
    assert "mine" in nothing.findings[0].sentence
    for material in (Material(small_material.pairs), Material((), small_material.collections)):
        report = quality_findings(encoder, material)
        assert len(by_name(report.findings, "scored")) == 1
        assert by_name(report.findings, "no_better_than_words")


def test_nothing_is_compared_if_the_tokenizer_is_broken(tiny: Checkpoint, small_material: Material) -> None:
    report = quality_findings(Encoder(tiny), small_material, tokenizer_is_broken=True)
    assert by_name(report.findings, "as_declared")[0].level == "not measured"
    assert not [finding for finding in report.findings if finding.name.startswith("better_")]
    assert report.figures["alternatives"] == []


def test_a_check_that_fails_is_not_passed(
    tiny: Checkpoint, small_material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KeyError("hidden")

    monkeypatch.setattr(quality_module, "measure_layers", fails)
    report = quality_findings(Encoder(tiny), small_material)
    (finding,) = by_name(report.findings, "lost_in_layer_could_not_run")
    assert finding.level == "not measured"
    assert "KeyError" in finding.sentence

    def out_of_memory(*_: object) -> None:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(quality_module, "measure_layers", out_of_memory)
    with pytest.raises(torch.OutOfMemoryError):
        quality_findings(Encoder(tiny), small_material)


# On a processor torch has no class of its own for a lack of memory.
OF_MACHINE = (
    torch.OutOfMemoryError("no memory"),
    torch.AcceleratorError("CUDA error: unspecified launch failure"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes."),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
)


@pytest.mark.parametrize("failure", OF_MACHINE)
@pytest.mark.parametrize("tried", ["_other", "_stopped"])
def test_what_fails_in_the_machine_is_not_taken_for_a_shape_that_does_not_fit(
    tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch, tried: str, failure: Exception
) -> None:
    encoder = MultiPoolingEncoder(tiny)

    def out_of_memory(*_: object) -> None:
        raise failure

    states, mask = torch.ones(1, 2, 32), torch.ones(1, 2, dtype=torch.int64)
    monkeypatch.setattr(MultiPoolingEncoder, "_after", out_of_memory)
    arguments = (states, mask, "cls") if tried == "_other" else (states, mask)
    with pytest.raises(type(failure)):
        getattr(encoder, tried)(*arguments)


def test_prompts_and_special_tokens_have_alternatives_where_there_are_any(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model", seed=5)
    plain = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    assert not list(other_prompts(plain))
    assert [name for name, *_ in other_special_tokens(plain)] == ["text without special tokens"]
    settings = {"prompts": {"query": "found: ", "document": "text: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    prompted = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    others = {name: other for name, _, other in other_prompts(prompted)}
    assert list(others) == [
        "text without prompts",
        "the prompt 'found: ' everywhere",
        "the prompt 'text: ' everywhere",
        "swapped prompts",
    ]
    swapped = others["swapped prompts"].reading("query")
    assert swapped.tokenize(["river"]) == prompted.reading("document").tokenize(["river"])
    assert others["text without prompts"].reading("query").tokenize(["river"]) == plain.tokenize(["river"])
