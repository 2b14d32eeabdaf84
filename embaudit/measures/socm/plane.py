"""Projects two texts' tokens onto a plane, as in the paper's figures: PCA without centring, which preserves the means.

With X̂ the tokens of both texts, each text scaled by 1/‖μ‖, the plane is spanned by the first two right singular vectors
of X̂: directions from the origin, not from the mean. The report draws the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.measures.socm.clouds import TokenCloud


@dataclass(frozen=True)
class Plane:
    """Coordinates of two texts' tokens and means, float64.

    Attributes:
        first, second: (n, 2) tokens.
        first_mean, second_mean: (2,) the projections of their unit means.
        share: share of the tokens' squared length that the plane keeps.
    """

    first: np.ndarray
    second: np.ndarray
    first_mean: np.ndarray
    second_mean: np.ndarray
    share: float


def shared_plane(first: TokenCloud, second: TokenCloud) -> Plane:
    """Project both texts. Axis signs are fixed by the larger mean coordinate, so that reruns agree."""
    rows = [cloud.centred + cloud.unit_mean for cloud in (first, second)]
    stacked = np.concatenate(rows)
    _, sizes, axes = np.linalg.svd(stacked, full_matrices=False)
    axes = axes[:2] if len(axes) > 1 else np.concatenate([axes, np.zeros_like(axes)])
    means = np.stack([first.unit_mean, second.unit_mean])
    along = means @ axes.T
    strongest = along[np.abs(along).argmax(axis=0), [0, 1]]
    axes = axes * np.where(strongest < 0, -1.0, 1.0)[:, None]
    return Plane(
        first=rows[0] @ axes.T,
        second=rows[1] @ axes.T,
        first_mean=means[0] @ axes.T,
        second_mean=means[1] @ axes.T,
        share=float(np.square(sizes[:2]).sum() / np.square(sizes).sum()),
    )
