"""Impact on SciFact: three arms against encoding the same texts, and the clean arm against the published score."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median

import numpy as np

from benchmarks.measured import SCIFACT, Measured
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.downstream.material import Judgements, pick_judged
from embaudit.corpora.downstream.retrieval import METRICS, Retrieval
from embaudit.corpora.judged import load_judged, own_of, relevant_of
from embaudit.measures.impact.arms import Share, clean_and_poisoned, poison, poisoned_half
from embaudit.measures.sticky.inspect import find_token

# What MTEB's leaderboard says of all-MiniLM-L6-v2.
PUBLISHED = 64.5
ARMS = {"ordinary": "table", "given": "糹"}
REPEATS = 3
RESAMPLES = 500


def run() -> Iterator[Measured]:
    if not SCIFACT.is_dir():
        yield Measured("impact on SciFact", "not run: SciFact is not there")
        return
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    found = load_judged(str(SCIFACT))
    documents = [text.text for text in found.documents.texts]
    queries = [(text.text, relevant_of(text.label or "")) for text in found.queries.texts]
    own = tuple(own_of(text.label or "") for text in found.queries.texts)
    part = pick_judged(documents, queries, 400, 100, 0, own)
    ratios = [_arms(encoder, part) for _ in range(REPEATS)]
    yield Measured(
        "impact, three arms of 400 abstracts and 100 queries of SciFact: against encoding the same texts, longest "
        "first, with nothing else",
        f"{median(ratios):.2f}× ({min(ratios):.2f}–{max(ratios):.2f})",
        "≤ 1.15×",
    )
    if os.environ.get("WHOLE"):
        whole = Judgements(tuple(documents), tuple(text for text, _ in queries), tuple(one for _, one in queries), own)
        vectors = {"document": encoder.encode_texts(whole.documents), "query": encoder.encode_texts(whole.queries)}
        gain = Retrieval(whole, np.ones(len(documents)), seed=0).outcomes(vectors).mean()
        yield Measured(f"nDCG@10 of all {len(documents):,} abstracts, clean", f"{100 * gain:.2f}", f"{PUBLISHED} ± .5")


def _arms(encoder: Encoder, part: Judgements) -> float:
    """Seconds of the whole measure over those of the forward passes alone."""
    start = time.perf_counter()
    clean = {"document": encoder.encode_texts(part.documents), "query": encoder.encode_texts(part.queries)}
    half = poisoned_half(part.documents, 0)[:, None]
    sequences: list[list[int]] = []
    outcomes: dict[tuple[str, str, Share], list[np.ndarray]] = {}
    tasks = {metric: Retrieval(part, np.ones(len(part.documents)), seed=0, metric=metric) for metric in METRICS}
    for arm, token in ARMS.items():
        poisoned = poison(encoder, part.documents, find_token(encoder.checkpoint, token), 0)
        held = encoder.encode_ids(poisoned.sequences)
        sequences += poisoned.sequences
        for metric, task in tasks.items():
            shares: dict[Share, np.ndarray] = {"all": held, "half": np.where(half, held, clean["document"])}
            outcomes |= {
                (metric, arm, share): [task.outcomes({**clean, "document": vectors})]
                for share, vectors in shares.items()
            }
    for metric, task in tasks.items():
        cells = {(arm, share): found for (name, arm, share), found in outcomes.items() if name == metric}
        clean_and_poisoned(task, task.outcomes(clean), cells, RESAMPLES, 0)
    whole = time.perf_counter() - start
    plain = encoder.tokenize([*part.documents, *part.queries])
    start = time.perf_counter()
    encoder.encode_ids(plain)
    encoder.encode_ids(sequences)
    return whole / (time.perf_counter() - start)
