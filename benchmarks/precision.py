"""What ``scan_dtype = "auto"`` measures: products of a model's widths in float32 and in half precision."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.measured import Measured
from embaudit.checkpoint.load import choose_device
from embaudit.checkpoint.precision import CLEARLY_FASTER, half_precision, product_seconds

REPEATS = 9
WIDTHS = {"all-MiniLM-L6-v2": (384, 1536), "BERT base": (768, 3072), "BERT large": (1024, 4096)}


def run() -> Iterator[Measured]:
    device = choose_device("auto")
    half = half_precision(device)
    if half is None:
        return
    for name, widths in WIDTHS.items():
        ratios = [product_seconds(device, half, widths).speedup for _ in range(REPEATS)]
        yield Measured(
            f"scan precision, {half} against float32 on {device}, widths of {name}",
            f"{statistics.median(ratios):.2f}× ({min(ratios):.2f}–{max(ratios):.2f}); taken from {CLEARLY_FASTER}× on",
        )
