"""What ``scan_dtype = "auto"`` measures, products of a model's widths in two precisions; and what figures would become.

u, and what a check says of quality: its scores and readings of the embedded sample.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.measured import Measured, as_scanned
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.load import choose_device
from embaudit.checkpoint.precision import CLEARLY_FASTER, half_precision, product_seconds
from embaudit.checkpoint.vocabulary import read_vocabulary
from embaudit.measures.quality.material import sample_material
from embaudit.measures.quality.quality import quality_findings
from embaudit.measures.sticky.baseline import sum_entries

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
    yield from in_half("packaged:all-MiniLM-L6-v2", half)
    exact = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    scan = as_scanned(exact)
    if scan is exact:
        return
    entries = [
        one for one in read_vocabulary(exact.checkpoint.tokenizer, exact.checkpoint.vocabulary_size) if one.token
    ]
    ids, tokens = [one.token_id for one in entries], [one.token for one in entries]
    means = (sum_entries(one, ids, tokens)[0] / len(ids) for one in (exact, scan))
    u, half_u = (float(mean @ mean) for mean in means)
    yield Measured(
        "u of all-MiniLM-L6-v2 in float32; as it would be in the scan's precision",
        f"{u:.5f}; {half_u:.5f}",
        "≤ 1e-4 apart",
    )


def in_half(reference: str, half: str, share: float = 1.0) -> Iterator[Measured]:
    """How far scores and readings of a share of the sample move in half precision, and how much faster they are.

    The most that a figure moves, in widths of its 95 % interval in float32.
    """
    material = sample_material().part(share)
    figures, seconds = [], []
    for dtype in ("float32", half):
        options = LoadOptions(dtype=dtype)
        encoder = Encoder(load_checkpoint(reference, options, is_kept=False, may_stay_in_files=True))
        start = time.process_time()
        figures.append(quality_findings(encoder, material).figures)
        seconds.append(time.process_time() - start)
    exact, other = figures
    moved = dict(_moved(exact, other))
    most = max(moved, key=lambda name: moved[name])
    yield Measured(
        f"scores and readings of {reference} in {half}: most that one of {len(moved)} figures moves, in its intervals",
        f"{moved[most]:.3f} ({most}); {seconds[0] / seconds[1]:.1f}× as fast",
        "≤ .1",
    )


def _moved(exact: Any, other: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """By name, how far each figure that has an interval is from the other's, in widths of that interval."""
    if isinstance(exact, dict) and {"value", "low", "high"} <= exact.keys():
        if None not in (exact["value"], exact["low"], exact["high"]) and exact["high"] > exact["low"]:
            yield name, abs(exact["value"] - other["value"]) / (exact["high"] - exact["low"])
        return
    parts = exact.items() if isinstance(exact, dict) else enumerate(exact) if isinstance(exact, list) else ()
    for key, part in parts:
        called = part.get("name", key) if isinstance(part, dict) else key
        yield from _moved(part, other[key], f"{name} {called}".strip())
