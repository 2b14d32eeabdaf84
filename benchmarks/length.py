"""σ_a by a Krylov space against full SVDs in one run, and the length measure on 500 texts at the standard settings.

Work a head at n = 512: a full SVD's values take about 8n³/3 operations (0.36 GFLOP) after a reduction that runs far
below a product's rate; six Krylov steps of two columns 6·8·n² (13 MFLOP), and 12 readings of 1 MB.
"""

from __future__ import annotations

import statistics
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.measured import Measured
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.checkpoint.anatomy import anatomy_of, watching
from embaudit.corpora.load import load_corpus
from embaudit.measures.layers.terms import largest_singular_values
from embaudit.measures.length import LengthSettings
from embaudit.measures.length.curve import control_curves, limits_of, natural_curve
from embaudit.measures.length.heads import head_lengths
from embaudit.measures.length.spans import length_bins, longest_common, spans_of

REVIEWS = Path(__file__).resolve().parents[2] / "shared/data/classification/movie_reviews.zip"
TEXTS = 500
HEADS = 144
REPEATS = 3


def run() -> Iterator[Measured]:
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    yield _against_svd(encoder)
    if REVIEWS.is_file():
        yield _whole(encoder)


def _against_svd(encoder: Encoder) -> Measured:
    """Real attention: two long texts, 72 heads each."""
    checkpoint = encoder.checkpoint
    contents = encoder.own_ids([text.text for text in load_corpus("longdocs").texts])
    found: list[torch.Tensor] = []
    with watching(anatomy_of(checkpoint.model)) as watch:
        for ids in contents[:2]:
            whole = torch.tensor([checkpoint.with_special_tokens(ids[:510])])
            watch(whole, lambda state: found.append(state.attention[0].clone()))
    A = torch.cat(found)[:HEADS]
    centred = A - A.mean(dim=1, keepdim=True)
    ratios, quick, slow = [], 0.0, 0.0
    for _ in range(REPEATS):
        quick, sigma = _timed(lambda: largest_singular_values(A))
        slow, values = _timed(lambda: torch.linalg.svdvals(centred)[:, 0])
        ratios.append(slow / quick)
    error = float(((sigma - values.double()).abs() / values.double()).max())
    return Measured(
        f"σ_a of {len(A)} heads, n = {A.shape[-1]}, float32: Krylov against full SVD",
        f"{quick:.2f} s against {slow:.1f} s: {statistics.median(ratios):.0f}× ({min(ratios):.0f} to "
        f"{max(ratios):.0f} in {REPEATS} repeats); largest relative difference {error:.0e}",
        "≥ 15×, ≤ 1e-3",
    )


def _whole(encoder: Encoder) -> Measured:
    settings = LengthSettings(texts=TEXTS)
    with zipfile.ZipFile(REVIEWS) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        chosen = [names[place] for place in np.linspace(0, len(names) - 1, TEXTS).astype(int)]
        texts = [archive.read(name).decode("utf-8", "replace") for name in chosen]
    started, cpu = time.perf_counter(), time.process_time()
    contents = encoder.own_ids(texts)
    read = limits_of(encoder, settings.longest).read
    bins = length_bins(read, settings.bin_width)
    natural_curve(encoder, contents, bins)
    control_curves(encoder, contents, bins, most_texts=settings.control_texts, window=settings.window, seed=0)
    curve = time.perf_counter() - started
    asked = [min(length, read) for length in settings.sigma_lengths]
    longest = longest_common([len(ids) for ids in contents], asked)
    assert longest is not None
    spans = spans_of(contents, longest, settings.sigma_texts, 0)
    head_lengths(encoder, spans, [length for length in asked if length <= longest])
    seconds = time.perf_counter() - started
    return Measured(
        f"length, {TEXTS} movie reviews: curve with controls on {settings.control_texts}, σ_a of 72 heads at "
        f"{len(asked)} lengths on {len(spans)}",
        f"{seconds:.0f} s ({curve:.0f} s of it the curve; {time.process_time() - cpu:.0f} s of processor time)",
        "≤ 180 s on 2 cores",
    )


def _timed(work: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
