"""``embaudit parity --with-backend onnx``: real exports, with and without weights beside them, and on a hub."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from model_hub import ModelHub
from onnx_files import external_onnx, pooled, quantised_onnx, write_onnx
from real_tokenizers import packaged_checkpoint
from some_rows import mostly_slow

import embaudit
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import onnx_encoder
from embaudit.questions.exports.files import export_findings
from embaudit.questions.parity.parity import ParityReport
from embaudit.words.errors import CheckpointError, UsageError


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
    hub: ModelHub, folder: Path, exported: Path, tmp_path: Path
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
