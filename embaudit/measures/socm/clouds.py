"""A text as a cloud of token embeddings, scaled so that its mean has unit length (arXiv 2604.27398, §3).

    X ← X/‖μ‖,   Σ = (1/n) Σ_j (x_j − μ)(x_j − μ)ᵀ

A cloud keeps the model's values (float32: 5 000 texts of 80 tokens at d = 384 take 0.6 GB) and centres them in float64
when a block of texts is compared. Pooling weights other than 1/n (SIF) give other clouds of the same tokens.

Two texts' tokens are projected onto a plane as in the paper's figures: PCA without centring, which preserves the means.
With X̂ the tokens of both texts, each text scaled by 1/‖μ‖, the plane is spanned by the first two right singular vectors
of X̂: directions from the origin, not from the mean. The report draws the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from embaudit.words.errors import MeasureError, NotMeasurable

# SOCM is in [0, 1] only if tr Σ ≤ 2 (paper, §3); texts beyond it are flagged, never clipped.
TRACE_BOUND = 2.0
# For tokens of equal length, ‖mean x̂‖² = 1/(1 + tr Σ): the 1/3 in the paper's Appendix J is equivalent to tr Σ ≤ 2.
COSINE_BOUND = 1 / 3
# A mean this short relative to the tokens is rounding error: X/‖μ‖ would be noise.
MIN_RELATIVE_NORM = 1e-6


@dataclass(frozen=True)
class TokenCloud:
    """One text's tokens, with their scaling.

    Attributes:
        position: index of the text in its corpus.
        tokens: (n, d), the final token embeddings as returned by the model.
        peak: largest absolute entry of ``tokens``, divided out first so that squares do not overflow.
        relative_norm: ‖μ‖/peak.
        unit_mean: (d,) float64, μ/‖μ‖.
        trace: tr Σ, the mean squared distance of the scaled tokens from their mean; 0 for a one-token text.
        weights: (n,) float64, weights of the tokens in the mean, summing to 1; None for 1/n each.
    """

    position: int
    tokens: np.ndarray
    peak: float
    relative_norm: float
    unit_mean: np.ndarray
    trace: float
    weights: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of pooled tokens, special tokens included."""
        return int(self.tokens.shape[0])

    @property
    def mean_norm(self) -> float:
        """‖μ‖ before scaling."""
        return self.relative_norm * self.peak

    @property
    def centred(self) -> np.ndarray:
        """(n, d) float64, (X − μ)/‖μ‖."""
        # In place, since this is repeated for every block that the text is compared with.
        X = self.tokens.astype(np.float64)
        X /= self.peak
        X /= self.relative_norm
        X -= self.unit_mean
        return X

    @property
    def rows(self) -> np.ndarray:
        """R, (n, d) float64 with RᵀR = Σ: the centred tokens times the square roots of their weights."""
        X = self.centred
        X *= 1 / np.sqrt(self.n) if self.weights is None else np.sqrt(self.weights)[:, None]
        return X

    @property
    def mean_cosine(self) -> float | None:
        """(1/n²) Σ_jk cos(x_j, x_k) = ‖mean x̂‖²; None if a token vector is zero."""
        X = self.tokens.astype(np.float64) / self.peak
        lengths = np.linalg.norm(X, axis=1)
        if not lengths.min() > 0:
            return None
        return float(np.square((X / lengths[:, None]).mean(axis=0)).sum())


def token_cloud(position: int, token_embeddings: np.ndarray, weights: np.ndarray | None = None) -> TokenCloud:
    """Scale one text's final token embeddings X, (n, d) of any float type.

    Args:
        weights: (n,) weights of the tokens in the mean, on any scale; 1/n each by default.

    Raises:
        MeasureError: if there is no token, or X contains NaN or infinity.
        NotMeasurable: if ‖μ‖ is so small that X/‖μ‖ is undefined.
    """
    X = np.asarray(token_embeddings)
    if X.shape[0] == 0:
        raise MeasureError(
            f"SOCM: text {position} has no tokens.",
            kept="The other texts' embeddings are unaffected.",
            next_step="Remove blank texts from the corpus.",
        )
    if not np.isfinite(X).all():
        raise MeasureError(
            f"SOCM: the token embeddings of text {position} contain NaN or infinity.",
            kept="The other texts' embeddings are unaffected.",
            next_step="In half precision try --dtype float32; otherwise the checkpoint is damaged.",
        )
    peak = float(np.abs(X).max()) or 1.0
    scaled = X.astype(np.float64) / peak
    shares = None if weights is None else np.asarray(weights, dtype=np.float64) / np.sum(weights)
    mean = scaled.mean(axis=0) if shares is None else shares @ scaled
    norm = float(np.linalg.norm(mean))
    longest = float(np.linalg.norm(scaled, axis=1).max())
    if not norm > MIN_RELATIVE_NORM * longest:
        raise NotMeasurable(
            f"SOCM is undefined for text {position}: the mean of its {len(X)} tokens is zero "
            f"(‖μ‖ = {norm * peak:.1e}).",
            kept="The other texts' embeddings are unaffected.",
            next_step="Remove that text from the corpus.",
        )
    distances = np.square(scaled - mean).sum(axis=1)
    trace = float((distances.mean() if shares is None else shares @ distances) / norm**2)
    return TokenCloud(position, X, peak, norm, mean / norm, trace, shares)


@dataclass(frozen=True)
class UndefinedText:
    """A text without a cloud, because its tokens average to zero."""

    position: int
    tokens: int
    mean_norm: float


def clouds_of(texts: Iterable[tuple[int, np.ndarray]]) -> tuple[list[TokenCloud], list[UndefinedText]]:
    """Clouds of (position, X) in any order, sorted by position; and the texts without one.

    Raises:
        MeasureError: if a text has no tokens, or they contain NaN or infinity.
    """
    clouds: list[TokenCloud] = []
    undefined: list[UndefinedText] = []
    for position, X in texts:
        try:
            clouds.append(token_cloud(position, X))
        except NotMeasurable:
            # In float64, since the mean of huge float32 values would overflow.
            undefined.append(UndefinedText(position, len(X), float(np.linalg.norm(X.astype(np.float64).mean(axis=0)))))
    return sorted(clouds, key=lambda cloud: cloud.position), sorted(undefined, key=lambda text: text.position)


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
