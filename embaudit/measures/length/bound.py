"""The published upper bound on σ_a.

    σ_a ≤ √(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1))        (arXiv 2410.24200, as printed in the summary at hand)

with σ_s the standard deviation of the logits. It assumes i.i.d. Gaussian logits; ``python -m benchmarks bound``
simulates them.
"""

from __future__ import annotations

import numpy as np


def claimed_bound(n: int | np.ndarray, sigma_s: np.ndarray) -> np.ndarray:
    """√(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1)), elementwise."""
    steepness = 2 * np.sqrt(1 + np.exp(-2 * np.square(sigma_s))) * (np.asarray(n) - 1.0) ** 1.5
    return np.asarray(np.sqrt(n / (steepness + 1)))
