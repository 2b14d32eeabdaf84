"""Real ONNX files held against the weights that they were exported from: which are the same function, and why not."""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_hub import FakeHub
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
from real_tokenizers import packaged_checkpoint
from some_rows import mostly_slow

import embaudit
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.checkpoint.onnx_file import read_onnx
from embaudit.declared.rule import Finding
from embaudit.embedders.checkpoint import onnx_encoder
from embaudit.questions.exports.files import export_findings
from embaudit.questions.exports.findings import findings_of
from embaudit.questions.exports.held import OwnVectors
from embaudit.questions.parity.parity import ParityReport
from embaudit.words.errors import CheckpointError, UsageError

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


@pytest.mark.parametrize("name", mostly_slow(ANOTHER, 2))
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


# ---- ``embaudit parity --with-backend onnx``: real exports, with and without weights beside them, and on a hub ----


def compared(folder: Path, other: Path | str, **how: Any) -> ParityReport:
    return embaudit.parity(folder, other, backend="onnx", device="cpu", **how)


@pytest.mark.parametrize("has_weights", mostly_slow([True, False], 1), ids=["beside weights", "alone"])
@pytest.mark.parametrize("is_external", mostly_slow([False, True], 1), ids=["one file", "weights in another"])
def test_a_real_export_is_the_same_function(
    has_weights: bool, is_external: bool, folder: Path, exported: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    (other / "onnx").mkdir()
    if is_external:
        external_onnx(exported, other / "onnx" / "model.onnx")
    else:
        shutil.copy(exported, other / "onnx" / "model.onnx")
    if not has_weights:
        (other / "model.safetensors").unlink()
    report = compared(folder, other)
    assert report.line == "The same function."
    assert max(kind.worst for kind in report.kinds) < 1e-9


def test_a_file_can_be_named_and_what_it_does_otherwise_is_explained(
    folder: Path, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    file = write_onnx(checkpoint, other / "onnx" / "pooled.onnx", {"sentence_embedding": pooled(checkpoint, "cls")})
    report = compared(folder, file)
    assert report.verdict == "another function"
    assert report.explanation is not None
    assert report.explanation.sentences == ("takes cls instead of mean pooling",)
    assert report.explanation.is_complete


def test_why_a_text_has_no_vector_is_said(folder: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    write_onnx(checkpoint, other / "model.onnx", size=(None, 32))
    report = compared(folder, other, with_explanation=False)
    assert report.verdict == "another function"
    assert "the file takes 32 tokens, and it has 36" in " ".join(finding.sentence for finding in report.findings)
    reasons = {reason for kind in report.kinds for reason in kind.failures.values()}
    assert any("the file takes 32 tokens, and it has 64" in reason for reason in reasons)


def test_a_file_that_is_none_or_one_of_several_is_asked_for(folder: Path, exported: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    with pytest.raises(UsageError, match="has no ONNX file"):
        compared(folder, other)
    for name in ("model_O3.onnx", "model_O4.onnx"):
        shutil.copy(exported, other / name)
    with pytest.raises(UsageError, match=r"2 ONNX files, and none is model.onnx: model_O3.onnx, model_O4.onnx"):
        compared(folder, other)
    assert onnx_encoder(str(other / "model_O4.onnx"), LoadOptions()).checkpoint.resolved.folder == other
    (other / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json"):
        compared(folder, other / "model_O4.onnx")


def test_without_onnxruntime_it_says_what_to_install(
    folder: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    shutil.copy(exported, other / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match="onnxruntime, which runs ONNX files, is not installed") as raised:
        compared(folder, other)
    assert raised.value.next_step == "pip install 'embaudit[onnx]'"


def test_a_file_on_the_hub_is_downloaded_with_its_weights(
    hub: FakeHub, folder: Path, exported: Path, tmp_path: Path
) -> None:
    repository = Path(shutil.copytree(folder, tmp_path / "repository"))
    external_onnx(exported, repository / "model.onnx")
    (repository / "model_O3.onnx").write_bytes(b"not asked for")
    hub.repositories["someone/tiny"] = repository
    encoder = onnx_encoder("someone/tiny", LoadOptions(device="cpu"))
    assert encoder.rows(["gold"]).shape == (1, 32)
    assert not any("model_O3" in request for request in hub.requests)


@pytest.mark.slow
def test_exports_of_the_packaged_checkpoint(tmp_path: Path) -> None:
    place = Path(shutil.copytree(packaged_checkpoint(), tmp_path / "minilm"))
    checkpoint = load_checkpoint(str(place), LoadOptions(device="cpu"))
    file = write_onnx(checkpoint, place / "onnx" / "model.onnx")
    quantised_onnx(file, place / "onnx" / "model_quantized.onnx")
    figures: dict[str, Any] = {}
    found = {finding.name: finding for finding in export_findings(checkpoint, figures)}
    assert found.keys() == {"export_same", "export_rounded"}
    # 8 bits cost a search of this checkpoint a tenth of its neighbours or so, and its vectors .02 to .03.
    rounded = figures["exports"][1]
    assert 0.005 < rounded["median"] < 0.1
    assert 0.7 < rounded["overlap"] < 1
    assert compared(place, file, with_explanation=False).line == "The same function."
