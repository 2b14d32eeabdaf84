"""Splits a task's items into two halves by content: τ is chosen on one and reported on the other.

An item's half depends on the seed and on the texts, never on the order of a file. Items that share a text (queries a
relevant document, pairs a sentence) form one unit: they go to the same half, and are resampled together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy

from embaudit.corpora.draw import content_order


def units_of(count: int, shared: Iterable[tuple[int, int]]) -> np.ndarray:
    """Unit of each item: the connected components of (item, item) links, as (count,) int64."""
    links = list(shared)
    rows = np.array([first for first, _ in links], dtype=np.int64)
    columns = np.array([second for _, second in links], dtype=np.int64)
    graph = scipy.sparse.coo_array((np.ones(len(links), dtype=np.int8), (rows, columns)), shape=(count, count))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)


def in_report(texts: Sequence[str], units: np.ndarray, seed: int, strata: Sequence[str] | None = None) -> np.ndarray:
    """True for items in the report half: units are assigned to the smaller half, largest units first.

    Args:
        texts: content of each item.
        units: (n,) from ``units_of``.
        strata: split each stratum separately (the classes of a classification); units must not cross strata.
    """
    order = {place: rank for rank, place in enumerate(content_order(texts, seed))}
    by_stratum: dict[str, dict[int, list[int]]] = {}
    for place, unit in enumerate(units):
        stratum = by_stratum.setdefault(strata[place] if strata is not None else "", {})
        stratum.setdefault(int(unit), []).append(place)
    report = np.zeros(len(texts), dtype=bool)
    for stratum in by_stratum.values():
        sizes = [0, 0]
        for places in sorted(stratum.values(), key=lambda one: (-len(one), min(order[place] for place in one))):
            half = int(sizes[1] < sizes[0])
            sizes[half] += len(places)
            report[places] = half == 1
    return report
