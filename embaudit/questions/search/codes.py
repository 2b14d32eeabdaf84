"""What an index that keeps codes in place of vectors loses, beside the function's own vectors of its texts."""

from __future__ import annotations

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.search.exact import scores_of
from embaudit.questions.search.recall import mean_share
from embaudit.questions.vectors.encode import encode_rows
from embaudit.questions.vectors.roles import as_rows_were_built
from embaudit.questions.vectors.sample import SomeRows
from embaudit.stores.store import Metric
from embaudit.words.estimate import Estimate

K = 10
ROWS = 1_000


def kept_by_codes(function: EmbeddingFunction, rows: SomeRows, metric: Metric) -> Estimate | None:
    """Of each row's ten nearest among these by the function's vectors, how many are so by what the index keeps.

    Rows ask for each other, (n, D) stored and encoded again. Among all rows of an index neighbours are closer to one
    another than among a sample, and codes lose more of them: this is the least that is lost. None if too few rows have
    a text, or the two have different dimensions.
    """
    some = rows.with_text
    some = some.at(np.arange(min(ROWS, len(some))))
    if len(some) <= 2 * K:
        return None
    own = encode_rows(as_rows_were_built(function, some, None), [text or "" for text in some.texts])
    usable = np.isfinite(own).all(axis=1)
    stored = np.asarray(some.vectors, np.float32)[usable]
    if own.shape[1] != stored.shape[1] or usable.sum() <= 2 * K:
        return None
    nearest = [_nearest(scores_of(metric, one, one)) for one in (own[usable].astype(np.float32), stored)]
    return mean_share(np.array([len(np.intersect1d(*both)) / K for both in zip(*nearest, strict=True)]))


def _nearest(scores: np.ndarray) -> np.ndarray:
    np.fill_diagonal(scores, -np.inf)
    return np.argpartition(-scores, K, axis=1)[:, :K]
