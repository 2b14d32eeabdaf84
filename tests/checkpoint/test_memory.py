"""Batches that do not fit: a process whose address space is limited, a GPU of which it may use a small part."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny import tiny_bert

from embaudit.checkpoint.memory import in_halves
from embaudit.words.errors import MeasureError, is_out_of_memory

# 4 096 texts in one batch take hundreds of megabytes more than there are; 16 at a time take less.
LIMITED = """
import json, resource, sys
import numpy as np
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint

device, folder = sys.argv[1:]
checkpoint = load_checkpoint(folder, LoadOptions(device=device))
ids = [[2, *np.random.default_rng(row).integers(5, 40, 60).tolist(), 3] for row in range(4096)]
small = Encoder(checkpoint, 1024).encode_ids(ids)
if device == "cpu":
    (size,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
    limit = size * 1024 + 120 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
else:
    import torch
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 60 * 2**20) / total)
encoder = Encoder(checkpoint, 4096 * 62)
large = encoder.encode_ids(ids)
difference = float(np.abs(large - small).max())
print(json.dumps({"difference": difference, "tokens": encoder.tokens_per_batch, "texts": encoder.texts}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_batch_that_does_not_fit_is_encoded_in_halves(device: str, tmp_path: Path) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    folder = tiny_bert(tmp_path / "tiny")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, device, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["difference"] < 1e-5
    assert found["tokens"] < 4096 * 62
    # What was encoded, not what was tried.
    assert found["texts"] == 4096


class Memory:
    """A forward pass that fits as many tokens as it is told."""

    def __init__(self, tokens: int, error: Exception) -> None:
        self.tokens, self.error = tokens, error
        self.passes: list[int] = []

    def __call__(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if ids.numel() > self.tokens:
            raise self.error
        self.passes.append(len(ids))
        return ids * mask


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
@pytest.mark.parametrize("fits", [1, 3, 64])
def test_rows_stay_in_order_and_each_is_run_once(rows: int, fits: int) -> None:
    memory, lowered = Memory(fits * 5, torch.OutOfMemoryError("CUDA out of memory.")), []
    ids = torch.arange(rows * 5).reshape(rows, 5)
    parts = list(in_halves(memory, ids, torch.ones_like(ids), lowered.append))
    assert torch.equal(torch.cat([part for _, part in parts]), ids)
    assert [row for place, _ in parts for row in range(place.start, place.stop)] == list(range(rows))
    assert sum(memory.passes) == rows
    assert bool(lowered) is (rows > fits)


def test_a_text_that_does_not_fit_is_named_by_its_length() -> None:
    ids = torch.ones((3, 512), dtype=torch.int64)
    with pytest.raises(MeasureError, match="one text of 512 tokens"):
        list(in_halves(Memory(511, torch.OutOfMemoryError("CUDA out of memory.")), ids, ids, lambda _: None))


def test_other_errors_are_left_alone() -> None:
    ids = torch.ones((4, 5), dtype=torch.int64)
    with pytest.raises(RuntimeError, match="device-side assert"):
        list(in_halves(Memory(0, RuntimeError("CUDA error: device-side assert triggered")), ids, ids, lambda _: None))


@pytest.mark.parametrize(
    ("error", "is_so"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
        (OSError(28, "No space left on device"), False),
    ],
)
def test_what_a_lack_of_memory_is(error: Exception, is_so: bool) -> None:
    assert is_out_of_memory(error) is is_so
