"""A tiny checkpoint whose norms and biases say whose they are, its own vectors, and its transformer as ONNX."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from onnx_files import write_onnx
from safetensors.torch import load_file, save_file
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.questions.exports.held import OwnVectors

pytest.importorskip("onnxruntime")


def trained(folder: Path, seed: int = 1) -> Path:
    """The folder, with gains and biases as training leaves them."""
    file = folder / "model.safetensors"
    chance = torch.Generator().manual_seed(seed)
    found = load_file(file)
    for tensor in found.values():
        if tensor.dim() == 1:
            tensor += 0.1 * torch.randn(tensor.shape, generator=chance)
    save_file(found, file, metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tiny_bert(tmp_path_factory.mktemp("exports") / "tiny"))


@pytest.fixture(scope="session")
def checkpoint(folder: Path) -> Checkpoint:
    return load_checkpoint(str(folder), LoadOptions(device="cpu"))


@pytest.fixture(scope="session")
def beside(checkpoint: Checkpoint) -> OwnVectors:
    return OwnVectors(checkpoint)


@pytest.fixture(scope="session")
def exported(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """States of the tokens, of any batch and length."""
    return write_onnx(checkpoint, tmp_path_factory.mktemp("exported") / "model.onnx")
