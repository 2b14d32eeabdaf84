"""One machine stands for several: what compares vectors, under the instruction sets of other processors.

torch, oneDNN and MKL choose their kernels when torch is imported, so each set needs a process of its own. Of what they
can be told, these are the settings that change what comes out (``DNNL_DEFAULT_FPMATH_MODE`` and
``MKL_ENABLE_INSTRUCTIONS`` change nothing in torch 2.13 on a processor with AVX512): oneDNN bounds bfloat16's products
and float32's activations, ATen sums, softmax, norms and attention, MKL float32's products.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "this processor": {},
    "oneDNN without AVX512 and bfloat16": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "AVX512 without bfloat16": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    "AVX2 throughout": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
    "no vector units": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"},
    "MKL's kernels for any processor": {"MKL_CBWR": "COMPATIBLE"},
}
# A few seconds each, all on tiny models: verdicts that follow from vectors in float32 and in half precision, and their
# words.
TESTS = (
    "tests/checking/test_check_told.py",
    "tests/passport/test_passport_told.py",
    "tests/parity/test_parity_told.py",
    "tests/parity/test_rounding.py",
    "tests/parity/test_half_precision_servers.py",
    "tests/parity/test_parity_report.py::test_a_faithful_server_is_the_same_function",
    "tests/passport/test_passport_verify.py::test_half_precision_is_the_same_function_with_a_note",
    "tests/passport/test_passport_verify.py::test_another_batch_size_and_the_checkpoint_itself_pass",
    "tests/passport/test_passport_verify.py::test_what_is_wrong_in_batches_only",
    "tests/integrity/test_function.py",
    "tests/sticky/test_inspect.py::test_figures_are_those_of_the_validation",
    "tests/checkpoint/test_precision.py",
)
COMPUTED = """
import hashlib, torch
draw = torch.Generator().manual_seed(0)
found = []
for dtype in (torch.float32, torch.bfloat16):
    states, square = (torch.randn(shape, generator=draw).to(dtype) for shape in ((64, 384), (384, 384)))
    found += [torch.nn.functional.gelu(torch.nn.functional.linear(states, square)), states.softmax(-1)]
print(hashlib.md5(b"".join(one.float().numpy().tobytes() for one in found)).hexdigest())
"""


def here(arguments: list[str], setting: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", **setting},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_verdicts_do_not_depend_on_the_processor(name: str) -> None:
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not slow"]
    done = here(["-m", "pytest", *options, *TESTS], SETTINGS[name])
    assert done.returncode == 0, done.stdout[-4_000:]
    assert "passed" in done.stdout


@pytest.mark.slow
def test_the_settings_change_what_is_computed() -> None:
    """Of an x86 processor with AVX2 or more, at least two of them do; elsewhere there is nothing to set."""
    import torch

    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("the processor has no instruction sets to leave out")
    found = {name: here(["-c", COMPUTED], setting).stdout for name, setting in SETTINGS.items()}
    assert len(set(found.values())) >= 3, found
