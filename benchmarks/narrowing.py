"""How well one draw finds what fifteen find: the numbers behind the scan's design.

1 500 random tokens of all-MiniLM-L6-v2, all 15 draws; "crossed" compares an encode with every scoring s1, "matched"
only with its own partner.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measured import Measured
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora import load_corpus
from embaudit.measures.sticky.pairs import distinct_sentences, sample_pairs
from embaudit.measures.sticky.scan import ScanInputs, prepare_scan, scan_tokens, score_tokens
from embaudit.measures.sticky.scores import retention

TOKENS = 1_500
TOP = 30  # the 2 % that a shortlist holds
U = 0.19985


def run() -> Iterator[Measured]:
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    texts = [side for pair in load_corpus("sts").pairs for side in (pair.first, pair.second)]
    sentences = distinct_sentences(texts, 400, 0)
    pairs = sample_pairs(sentences, encoder.encode_texts(sentences), 15, 60, 0).scoring
    inputs = prepare_scan(encoder, pairs, U, copies=8, seed=0)
    ids = np.sort(np.random.default_rng(1).choice(np.arange(999, 30_522), TOKENS, replace=False))
    after = scan_tokens(encoder, inputs, ids, range(len(pairs)))
    matched, crossed = _reliability(inputs, after)
    yield Measured(
        "split-half correlation of the slope, 7 draws a half",
        f"matched pairs {matched:.2f}, every encode against every s1 {crossed:.2f}",
    )
    one = score_tokens(inputs, [0], after[:, :1])
    full = score_tokens(inputs, range(len(pairs)), after)
    for name, first, last in (("retention", one.slope, full.slope), ("definition", -one.pull, -full.pull)):
        worst = set(np.argsort(last)[:TOP].tolist())
        found = [len(worst & set(np.argsort(first)[:kept].tolist())) / TOP for kept in (45, 75, 150)]
        yield Measured(
            f"worst 2 % by {name} after 15 draws that are among the worst 3 / 5 / 10 % after one",
            " / ".join(f"{share:.0%}" for share in found),
        )


def _reliability(inputs: ScanInputs, after: np.ndarray) -> tuple[float, float]:
    generator = np.random.default_rng(0)
    draws = len(inputs.draws)
    diagonal = inputs.before[np.arange(draws), np.arange(draws)]
    own = after[:, np.arange(draws), np.arange(draws)]
    matched, crossed = [], []
    for _ in range(20):
        order = generator.permutation(draws)
        halves = order[: draws // 2], order[draws // 2 : 2 * (draws // 2)]
        matched.append(np.corrcoef(*(retention(diagonal[half], own[:, half]).slope for half in halves))[0, 1])
        crossed.append(
            np.corrcoef(*(score_tokens(inputs, half.tolist(), after[:, half]).slope for half in halves))[0, 1]
        )
    return float(np.mean(matched)), float(np.mean(crossed))
