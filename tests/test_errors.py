"""Which errors are the machine's, and what is said of them."""

from __future__ import annotations

import pytest
import torch

from embaudit.words.errors import machine_failure


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "The memory ran out"),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            "The memory ran out",
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "The memory ran out"),
        (MemoryError(), "The memory ran out"),
        (torch.AcceleratorError("CUDA error: unspecified launch failure"), "The device failed: CUDA error"),
        (RuntimeError("CUDA error: no CUDA-capable device is detected"), "The device failed: CUDA error"),
        (RuntimeError("HIP error: the operation cannot be performed"), "The device failed: HIP error"),
        # An id beyond the table of embeddings is the checkpoint's fault.
        (torch.AcceleratorError("CUDA error: device-side assert triggered"), ""),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ""),
        (ValueError("CUDA error: in somebody's words"), ""),
    ],
)
def test_memory_and_devices_fail_in_a_paragraph_of_their_own(error: Exception, said: str) -> None:
    outer = RuntimeError("a task failed")
    outer.__cause__ = error
    for one in (error, outer):
        failure = machine_failure(one)
        assert (failure is None) == (not said)
        if failure is not None:
            assert failure.happened.startswith(said)
            assert "run the same command again" in failure.next_step
