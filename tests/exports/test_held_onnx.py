"""Real ONNX files held against the weights that they were exported from: which are the same function, and why not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from onnx_files import (
    IDS,
    MASK,
    POSITIONS,
    SEGMENTS,
    external_onnx,
    half_onnx,
    pooled,
    quantised_onnx,
    states,
    write_onnx,
)
from some_rows import mostly_slow

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.onnx_file import read_onnx
from embaudit.declared.rule import Finding
from embaudit.questions.exports.findings import findings_of
from embaudit.questions.exports.held import OwnVectors

Write = Callable[[Checkpoint, Path, Path], Path]


def written(outputs: Callable[[Checkpoint], Any] = lambda checkpoint: None, **how: Any) -> Write:
    return lambda checkpoint, _, target: write_onnx(checkpoint, target, outputs(checkpoint), **how)


def rounded(write: Write) -> Write:
    """What another writes, in 8 bits."""

    def both(checkpoint: Checkpoint, exported: Path, target: Path) -> Path:
        return quantised_onnx(write(checkpoint, exported, target.with_name("float.onnx")), target)

    return both


def as_it_is(checkpoint: Checkpoint, exported: Path, target: Path) -> Path:
    return exported


def older(by: float) -> Write:
    """Of a revision whose parameters have moved by so much of their spread since."""

    def write(checkpoint: Checkpoint, exported: Path, target: Path) -> Path:
        chance = torch.Generator().manual_seed(0)
        model = copy.deepcopy(checkpoint.model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += by * parameter.std() * torch.randn(parameter.shape, generator=chance)
        return write_onnx(checkpoint, target, model=model)

    return write


def findings(beside: OwnVectors, file: Path) -> list[Finding]:
    held = list(beside.hold(read_onnx(file, file.parent), "model.onnx"))
    return list(findings_of(held, "FOLDER"))


SAME: dict[str, Write] = {
    "states": as_it_is,
    "without segments": written(inputs=(IDS, MASK)),
    "with positions": written(inputs=(IDS, MASK, SEGMENTS, POSITIONS)),
    "states and a vector": written(lambda one: {"token_embeddings": states, "sentence_embedding": pooled(one)}),
    "a vector": written(lambda one: {"sentence_embedding": pooled(one)}),
    "a pooler's output beside the states": written(
        lambda one: {"last_hidden_state": states, "pooler_output": pooled(one, "cls")}
    ),
    "a batch of one": written(size=(1, None)),
    "a batch of four, 64 tokens": written(size=(4, 64)),
    "weights in another file": lambda _, exported, target: external_onnx(exported, target),
    "half precision": lambda _, exported, target: half_onnx(exported, target),
}


@pytest.mark.parametrize("name", mostly_slow(SAME, 3))
def test_the_same_function_is_found_whatever_its_form(
    name: str, checkpoint: Checkpoint, exported: Path, beside: OwnVectors, tmp_path: Path
) -> None:
    found = findings(beside, SAME[name](checkpoint, exported, tmp_path / "model.onnx"))
    assert [finding.level for finding in found] == ["ok"], found
    assert found[0].value is not None
    assert found[0].value < (1e-4 if name == "half precision" else 1e-9)


ANOTHER: dict[str, tuple[Write, str]] = {
    "an older revision": (older(0.1), "weights are of another revision: 25 of 25 tensors"),
    "an older revision, hardly": (older(0.003), "weights are of another revision"),
    "an older revision in 8 bits": (rounded(older(0.1)), "weights are of another revision"),
    "an older revision in 8 bits, hardly": (rounded(older(0.003)), "weights are of another revision"),
    "cls pooling": (written(lambda one: {"sentence_embedding": pooled(one, "cls")}), "It takes cls instead of mean"),
    "cls pooling in 8 bits": (
        rounded(written(lambda one: {"sentence_embedding": pooled(one, "cls")})),
        "It takes cls instead of mean",
    ),
    "max pooling beside the states": (
        written(lambda one: {"token_embeddings": states, "sentence_embedding": pooled(one, "max")}),
        "model.onnx (sentence_embedding) (float32, pytorch",
    ),
    "a pooler's output alone": (written(lambda one: {"pooler_output": pooled(one, "cls")}), "cls instead of mean"),
    "without Normalize": (
        written(lambda one: {"sentence_embedding": pooled(one, is_normalised=False)}),
        "It skips Normalize",
    ),
    "without Normalize in 8 bits": (
        rounded(written(lambda one: {"sentence_embedding": pooled(one, is_normalised=False)})),
        "other lengths: a Normalize was lost",
    ),
    "half of the limit": (written(size=(None, 32)), "takes texts of at most 32 tokens"),
    "padding is read": (written(attends_to_padding=True), "another vector in a batch than alone"),
    "other numbers of the same weights": (
        written(lambda one: {"last_hidden_state": lambda X, mask: X.flip(-1)}),
        "Its weights are the checkpoint's: it computes something else",
    ),
    "other dimensions": (
        written(lambda one: {"sentence_embedding": lambda X, mask: pooled(one)(X, mask)[:, :16]}),
        "its vectors have 16 dimensions, the checkpoint's 32",
    ),
}


@pytest.mark.parametrize("name", mostly_slow(ANOTHER, 4))
def test_another_function_is_a_problem_with_its_reason(
    name: str, checkpoint: Checkpoint, exported: Path, beside: OwnVectors, tmp_path: Path
) -> None:
    write, reason = ANOTHER[name]
    problems = [
        finding
        for finding in findings(beside, write(checkpoint, exported, tmp_path / "model.onnx"))
        if finding.level == "problem"
    ]
    assert len(problems) == 1, problems
    assert reason in problems[0].sentence


@pytest.mark.parametrize("how", [{}, {"per_channel": True}, {"reduce_range": True}], ids=str)
def test_a_quantised_file_is_held_against_what_its_rounding_does(
    how: dict[str, bool], exported: Path, beside: OwnVectors, tmp_path: Path
) -> None:
    file = quantised_onnx(exported, tmp_path / "model.onnx", **how)
    [held] = beside.hold(read_onnx(file, tmp_path), "model.onnx")
    [finding] = findings_of([held], "FOLDER")
    assert finding.level != "problem"
    assert (
        "(int8, onnx.quantize 0.1.0) differs from the weights as its precision rounds: 1 − cosine" in finding.sentence
    )
    assert "ten nearest" in finding.sentence
    assert held.noise is not None
    # What was made in torch is what the file does.
    ratios = [kind.median / noise for kind, noise in zip(held.kinds, held.noise, strict=True)]
    assert 0.3 < sorted(ratios)[len(ratios) // 2] < 2
    # The weights were rounded for that and are what they were.
    assert held.weights.are_the_same
