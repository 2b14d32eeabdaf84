"""Two halves of a task's items by what they say: τ is chosen on one and reported on the other.

An item's half depends on the seed, its own text and the texts beside it, never on the order of a file. Items that share
a text (queries with one relevant document, pairs with one sentence) are one unit: they go to the same half, and the
bootstrap draws them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy

from embaudit.draw import content_order


def units_of(count: int, shared: Iterable[tuple[int, int]]) -> np.ndarray:
    """Which items belong together: the connected components of (item, item) links, as (count,) int64."""
    links = list(shared)
    rows = np.array([first for first, _ in links], dtype=np.int64)
    columns = np.array([second for _, second in links], dtype=np.int64)
    graph = scipy.sparse.coo_array((np.ones(len(links), dtype=np.int8), (rows, columns)), shape=(count, count))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)


def in_report(texts: Sequence[str], units: np.ndarray, seed: int, strata: Sequence[str] | None = None) -> np.ndarray:
    """True for the items of the report half: unit by unit into the smaller half, the larger units first.

    Args:
        texts: what each item says.
        units: (n,) from ``units_of``.
        strata: halve each of these alone (the classes of a classification); units must not cross them.
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
