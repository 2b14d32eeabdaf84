"""A sample of a store that is too large to be read: groups of rows that lie together, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.statistics.intervals import exact_share, grouped_half_width

# A job that wrote wrong rows wrote them one after another: of fewer groups, most would have none of them or all.
FEWEST_GROUPS = 200


@dataclass(frozen=True)
class DrawnGroups:
    """Which rows of a store were read.

    Attributes:
        rows, groups: of the whole store.
        starts: (G,) number of the first row of each group that was read, among the rows that were read.
        read: rows that were read.
    """

    rows: int
    groups: int
    starts: np.ndarray
    read: int

    def clusters(self, numbers: np.ndarray) -> np.ndarray:
        """The group of each row that was read, by its number among them."""
        return np.searchsorted(self.starts, numbers, side="right") - 1

    def share(self, numbers: np.ndarray) -> tuple[float, float, float]:
        """The share of all rows that have a property, from the numbers of those that were read and have it.

        The groups are the units that were drawn: the interval is a jackknife over them (``grouped_half_width``). If
        none or all of the rows have it, it is that of the share of groups, which is wider.
        """
        sizes = np.diff(np.append(self.starts, self.read))
        hits = np.bincount(self.clusters(numbers), minlength=len(sizes))
        share = hits.sum() / self.read
        if share in (0, 1):
            return share, *exact_share(round(share * len(sizes)), len(sizes))
        without = (hits.sum() - hits) / (self.read - sizes)
        half = grouped_half_width(share, without, sizes / self.read) or 0.0
        return share, max(share - half, 0.0), min(share + half, 1.0)


def drawn_groups(sizes: Sequence[Sequence[int]], least: int, seed: int) -> tuple[list[list[int]], DrawnGroups]:
    """Groups drawn without replacement, each as likely as any other, until they have so many rows.

    Args:
        sizes: rows of each group, by file.

    Returns:
        The groups to be read, by file, and what is known of them.
    """
    all_groups = [(file, group, rows) for file, own in enumerate(sizes) for group, rows in enumerate(own) if rows]
    order = np.random.default_rng(seed).permutation(len(all_groups))
    rows = np.array([all_groups[place][2] for place in order])
    count = max(int(np.searchsorted(np.cumsum(rows), least) + 1), FEWEST_GROUPS)
    taken = sorted(order[:count].tolist())
    chosen: list[list[int]] = [[] for _ in sizes]
    for place in taken:
        file, group, _ = all_groups[place]
        chosen[file].append(group)
    lengths = [all_groups[place][2] for place in taken]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return chosen, DrawnGroups(sum(map(sum, sizes)), len(all_groups), starts, sum(lengths))
