"""Figures over scored pairs and over queries: contrast, quality, tempscale's difference, impact's change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np

from benchmarks.coverage.draws import SHARE, Ended, Population
from embaudit.checkpoint import Encoder
from embaudit.corpora.downstream import unit_rows
from embaudit.corpora.downstream.material import GradedPairs, Judgements, pick_judged
from embaudit.corpora.downstream.retrieval import Retrieval, Similarity
from embaudit.corpora.draw import TextPair
from embaudit.corpora.judged import load_judged, relevant_of
from embaudit.measures.impact.arms import clean_and_poisoned, poison
from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.measures.quality.measured import MeasuredPairs
from embaudit.measures.quality.passes import SERVED, Pass
from embaudit.measures.quality.scale import measure_scale
from embaudit.measures.quality.scores import CollectionScorer, PairScorer
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.lengths import contrasts, strangers
from embaudit.measures.sticky.inspect import find_token
from embaudit.remedies.temperature import Temperatures, temperature
from embaudit.words.estimate import Estimate

RESAMPLES = 500
DOCUMENTS, QUERIES = 600, 300
TAU = 0.5
TOKEN = "table"


def of_pairs(encoder: Encoder, rows: Sequence[TextPair]) -> Iterator[Population]:
    """Contrast, quality and tempscale over scored pairs."""
    pairs = [(row.first, row.second, row.score) for row in rows if row.score is not None]
    sides = [[first for first, _, _ in pairs], [second for _, second, _ in pairs]]
    encoded = {}
    for tau in (1.0, TAU):
        with temperature(encoder.checkpoint, Temperatures.of(tau)) if tau != 1 else nullcontext():
            encoded[tau] = [encoder.encode_texts(side) for side in sides]
    size = len(pairs) // SHARE
    similarities = np.einsum("nd,nd->n", *map(unit_rows, encoded[1.0]))

    def quality(places: np.ndarray) -> dict[str, Ended]:
        drawn = ScoredPairs("drawn", *zip(*(pairs[place] for place in places), strict=True))
        scorer, own = PairScorer(drawn), similarities[places]
        firsts, seconds = (Pass({SERVED: side[places]}) for side in encoded[1.0])
        scale = measure_scale(MeasuredPairs(drawn, scorer, firsts, seconds, [], [], "cosine"))
        found = {
            "Spearman's ρ": _ended(scorer.spearman(own).estimate()),
            "AUC": _ended(scorer.auc(own).share_estimate()),
        }
        if scale is not None:
            found["scale, threshold"] = _ended(scale.threshold)
            found["scale, kept"] = _ended(scale.above)
        return found

    def tempscale(places: np.ndarray) -> dict[str, Ended]:
        graded = GradedPairs(*zip(*(pairs[place] for place in places), strict=True))
        task = Similarity(graded, np.ones((2, len(places))), seed=0)
        before, after = (
            task.outcomes({"first": first[places], "second": second[places]}) for first, second in encoded.values()
        )
        all_of_them = np.ones(len(places), dtype=bool)
        scores = [task.score(outcomes, all_of_them) for outcomes in (before, after)]
        if None in scores:
            return {}
        low, high = task.interval(before, after, all_of_them, RESAMPLES, 0) or (None, None)
        return {"difference of ρ": (scores[1] - scores[0], low, high)}  # type: ignore[operator]

    yield Population("quality", len(pairs), size, quality)
    yield Population("tempscale", len(pairs), size, tempscale)
    texts = list(dict.fromkeys([*sides[0], *sides[1]]))
    number = {text: place for place, text in enumerate(texts)}
    found, _ = clouds_of((place, X.copy()) for place, X in encoder.token_embeddings(texts))
    clouds = {cloud.position: cloud for cloud in found}
    numbers = np.array([[number[text] for text in side] for side in sides])

    def contrast(places: np.ndarray) -> dict[str, Ended]:
        # The order of queries must be random, as the audit's is.
        dealt = np.random.default_rng(places).permutation(places)
        first, second = numbers[:, dealt].tolist()
        partner = strangers(first)
        rows = [] if partner is None else contrasts(clouds, first, second, partner)
        return {
            f"difference [{row.distance}]": (row.difference, row.difference_low, row.difference_high) for row in rows
        }

    yield Population("contrast", len(pairs), size, contrast)


def of_queries(encoder: Encoder, folder: str) -> Iterator[Population]:
    """nDCG@10 and its change with copies of a token in all documents; the documents are the same in every draw."""
    found = load_judged(folder)
    judged = pick_judged(
        [text.text for text in found.documents.texts],
        [(text.text, relevant_of(text.label or "")) for text in found.queries.texts],
        DOCUMENTS,
        QUERIES,
        0,
    )
    documents, queries = judged.documents, list(zip(judged.queries, judged.relevant, strict=True))
    vectors = encoder.encode_texts(documents)
    poisoned = encoder.encode_ids(poison(encoder, documents, find_token(encoder.checkpoint, TOKEN), 0).sequences)
    asked = encoder.encode_texts(judged.queries)
    similarities = unit_rows(asked) @ unit_rows(vectors).T

    def quality(places: np.ndarray) -> dict[str, Ended]:
        texts, relevant = zip(*(queries[place] for place in places), strict=True)
        score = CollectionScorer(Collection("drawn", texts, documents, relevant)).ndcg(similarities[places])
        return {"nDCG@10": _ended(score.estimate())}

    def impact(places: np.ndarray) -> dict[str, Ended]:
        texts, relevant = zip(*(queries[place] for place in places), strict=True)
        task = Retrieval(Judgements(documents, texts, relevant), np.ones(len(documents)), seed=0)
        clean, harmed = (task.outcomes({"document": held, "query": asked[places]}) for held in (vectors, poisoned))
        _, cells = clean_and_poisoned(task, clean, {("given", "all"): [harmed]}, RESAMPLES, 0)
        change = cells["given", "all"].arm.change
        return {"change of nDCG@10": (change.value, change.low, change.high)}

    yield Population("quality", len(queries), len(queries) // SHARE, quality)
    yield Population("impact", len(queries), len(queries) // SHARE, impact)


def _ended(found: Estimate) -> Ended:
    return found.value, found.low, found.high
