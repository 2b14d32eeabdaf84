"""SOCM of pairs of texts: all pairs of N texts, listed pairs, or texts against a corpus (arXiv 2604.27398, §3).

    d_μ    = ‖μ₁ − μ₂‖² / 4
    d_Σ    = tr(Σ₁ + Σ₂ − 2(Σ₁^½ Σ₂ Σ₁^½)^½) / 4        (Bures–Wasserstein)
    SOCM   = (1 − d_μ) · d_Σ

tr((Σ₁^½ Σ₂ Σ₁^½)^½) = ‖R₁R₂ᵀ‖_* with RᵀR = Σ: the nuclear norm of an n₁ × n₂ matrix (``nuclear``) replaces d × d square
roots. Texts are sorted by length and grouped into blocks, so that the products of many pairs are one matrix product
with little padding. Pairs are yielded block by block, and only the texts' tokens stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

import numpy as np

from embaudit.measures.socm.clouds import TokenCloud
from embaudit.measures.socm.nuclear import Eigenvalues, NuclearNorms, singular_value_sums
from embaudit.words.errors import MeasureError

# Pairs per run that are computed again from singular values, as a check.
CHECKED_PAIRS = 64
# Memory for centred float64 blocks that are reused; blocks beyond it are centred again each time, at a
# cost of about a tenth.
BYTES_KEPT = 512 * 1024**2
# Padded rows and products per step of ``given_pairs``, float64.
BYTES_PER_STEP = 32 * 1024**2


@dataclass(frozen=True)
class PairBlock:
    """Values of some pairs of texts, all arrays (k,); ``first`` and ``second`` are the texts' positions."""

    first: np.ndarray
    second: np.ndarray
    d_mu: np.ndarray
    d_sigma: np.ndarray
    socm: np.ndarray


def all_pairs(
    clouds: Sequence[TokenCloud], *, shard: int = 0, shards: int = 1, norms: NuclearNorms | None = None
) -> Iterator[PairBlock]:
    """SOCM of all pairs of texts, ``first < second``, block by block.

    A pair belongs to the shard of its shorter text's block; together, the shards yield every pair once.

    Args:
        clouds: N texts.
        shard, shards: which part of the pairs to compute.
        norms: how nuclear norms are computed; by default in float64 on all cores.

    Raises:
        MeasureError: if there are fewer than two texts.
    """
    if len(clouds) < 2:
        raise MeasureError(
            f"SOCM compares pairs of texts, but there is {len(clouds)} text.",
            next_step="Give a corpus of at least two texts.",
        )
    norms = norms or Eigenvalues()
    blocks = _Blocks(clouds, norms)

    def jobs() -> Iterator[tuple[int, int]]:
        for row in range(shard, len(blocks.texts), shards):
            for column in range(row, len(blocks.texts)):
                if row != column or len(blocks.texts[row]) > 1:
                    yield row, column

    def computed(job: tuple[int, int]) -> PairBlock:
        row, column = job
        size = len(blocks.texts[row])
        i, j = np.triu_indices(size, 1) if row == column else _every(size, len(blocks.texts[column]))
        block = _rectangle(blocks, row, blocks, column, norms, i, j)
        return PairBlock(
            np.minimum(block.first, block.second),
            np.maximum(block.first, block.second),
            block.d_mu,
            block.d_sigma,
            block.socm,
        )

    yield from norms.in_order(computed, jobs())


def against_corpus(
    texts: Sequence[TokenCloud], corpus: Sequence[TokenCloud], *, norms: NuclearNorms | None = None
) -> Iterator[PairBlock]:
    """SOCM of every text with every text of a corpus; ``first`` indexes the texts, ``second`` the corpus.

    Raises:
        MeasureError: if either side is empty.
    """
    if not texts or not corpus:
        raise MeasureError(
            f"SOCM against a corpus needs texts on both sides, but there are {len(texts)} and {len(corpus)}.",
            next_step="Give at least one text and one passage.",
        )
    norms = norms or Eigenvalues()
    left, right = _Blocks(texts, norms), _Blocks(corpus, norms)

    def computed(job: tuple[int, int]) -> PairBlock:
        row, column = job
        return _rectangle(left, row, right, column, norms, *_every(len(left.texts[row]), len(right.texts[column])))

    yield from norms.in_order(computed, product(range(len(left.texts)), range(len(right.texts))))


def given_pairs(
    clouds: Mapping[int, TokenCloud],
    first: Sequence[int] | np.ndarray,
    second: Sequence[int] | np.ndarray,
    *,
    norms: NuclearNorms | None = None,
) -> PairBlock:
    """SOCM of a list of pairs, in order; a text may occur repeatedly, and be paired with itself.

    Args:
        clouds: by position.
        first, second: (k,) positions of each pair's texts.

    Raises:
        KeyError: if a pair names a text that has no cloud.
    """
    norms = norms or Eigenvalues()
    one, two = [clouds[int(i)] for i in first], [clouds[int(j)] for j in second]
    order = sorted(range(len(one)), key=lambda k: (max(one[k].n, two[k].n), one[k].n, k))
    nuclear = np.empty(len(one))
    steps = list(_steps(one, two, order))

    def computed(step: list[int]) -> np.ndarray:
        return norms.paired(_padded([one[k] for k in step]), _padded([two[k] for k in step]))

    for step, values in zip(steps, norms.in_order(computed, steps), strict=True):
        nuclear[step] = values
    d_mu = np.array([(1 - a.unit_mean @ b.unit_mean) / 2 for a, b in zip(one, two, strict=True)])
    traces = np.array([a.trace + b.trace for a, b in zip(one, two, strict=True)])
    return _block(np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64), d_mu, traces, nuclear)


