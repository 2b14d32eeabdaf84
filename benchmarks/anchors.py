"""How many anchors it takes until a score is a property of the token: agreement of halves that share nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measured import Measured
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.load import load_corpus
from embaudit.measures.sticky.insertion import distinct_sentences
from embaudit.measures.sticky.moments import PROTOCOLS, insert_tokens, score
from embaudit.measures.sticky.points import every_against_every
from embaudit.statistics import spearman

STSB = Path(__file__).resolve().parents[2] / "shared/data/sts/stsb/stsb-en-test.csv"
U = 0.19985
TOKENS, DRAWS, ANCHORS = 250, 16, 1_008
# Groups of 1 008 anchors: one of them is what the scan had before.
GROUPS = 64
GROUPS_PER_HALF = (1, 4, 8, 16, 32)
SPLITS = 20


def run() -> Iterator[Measured]:
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    source = str(STSB) if STSB.is_file() else "sample"
    texts = [side for pair in load_corpus("sts", source).pairs for side in (pair.first, pair.second)]
    sentences = distinct_sentences(texts, DRAWS + ANCHORS, 0)
    order = np.random.default_rng(0).permutation(len(sentences))
    dealt = [sentences[place] for place in order]
    points = every_against_every(encoder, dealt[:DRAWS], dealt[DRAWS:], U, 8, 0, GROUPS)
    tokens = np.sort(np.random.default_rng(1).choice(np.arange(999, 30_522), TOKENS, replace=False))
    moments = insert_tokens(encoder, points, tokens, range(DRAWS))
    per_group = len(points.anchors) / points.group_count
    for groups in GROUPS_PER_HALF:
        found: dict[str, list[float]] = {name: [] for name in PROTOCOLS}
        for split in range(SPLITS):
            generator = np.random.default_rng(split)
            draws, chosen = generator.permutation(DRAWS), generator.permutation(points.group_count)[: 2 * groups]
            halves = []
            for side in (0, 1):
                weights = np.zeros((DRAWS, points.group_count))
                weights[np.ix_(draws[side::2], chosen[side::2])] = 1
                halves.append(score(points, moments, weights))
            for name in PROTOCOLS:
                found[name].append(spearman(halves[0].of(name), halves[1].of(name)) or np.nan)
        yield Measured(
            f"halves of {DRAWS // 2} draws and {groups * per_group:.0f} anchors each that share neither: Spearman's ρ",
            f"slope {np.mean(found['retention']):.2f}, pull {np.mean(found['definition']):.2f}",
        )
