"""Which pairs of texts the shards of a bulk table brought so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embaudit.expectations.results import ALL_SHARDS, EXAMPLES_KEPT
from embaudit.warehouse.publish import ExpectationRow

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

PAIR_KEYS = ("corpus", "first", "second")


class PairsSeen:
    """A bit map of pairs, since twelve million keys are too many to hold.

    Args:
        texts: a series by position for each corpus, as the lookup of ``socm_pair`` has it.
    """

    def __init__(self, texts: Mapping[str, pd.Series]) -> None:
        self._texts = texts
        self._seen: dict[str, np.ndarray] = {}
        self._repeated = 0
        self._examples: list[dict[str, Any]] = []

    def add(self, frame: pd.DataFrame) -> None:
        """Count a shard's pairs; rows without a key, or outside the corpus, are other expectations' business."""
        import numpy as np

        if not set(PAIR_KEYS) <= set(frame.columns):
            return
        for corpus, texts in self._texts.items():
            own = frame.loc[(frame["corpus"] == corpus).to_numpy(), ["first", "second"]].dropna()
            if own.empty:  # the texts of a list of pairs may be too many for a map
                continue
            # Numbered without the gaps that a draw leaves between positions.
            numbered = {side: texts.index.get_indexer(own[side]) for side in ("first", "second")}
            is_known = (numbered["first"] >= 0) & (numbered["second"] >= 0)
            own, size = own[is_known], len(texts)
            seen = self._seen.setdefault(corpus, np.zeros(size * size, dtype=bool))
            pairs = numbered["first"][is_known] * size + numbered["second"][is_known]
            repeated = seen[pairs]
            self._repeated += int(repeated.sum())
            for first, second in own[repeated].head(EXAMPLES_KEPT - len(self._examples)).to_numpy().tolist():
                self._examples.append({"corpus": corpus, "first": first, "second": second})
            seen[pairs] = True

    def as_row(self, table: str) -> ExpectationRow:
        """The expectation that no pair came twice, over all shards."""
        return ExpectationRow(
            table_name=table,
            shard=ALL_SHARDS,
            expectation="expect_compound_columns_to_be_unique",
            column_name=", ".join(PAIR_KEYS),
            kwargs={"column_list": list(PAIR_KEYS)},
            severity="critical",
            success=self._repeated == 0,
            raised_exception=False,
            unexpected_count=self._repeated,
            examples=self._examples,
        )
