"""A line of the benchmark table, and the texts that benchmarks run on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.precision import faster_precision, half_precision, product_seconds, widths_of

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL_SENTENCES = REAL_DATA / "wikipedia" / "wiki1m_sample.txt"
SCIFACT = REAL_DATA / "retrieval" / "scifact"


@dataclass(frozen=True)
class Measured:
    what: str
    found: str
    target: str = ""


def sentences(count: int) -> tuple[list[str], str]:
    """So many sentences and where they come from: real Wikipedia where it lies beside the checkout, else the sample."""
    from embaudit.corpora.load import load_corpus

    if REAL_SENTENCES.is_file():
        return [text.text for text in load_corpus("wikipedia", str(REAL_SENTENCES), limit=count).texts], "Wikipedia"
    texts = [text.text for text in load_corpus("wikipedia").texts]
    texts += [side for pair in load_corpus("sts").pairs for side in (pair.first, pair.second)]
    texts += [part for text in load_corpus("longdocs").texts for part in re.split(r"(?<=\.)\s+", text.text)]
    return texts[:count], "the embedded sample"


def as_scanned(exact: Encoder) -> Encoder:
    """The encoder in the precision that an audit here would scan in; the same one where that is float32."""
    checkpoint = exact.checkpoint
    half = half_precision(checkpoint.device) or "float32"
    folder = checkpoint.resolved.folder / checkpoint.recipe.transformer_path
    speedup = product_seconds(checkpoint.device, half, widths_of(folder)).speedup
    dtype = faster_precision(half, speedup)
    if dtype == "float32":
        return exact
    return Encoder(load_checkpoint(checkpoint.resolved, LoadOptions(device=checkpoint.device, dtype=dtype)))
