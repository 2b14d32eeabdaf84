"""What the paper and method say of real tokens, checked on all-MiniLM-L6-v2 with real STS pairs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.vocabulary.entries import read_vocabulary
from embaudit.corpora import load_corpus
from embaudit.measures.sticky.evidence.enrichment import enrichment_rows
from embaudit.measures.sticky.insertion import distinct_sentences, split_sentences
from embaudit.measures.sticky.moments import insert_tokens, score
from embaudit.measures.sticky.plan import eligible_tokens
from embaudit.measures.sticky.points import Points, every_against_every

U = 0.19985


def real_points(encoder: Encoder, shared: Path, draws: int) -> Points:
    pairs = load_corpus("sts", str(shared / "data/sts/stsb/stsb-en-dev.csv")).pairs
    sentences = distinct_sentences([side for pair in pairs for side in (pair.first, pair.second)], 600, 0)
    chosen, _ = split_sentences(sentences, draws, 10, 0)
    return every_against_every(encoder, chosen.draws, chosen.anchors, U, 8, 0, 2)


@pytest.mark.slow
def test_rare_and_multilingual_entries_are_enriched_tenfold_among_the_least_retaining(
    minilm: Checkpoint, shared: Path
) -> None:
    encoder = Encoder(minilm)
    entries = [
        {**asdict(entry), "embedding_norm": 1.0, "cosine_to_mean": None}
        for entry in read_vocabulary(minilm.tokenizer, minilm.vocabulary_size)
    ]
    # One in five, and as deep in them as a hundred are in all.
    tokens = eligible_tokens(entries)[::5]
    points = real_points(encoder, shared, 1)
    slopes = score(points, insert_tokens(encoder, points, tokens, [0])).slope
    lowest = tokens[np.argsort(slopes)[:20]].tolist()
    rows = enrichment_rows(entries, set(tokens.tolist()), {"lowest_20": lowest})
    by_attribute = {row["attribute"]: row for row in rows if row["value"] == "yes"}
    assert by_attribute["non_latin"]["fold"] >= 10
    assert by_attribute["non_latin_or_symbol"]["fold"] >= 10
    assert by_attribute["non_latin"]["p_value"] < 1e-6


@pytest.mark.slow
def test_values_hold_to_a_millionth_over_batches_shards_and_subsets(minilm: Checkpoint, shared: Path) -> None:
    encoder = Encoder(minilm)
    points = real_points(encoder, shared, 40)
    tokens = np.array([1934, 2003, 12471, 16579, 26728, 30072])

    def values(batch: int | None, *parts: np.ndarray) -> np.ndarray:
        found = [score(points, insert_tokens(Encoder(minilm, batch), points, part, range(40))) for part in parts]
        return np.concatenate([np.stack([one.pull, one.slope]) for one in found], axis=1)

    whole = values(None, tokens)
    assert np.abs(values(None, tokens) - whole).max() == 0
    assert np.abs(values(64, tokens) - whole).max() <= 1e-6
    assert np.abs(values(None, tokens[:1], tokens[1:4], tokens[4:]) - whole).max() <= 1e-6
    assert np.abs(values(None, tokens[2:3]) - whole[:, 2:3]).max() <= 1e-6


@pytest.mark.slow
def test_bfloat16_keeps_the_ranks_of_a_scan(minilm: Checkpoint, shared: Path) -> None:
    from scipy.stats import spearmanr

    exact = Encoder(minilm)
    half = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2", LoadOptions(device="cpu", dtype="bfloat16")))
    points = real_points(exact, shared, 1)
    tokens = np.arange(1_000, 30_000, 97)
    slopes = [score(points, insert_tokens(encoder, points, tokens, [0])).slope for encoder in (exact, half)]
    assert spearmanr(*slopes).statistic > 0.99
