"""Chooses half precision or float32 for work that only ranks, by measuring which multiplies faster here.

A CPU with AVX512-BF16 or AMX multiplies two to four times as fast in bfloat16 as in float32, a GPU two to sixteen
times; a CPU without such units takes three to ten times as long. Processor flags do not tell how fast it is, but a few
products in the model's shapes do, in milliseconds.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from embaudit.checkpoint.encoder import TOKENS_PER_BATCH
from embaudit.checkpoint.files import read_object
from embaudit.system.installed import content_key

# In the gap between machines with half-precision units (2 and more) and without (0.3 and less), so that a busy moment
# cannot change the result. A forward pass is more than products: a smaller speedup would hardly pay for loading a
# second model and comparing its ranks.
CLEARLY_FASTER = 1.5
# Long enough to be timed, short enough to fit between other processes.
MIN_SECONDS = 0.005
FIRST_ROWS = 128
REPEATS = 5
# Config names of the widths: BERT and Llama, T5, GPT-2, DistilBERT.
HIDDEN = ("hidden_size", "d_model", "n_embd", "dim")
INTERMEDIATE = ("intermediate_size", "d_ff", "n_inner", "hidden_dim")
# A usual text of a search, and the usual width of an attention head.
TEXT_TOKENS, HEAD_WIDTH = 32, 64
# BERT base: the ratio of the two precisions hardly depends on the width.
USUAL_WIDTH = 768


@dataclass(frozen=True)
class ProductSeconds:
    """Seconds for the products (rows, hidden) × (hidden, hidden) and × (hidden, intermediate)."""

    float32: float
    half: float
    rows: int

    @property
    def speedup(self) -> float:
        """Speedup of half precision; below 1 if it is slower."""
        return self.float32 / self.half


def faster_precision(half: str, speedup: float) -> str:
    """``half`` if it is clearly faster, otherwise float32."""
    return half if speedup >= CLEARLY_FASTER else "float32"


def widths_of(folder: Path) -> tuple[int, int]:
    """Hidden and intermediate width of a transformer from its config.json, without importing transformers.

    Raises:
        CheckpointError: if there is no such file, or it is broken.
    """
    config = read_object(folder / "config.json")
    nested = config.get("text_config")
    if isinstance(nested, dict):  # of a multimodal model
        config = {**config, **nested}
    hidden = _first(config, HIDDEN) or USUAL_WIDTH
    return hidden, _first(config, INTERMEDIATE) or 4 * hidden


def half_precision(device: str) -> str | None:
    """The half precision to measure on a device; None if not supported here (Apple's MPS)."""
    if device == "cpu":
        return "bfloat16"
    if not device.startswith("cuda"):
        return None
    import torch

    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


def machine(device: str) -> dict[str, str]:
    """What the ratio of the two precisions depends on in addition to the shapes: the processor and torch.

    Machines of one kind give the same result; the number of threads is not included.
    """
    if device.startswith("cuda"):
        import torch

        return {"processor": torch.cuda.get_device_name(device), "torch": torch.__version__}
    return {
        "processor": platform.machine(),
        # Virtual machines can hide features of a processor under the same name, and so can these variables.
        "features": content_key(cpu=_cpu_features(), hidden={name: os.environ.get(name) for name in HIDING}),
        # Where all is staged, this is all that is asked of torch: importing it takes 1.5 s.
        "torch": version("torch"),
    }


def product_seconds(
    device: str, half: str, widths: tuple[int, int], clock: Callable[[], float] = time.perf_counter
) -> ProductSeconds:
    """Time products in a model's shapes in float32 and half precision, alternating, on one CPU thread.

    The number of rows is that of an encoder batch or less, so that everything takes milliseconds if half precision is
    fast and at most a second if not.
    """
    import torch

    def timed(dtype: str, rows: int) -> Callable[[], float]:
        return _products(device, dtype, widths, rows, clock)

    most_rows = TOKENS_PER_BATCH[device.split(":")[0]]
    rows = FIRST_ROWS
    with torch.inference_mode(), _one_thread():
        while rows < most_rows and timed("float32", rows)() < MIN_SECONDS:
            rows *= 2
        runs = [timed(dtype, rows) for dtype in ("float32", half)]
        # Alternate, and take the fastest of each: other load can only add time.
        seconds = [[run() for run in runs] for _ in range(REPEATS)]
    full, halved = (min(column) for column in zip(*seconds, strict=True))
    return ProductSeconds(full, halved, rows)


def operations_per_second(device: str, dtype: str, widths: tuple[int, int]) -> float:
    """Throughput of a device on an encoder layer in one precision, with the usual threads and other load.

    The fastest of a few: a layer outlasts what a busy system takes away for a moment, such as a server that has just
    started, and not what runs beside it for good.

    Attention, norms and activation included: products alone reach a third more of them. Operations are counted as
    ``embaudit.measures.measure`` counts them, 24 d² + 4nd for a token of n.
    """
    import torch

    hidden, intermediate = widths
    texts = TOKENS_PER_BATCH[device.split(":")[0]] // TEXT_TOKENS
    heads = hidden // HEAD_WIDTH if hidden % HEAD_WIDTH == 0 else 1
    # The values do not affect the time; random ones would advance the random state.
    states, square, wide, back = (
        torch.full(shape, 0.01, dtype=getattr(torch, dtype), device=device)
        for shape in (
            (texts, TEXT_TOKENS, hidden),
            (hidden, hidden),
            (intermediate, hidden),
            (hidden, intermediate),
        )
    )

    def layer() -> float:
        _wait_for(device)
        since = time.perf_counter()
        linear, norm = torch.nn.functional.linear, torch.nn.functional.layer_norm
        q, k, v = (linear(states, square).view(texts, TEXT_TOKENS, heads, -1).transpose(1, 2) for _ in range(3))
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        mixed = norm(states + linear(attended.transpose(1, 2).reshape(states.shape), square), (hidden,))
        norm(mixed + linear(torch.nn.functional.gelu(linear(mixed, wide)), back), (hidden,))
        _wait_for(device)
        return time.perf_counter() - since

    with torch.inference_mode():
        layer()  # warm up: kernels are selected and memory is allocated
        seconds = min(layer() for _ in range(REPEATS))
    per_token = 24 * hidden**2 + 4 * TEXT_TOKENS * hidden
    return texts * TEXT_TOKENS * per_token / seconds


def _products(
    device: str, dtype: str, widths: tuple[int, int], rows: int, clock: Callable[[], float]
) -> Callable[[], float]:
    """A function that multiplies once and returns the time it took."""
    import torch

    hidden, intermediate = widths
    # The values do not affect the time; random ones would advance the random state.
    states, square, wide = (
        torch.full(shape, 0.5, dtype=getattr(torch, dtype), device=device)
        for shape in ((rows, hidden), (hidden, hidden), (intermediate, hidden))
    )

    def run() -> float:
        _wait_for(device)
        since = clock()
        torch.nn.functional.linear(states, square)
        torch.nn.functional.linear(states, wide)
        _wait_for(device)
        return clock() - since

    run()  # warm up: kernels are selected and memory is allocated
    return run


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread within the block: on a busy machine, threads mostly wait for each other in either precision."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _wait_for(device: str) -> None:
    """Wait for a GPU, whose operations are asynchronous."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize(device)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    found = [config[name] for name in names if isinstance(config.get(name), int) and config[name] > 0]
    return found[0] if found else None


# How high a user lets the instructions of torch's own kernels and of oneDNN's go.
HIDING = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")


def _cpu_features() -> list[str]:
    """Model and instruction sets of the first processor, from /proc/cpuinfo."""
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [line for line in lines if line.partition(":")[0].strip() in wanted]
