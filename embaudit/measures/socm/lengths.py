"""SOCM by length: how it correlates with the number of tokens, and averages over pairs by length.

tr Σ grows with the number of tokens, and d_Σ with tr Σ₁ + tr Σ₂, so a corpus's average SOCM mostly reflects how long
its texts are. Used by ``embaudit.measures.socm.steps.summary``.

Hard negatives: mined for queries, and listed pairs compared with random pairs of the same texts.

Mining finds, for each query, the top-ranked passages not judged relevant, by BM25 or by vectors. Ties go to the first
passage, so results are deterministic. Used by ``embaudit_tasks.steps``; BM25 needs bm25s.

For the comparison, a paired difference, every query is paired with its own passage, and with another query's. The
latter are a permutation of the former, so both arms have the same queries and passages: lengths and tr Σ are the same,
only the pairing differs.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from embaudit.measures.socm.clouds import TokenCloud
from embaudit.measures.socm.pairs import PairBlock, given_pairs
from embaudit.measures.socm.summary import jackknife_of_pairs
from embaudit.measures.socm.tables import Contrast, Distance, LengthCell
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate

# Lower edges of the length bins, in pooled tokens; the last bin is open.
EDGES = (1, 17, 33, 65, 129, 257)


@dataclass
class _LengthSums:
    size: int
    pairs: int = 0
    # Sums of SOCM, d_μ, d_Σ and (tr Σ₁ + tr Σ₂)/2.
    totals: np.ndarray = field(default_factory=lambda: np.zeros(4))
    by_text: np.ndarray = field(init=False)
    counts: np.ndarray = field(init=False)
    taking_part: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.by_text, self.counts = np.zeros(self.size), np.zeros(self.size, dtype=np.int64)
        self.taking_part = np.zeros(self.size, dtype=bool)


class LengthCells:
    """Averages by the lengths of both texts, over a stream of pairs.

    Args:
        tokens, traces: (N,) of the texts at positions 0 … N−1.
        leave_out_firsts: whether the jackknife is over first texts only (the queries of a list).
    """

    def __init__(self, tokens: np.ndarray, traces: np.ndarray, *, leave_out_firsts: bool = False) -> None:
        self._bins = np.searchsorted(EDGES, tokens, side="right") - 1
        self._traces = traces
        self._leave_out_firsts = leave_out_firsts
        self._cells: dict[tuple[int, int], _LengthSums] = {}

    def passing(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """Yields the blocks unchanged, and counts them."""
        for block in blocks:
            bins = np.sort(np.stack([self._bins[block.first], self._bins[block.second]]), axis=0)
            numbers = bins[0] * len(EDGES) + bins[1]
            for number in np.unique(numbers):
                self._add(divmod(int(number), len(EDGES)), block, np.flatnonzero(numbers == number))
            yield block

    def cells(self) -> list[LengthCell]:
        """All combinations of bins with pairs, shortest first."""
        return [self._cell(*key) for key in sorted(self._cells)]

    def _add(self, key: tuple[int, int], block: PairBlock, here: np.ndarray) -> None:
        size = len(self._bins)
        sums = self._cells.setdefault(key, _LengthSums(size))
        first, second, socm = block.first[here], block.second[here], block.socm[here]
        spread = (self._traces[first] + self._traces[second]) / 2
        sums.pairs += len(here)
        sums.totals += [values.sum() for values in (socm, block.d_mu[here], block.d_sigma[here], spread)]
        for side in (first,) if self._leave_out_firsts else (first, second):
            sums.by_text += np.bincount(side, weights=socm, minlength=size)
            sums.counts += np.bincount(side, minlength=size)
        sums.taking_part[first] = sums.taking_part[second] = True

    def _cell(self, shorter: int, longer: int) -> LengthCell:
        sums = self._cells[shorter, longer]
        socm, d_mu, d_sigma, trace = (float(total) / sums.pairs for total in sums.totals)
        _, low, high = Estimate.around(
            socm, jackknife_of_pairs(sums.by_text, sums.counts, float(sums.totals[0]), sums.pairs)
        )
        return LengthCell(
            shorter=EDGES[shorter],
            longer=EDGES[longer],
            texts=int(sums.taking_part.sum()),
            pairs=sums.pairs,
            d_mu_mean=d_mu,
            d_sigma_mean=d_sigma,
            socm_mean=socm,
            socm_low=low,
            socm_high=high,
            trace_mean=trace,
        )


class TraceCorrelation:
    """Pearson's r between SOCM and tr Σ₁ + tr Σ₂ over a stream of pairs (merged moments: Chan et al. 1983).

    Args:
        traces: (N,) tr Σ of the texts at positions 0 … N−1.
    """

    def __init__(self, traces: np.ndarray) -> None:
        self._traces = traces
        self._pairs, self._means, self._moments = 0, np.zeros(2), np.zeros((2, 2))

    def passing(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """Yields the blocks unchanged, and counts them."""
        for block in blocks:
            if len(block.socm):
                self._add(np.stack([block.socm, self._traces[block.first] + self._traces[block.second]]))
            yield block

    def value(self) -> float | None:
        """r; None if either is constant."""
        return _correlation(self._moments, self._means, self._pairs)

    def _add(self, values: np.ndarray) -> None:
        count, means = values.shape[1], values.mean(axis=1)
        pairs, centred, shift = self._pairs + count, values - means[:, None], means - self._means
        self._moments = self._moments + centred @ centred.T + np.outer(shift, shift) * (self._pairs * count / pairs)
        self._means = self._means + shift * (count / pairs)
        self._pairs = pairs


def length_correlation(tokens: np.ndarray, traces: np.ndarray) -> float | None:
    """Pearson's r between tr Σ and the number of tokens, (N,) each, over texts with a trace; None if constant."""
    known = np.isfinite(traces)
    if not known.any():
        return None
    values = np.stack([tokens[known].astype(np.float64), traces[known]])
    means = values.mean(axis=1)
    centred = values - means[:, None]
    return _correlation(centred @ centred.T, means, values.shape[1])