@dataclass
class Accuracy:
    """Error of a run's d_Σ compared with float64 singular values, on a random sample of its pairs.

    Attributes:
        largest: largest absolute error of d_Σ so far.
        pairs: number of pairs checked.
    """

    largest: float = 0.0
    pairs: int = 0


def checked(
    blocks: Iterable[PairBlock],
    clouds: Mapping[int, TokenCloud],
    planned: int,
    accuracy: Accuracy,
    *,
    seed: int = 0,
    sample: int = CHECKED_PAIRS,
) -> Iterator[PairBlock]:
    """Yields the blocks unchanged, and checks about ``sample`` of the ``planned`` pairs by singular values."""
    generator = np.random.default_rng([seed, planned])
    chosen = np.sort(generator.choice(planned, min(sample, planned), replace=False)) if planned else np.empty(0, int)
    start = 0
    for block in blocks:
        size = len(block.socm)
        for place in chosen[(chosen >= start) & (chosen < start + size)] - start:
            a, b = clouds[int(block.first[place])], clouds[int(block.second[place])]
            exact = (a.trace + b.trace - 2 * singular_value_sums(a.rows[None], b.rows[None])[0]) / 4
            accuracy.largest = max(accuracy.largest, abs(float(block.d_sigma[place]) - float(exact)))
            accuracy.pairs += 1
        start += size
        yield block


def count_pairs_of_shard(
    clouds: Sequence[TokenCloud], shard: int, shards: int, tokens_per_block: int = Eigenvalues.tokens_per_block
) -> int:
    """Number of pairs that ``all_pairs`` yields for a shard, without computing them (for plans and progress)."""
    sizes = [len(block) for block in plan_blocks([cloud.n for cloud in clouds], tokens_per_block)]
    total = 0
    for row in range(shard, len(sizes), shards):
        total += sizes[row] * (sizes[row] - 1) // 2 + sizes[row] * sum(sizes[row + 1 :])
    return total


def plan_blocks(lengths: Sequence[int], tokens_per_block: int = Eigenvalues.tokens_per_block) -> list[list[int]]:
    """Groups texts of similar length into blocks of at most ``tokens_per_block`` padded rows (longer texts alone).

    Args:
        lengths: tokens of each text.

    Returns:
        Indices into ``lengths``; shortest texts first.
    """
    blocks: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: (lengths[index], index)):
        if blocks and (len(blocks[-1]) + 1) * lengths[index] <= tokens_per_block:
            blocks[-1].append(index)
        else:
            blocks.append([index])
    return blocks


def _steps(one: Sequence[TokenCloud], two: Sequence[TokenCloud], order: Sequence[int]) -> Iterator[list[int]]:
    """``order`` cut into steps whose padded rows and products fit into memory."""
    cuts, start, widest = [0], 0, (0, 0)
    for place, k in enumerate(order):
        v, w = max(widest[0], one[k].n), max(widest[1], two[k].n)
        d = one[k].tokens.shape[1]
        if place > start and 8 * (place - start + 1) * ((v + w) * d + v * w) > BYTES_PER_STEP:
            cuts.append(place)
            start, v, w = place, one[k].n, two[k].n
        widest = (v, w)
    for begin, end in pairwise([*cuts, len(order)]):
        if end > begin:
            yield list(order[begin:end])


def _every(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    i, j = np.indices((rows, columns))
    return i.ravel(), j.ravel()


class _Blocks:
    """Texts in blocks of similar length, with a cache of the blocks' padded rows."""

    def __init__(self, clouds: Sequence[TokenCloud], norms: NuclearNorms) -> None:
        plan = plan_blocks([cloud.n for cloud in clouds], norms.tokens_per_block)
        self.texts = [[clouds[index] for index in block] for block in plan]
        largest = max(len(block) * max(cloud.n for cloud in block) for block in self.texts)
        kept = max(2, BYTES_KEPT // (8 * largest * clouds[0].tokens.shape[1]))
        self.padded = lru_cache(maxsize=kept)(lambda index: _padded(self.texts[index]))


def _rectangle(
    left: _Blocks, row: int, right: _Blocks, column: int, norms: NuclearNorms, i: np.ndarray, j: np.ndarray
) -> PairBlock:
    """The pairs (i, j) between two blocks."""
    rows, columns = left.texts[row], right.texts[column]
    nuclear = norms.grid(left.padded(row), right.padded(column))
    traces = np.add.outer([cloud.trace for cloud in rows], [cloud.trace for cloud in columns])
    cosine = np.stack([c.unit_mean for c in rows]) @ np.stack([c.unit_mean for c in columns]).T
    first, second = (np.array([cloud.position for cloud in block]) for block in (rows, columns))
    # ‖μ₁−μ₂‖²/4 = (1 − cos)/2 for unit means
    return _block(first[i], second[j], (1 - cosine[i, j]) / 2, traces[i, j], nuclear[i, j])


def _block(
    first: np.ndarray, second: np.ndarray, d_mu: np.ndarray, traces: np.ndarray, nuclear: np.ndarray
) -> PairBlock:
    d_sigma = (traces - 2 * nuclear) / 4
    return PairBlock(first, second, d_mu, d_sigma, (1 - d_mu) * d_sigma)


def _padded(block: Sequence[TokenCloud]) -> np.ndarray:
    """(b, w, d): rows R of each text, padded with zero rows, which do not change nuclear norms."""
    width, d = max(cloud.n for cloud in block), block[0].tokens.shape[1]
    rows = np.zeros((len(block), width, d))
    for place, cloud in enumerate(block):
        rows[place, : cloud.n] = cloud.rows
    return rows
