"""A tiny checkpoint whose biases count."""

from __future__ import annotations

import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint


@pytest.fixture(scope="package")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    import torch

    checkpoint = load_checkpoint(str(tiny_bert(tmp_path_factory.mktemp("layers") / "bert")), LoadOptions(device="cpu"))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in checkpoint.model.encoder.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return checkpoint