def _correlation(moments: np.ndarray, means: np.ndarray, count: int) -> float | None:
    deviations = np.sqrt(moments.diagonal() / max(count, 1))
    # Variation below rounding error counts as constant.
    if (deviations <= 1e-12 * np.maximum(np.abs(means), 1e-12)).any():
        return None
    return float(np.clip(moments[0, 1] / (count * deviations.prod()), -1, 1))


DISTANCES: tuple[Distance, ...] = ("socm", "d_mu", "d_sigma")


def strangers(queries: Sequence[Hashable]) -> list[int] | None:
    """For each pair, the index of another query's pair, each index once; None if one query has over half of the pairs.

    Pairs are grouped by query and shifted by the size of the largest group. The given order of queries should be
    random.
    """
    rows: dict[Hashable, list[int]] = {}
    for place, query in enumerate(queries):
        rows.setdefault(query, []).append(place)
    shift = max(map(len, rows.values()), default=0)
    if not rows or 2 * shift > len(queries):
        return None
    ordered = [place for row in rows.values() for place in row]
    partner = [0] * len(queries)
    for k, place in enumerate(ordered):
        partner[place] = ordered[(k + shift) % len(ordered)]
    return partner


def contrasts(
    clouds: Mapping[int, TokenCloud], first: Sequence[int], second: Sequence[int], partner: Sequence[int]
) -> list[Contrast]:
    """SOCM, d_μ and d_Σ of the pairs (first, second), compared with (first, second of the partner).

    Args:
        clouds: by text number.
        first, second: (k,) numbers of queries and passages.
        partner: (k,) indices of other pairs (``strangers``).
    """
    listed = given_pairs(clouds, first, second)
    random = given_pairs(clouds, first, [second[place] for place in partner])
    _, places = np.unique(np.asarray(first), return_inverse=True)
    counts = np.bincount(places)
    found = []
    for name in DISTANCES:
        own, other = getattr(listed, name), getattr(random, name)
        change = own - other
        mean = float(change.mean())
        _, low, high = Estimate.around(
            mean, jackknife_of_pairs(np.bincount(places, weights=change), counts, float(change.sum()), len(change))
        )
        found.append(
            Contrast(
                distance=name,
                pairs=len(change),
                queries=len(counts),
                listed_mean=float(own.mean()),
                random_mean=float(other.mean()),
                difference=mean,
                difference_low=low,
                difference_high=high,
            )
        )
    return found


# Scores per step of ``by_cosine``: 64 MB.
SCORES_PER_STEP = 8_000_000


def by_bm25(
    queries: Sequence[str], passages: Sequence[str], relevant: Sequence[Collection[int]], count: int = 1
) -> list[list[int]]:
    """The top passages for each query under BM25 (Lucene's variant, without English stop words).

    Args:
        relevant: for each query, the indices of passages judged relevant, which are never returned.
        count: passages per query.

    Returns:
        For each query, indices into passages, best first; fewer than ``count`` if passages run out.

    Raises:
        MeasureError: if no passage has a word that BM25 indexes.
    """
    import bm25s

    indexed = bm25s.tokenize(list(passages), stopwords="en", return_ids=False, show_progress=False)
    if not any(indexed):
        raise MeasureError(
            f"BM25 finds no word in the {len(passages)} passages.",
            next_step="Give passages in a language with words between spaces, or mine by the checkpoint.",
        )
    retriever = bm25s.BM25()
    retriever.index(indexed, show_progress=False)
    asked = bm25s.tokenize(list(queries), stopwords="en", return_ids=False, show_progress=False)
    known = retriever.vocab_dict

    def scores() -> Iterator[np.ndarray]:
        for words in asked:
            # bm25s cannot score a query without known words, which matches nothing.
            found = [word for word in words if word in known]
            yield retriever.get_scores(found) if found else np.zeros(len(passages), dtype=np.float32)

    return [_best(row, judged, count) for row, judged in zip(scores(), relevant, strict=True)]


def by_cosine(
    queries: np.ndarray, passages: np.ndarray, relevant: Sequence[Collection[int]], count: int = 1
) -> list[list[int]]:
    """The nearest passages for each query by cosine, for unit vectors (Q, D) and (P, D); arguments as ``by_bm25``."""
    found: list[list[int]] = []
    step = max(1, SCORES_PER_STEP // max(len(passages), 1))
    for start in range(0, len(queries), step):
        scores = queries[start : start + step].astype(np.float64) @ passages.T.astype(np.float64)
        found += [_best(row, judged, count) for row, judged in zip(scores, relevant[start : start + step], strict=True)]
    return found


def _best(scores: np.ndarray, judged: Collection[int], count: int) -> list[int]:
    # The requested passages are among the top ``count`` plus the number of judged ones.
    front = min(len(scores), count + len(judged))
    if front == 0:
        return []
    cut = np.partition(scores, len(scores) - front)[len(scores) - front]
    candidates = np.flatnonzero(scores >= cut)
    best = candidates[np.argsort(-scores[candidates], kind="stable")]
    return [int(index) for index in best if int(index) not in judged][:count]
