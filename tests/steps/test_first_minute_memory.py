"""A device on which the audit's precision fits, and float32 does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import tiny_bert

from embaudit.measures.integrity.work import checkpoint_integrity
from embaudit.measures.quality.work import checkpoint_quality
from embaudit.steps.results import CheckpointSpec, checkpoint_of
from embaudit.words.errors import NotMeasurable

# On the processor and on Apple's devices, torch has no class of its own for it.
LACKS = [
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("MPS backend out of memory (MPS allocated: 9.01 GB)"),
    MemoryError(),
]


@pytest.mark.parametrize("lack", LACKS, ids=["CUDA", "CPU", "MPS", "Python"])
def test_what_does_not_fit_is_not_measured_and_leaves_nothing(
    lack: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tiny_bert(tmp_path / "tiny"))

    def too_small(*_: object, **__: object) -> None:
        raise lack

    monkeypatch.setattr("embaudit.steps.results.load_checkpoint", too_small)
    checkpoint_of.cache_clear()
    spec = CheckpointSpec(reference=folder, checkpoint_id="c1", device="cpu", dtype="float32")
    for name, step, arguments in (
        ("integrity", checkpoint_integrity, (spec,)),
        ("quality", checkpoint_quality, (spec, [], False, False)),
    ):
        with pytest.raises(NotMeasurable, match=f"too small for {name} in float32"):
            step.compute(str(tmp_path / "staging"), *arguments)  # type: ignore[attr-defined]
    assert not list((tmp_path / "staging").rglob("*.parquet")), "it is tried again on a larger device"
