"""What ``scan_dtype = "auto"`` measures, products of a model's widths in two precisions; and what u would become."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.measured import Measured, as_scanned
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.checkpoint.load import choose_device
from embaudit.checkpoint.precision import CLEARLY_FASTER, half_precision, product_seconds
from embaudit.measures.sticky.baseline import sum_entries
from embaudit.vocabulary.entries import read_vocabulary

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
