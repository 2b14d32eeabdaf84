"""Keeps track of the pairs of texts in a bulk table's shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embaudit.warehouse.expectations.results import ALL_SHARDS, EXAMPLES_KEPT
from embaudit.warehouse.publish import ExpectationRow

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


class PairsSeen:
    """A bitmap of pairs: twelve million keys would take too much memory.

    Args:
        keys: columns of the corpus and the two positions.
        texts: for each corpus a series by position, as in the table's lookup.
    """

    def __init__(self, keys: tuple[str, ...], texts: Mapping[str, pd.Series]) -> None:
        self._keys = keys
        self._texts = texts
        self._seen: dict[str, np.ndarray] = {}
        self._repeated = 0
        self._examples: list[dict[str, Any]] = []

    def add(self, frame: pd.DataFrame) -> None:
        """Count a shard's pairs; other expectations report rows without a key or outside the corpus."""
        import numpy as np

        if not set(self._keys) <= set(frame.columns):
            return
        group, *sides = self._keys
        for corpus, texts in self._texts.items():
            own = frame.loc[(frame[group] == corpus).to_numpy(), sides].dropna()
            if own.empty:  # a list of pairs may have too many texts for a map
                continue
            # Renumber positions: a random draw leaves gaps.
            first, second = (texts.index.get_indexer(own[side]) for side in sides)
            is_known = (first >= 0) & (second >= 0)
            own, size = own[is_known], len(texts)
            seen = self._seen.setdefault(corpus, np.zeros(size * size, dtype=bool))
            pairs = first[is_known] * size + second[is_known]
            repeated = seen[pairs]
            self._repeated += int(repeated.sum())
            examples = own[repeated].head(EXAMPLES_KEPT - len(self._examples))
            self._examples += [{group: corpus, **row} for row in examples.to_dict("records")]
            seen[pairs] = True

    def as_row(self, table: str) -> ExpectationRow:
        """The expectation that no pair occurs twice, over all shards."""
        return ExpectationRow(
            table_name=table,
            shard=ALL_SHARDS,
            expectation="expect_compound_columns_to_be_unique",
            column_name=", ".join(self._keys),
            kwargs={"column_list": list(self._keys)},
            severity="critical",
            success=self._repeated == 0,
            raised_exception=False,
            unexpected_count=self._repeated,
            examples=self._examples,
        )
