"""Half precision or float32: what is decided by which timings, and that the timings are real."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from embaudit.checkpoint import precision
from embaudit.checkpoint.encoder import TOKENS_PER_BATCH
from embaudit.checkpoint.precision import (
    MIN_SECONDS,
    faster_precision,
    half_precision,
    machine,
    product_seconds,
    widths_of,
)
from embaudit.words.errors import CheckpointError


class MadeUpMachine:
    """Products take as long as it says, and its clock goes on by that and by nothing else."""

    def __init__(self, seconds_a_row: float, speedup: float) -> None:
        self.now = 0.0
        self.seconds_a_row, self.speedup = seconds_a_row, speedup
        self.products: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
        self.interrupted: set[int] = set()
        self.threads: set[int] = set()

    def linear(self, states: Any, weight: Any) -> None:
        import torch

        self.threads.add(torch.get_num_threads())
        dtype = str(states.dtype).removeprefix("torch.")
        self.products.append((dtype, tuple(states.shape), tuple(weight.shape)))
        seconds = len(states) * self.seconds_a_row / (1 if dtype == "float32" else self.speedup)
        self.now += seconds + (60 if len(self.products) in self.interrupted else 0)

    def clock(self) -> float:
        return self.now


def on(made_up: MadeUpMachine, monkeypatch: pytest.MonkeyPatch) -> MadeUpMachine:
    import torch

    monkeypatch.setattr(torch.nn.functional, "linear", made_up.linear)
    return made_up


@pytest.mark.parametrize("speedup", [4.0, 0.15])
def test_the_ratio_is_that_of_the_machine(speedup: float, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = on(MadeUpMachine(1e-5, speedup), monkeypatch)
    found = product_seconds("cpu", "bfloat16", (384, 1536), made_up.clock)
    assert found.speedup == pytest.approx(speedup)
    assert found.float32 >= MIN_SECONDS
    shapes = {(dtype, weight) for dtype, _, weight in made_up.products}
    assert shapes == {(dtype, w) for dtype in ("float32", "bfloat16") for w in ((384, 384), (1536, 384))}
    assert {states[0] for dtype, states, _ in made_up.products if dtype == "bfloat16"} == {found.rows}


def test_moments_in_which_the_machine_is_busy_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = on(MadeUpMachine(1e-3, 4.0), monkeypatch)
    # Products of two of the repeats, one of each precision.
    made_up.interrupted = {9, 15}
    assert product_seconds("cpu", "bfloat16", (32, 64), made_up.clock).speedup == pytest.approx(4.0)
    assert made_up.now > 120


@pytest.mark.parametrize(("seconds_a_row", "rows"), [(1e-9, TOKENS_PER_BATCH["cpu"]), (1.0, precision.FIRST_ROWS)])
def test_rows_are_no_more_than_a_batch_and_no_more_than_need_be(
    seconds_a_row: float, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = on(MadeUpMachine(seconds_a_row, 2.0), monkeypatch)
    assert product_seconds("cpu", "bfloat16", (8, 8), made_up.clock).rows == rows


@pytest.mark.parametrize(
    ("speedup", "dtype"),
    [(4.1, "bfloat16"), (1.51, "bfloat16"), (1.5, "bfloat16"), (1.49, "float32"), (1.0, "float32"), (0.15, "float32")],
)
def test_half_precision_is_taken_where_it_is_clearly_faster(speedup: float, dtype: str) -> None:
    assert faster_precision("bfloat16", speedup) == dtype


def test_one_thread_measures_and_torch_keeps_those_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several would wait for each other on a busy machine. What is set meanwhile must not stay, even after an error."""
    import torch

    made_up = on(MadeUpMachine(1e-3, 2.0), monkeypatch)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        product_seconds("cpu", "bfloat16", (8, 8), made_up.clock)
        assert made_up.threads == {1}
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            product_seconds("cpu", "bfloat16", (8, 8), lambda: 1 / 0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_products_are_really_timed_and_nothing_else_changes() -> None:
    import torch

    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    found = product_seconds("cpu", "bfloat16", (32, 64))
    for seconds in (found.float32, found.half, found.speedup):
        assert math.isfinite(seconds)
        assert seconds > 0
    assert precision.FIRST_ROWS <= found.rows <= TOKENS_PER_BATCH["cpu"]
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_gpu_is_asked_which_half_precision_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    for is_supported, dtype in ((True, "bfloat16"), (False, "float16")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, found=is_supported: found)
        assert half_precision("cuda:1") == dtype
    assert half_precision("cpu") == "bfloat16"
    assert half_precision("mps") is None, "float32, unmeasured"


def test_a_machine_is_the_same_every_time_and_another_with_other_units(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    # Whoever runs this may hide units already, as tests/parity/test_instruction_sets.py does.
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    here = machine("cpu")
    assert machine("cpu") == here == json.loads(json.dumps(here))
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    hidden = machine("cpu")
    assert hidden != here
    monkeypatch.setattr(precision, "_cpu_features", lambda: ["flags : fpu amx_bf16"])
    assert machine("cpu") not in (here, hidden)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "made up")
    assert machine("cuda:0")["processor"] == "made up"


@pytest.mark.parametrize(
    ("config", "widths"),
    [
        pytest.param({"hidden_size": 384, "intermediate_size": 1536}, (384, 1536), id="bert"),
        pytest.param({"d_model": 512, "d_ff": 2048, "num_layers": 6}, (512, 2048), id="t5"),
        pytest.param({"n_embd": 768, "n_inner": None}, (768, 3072), id="gpt2"),
        pytest.param({"dim": 768, "hidden_dim": 3000}, (768, 3000), id="distilbert"),
        pytest.param({"text_config": {"hidden_size": 64, "intermediate_size": 99}}, (64, 99), id="images too"),
        pytest.param({"hidden_size": "wide"}, (768, 3072), id="of no known name"),
    ],
)
def test_widths_are_read_from_the_config(config: dict[str, Any], widths: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert widths_of(tmp_path) == widths


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        widths_of(tmp_path)
