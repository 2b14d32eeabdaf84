"""TempScale: softmax(QKᵀ/(τ√d)) on an existing checkpoint, by scaling its weights (arXiv 2410.24200, §5).

``temperatures`` holds the requested values, ``plan`` says whether a family allows them, and which rows to divide;
``context`` scales a loaded model temporarily, and asserts that it took effect. ``apply`` writes a scaled checkpoint.
"""

from embaudit.remedies.temperature.context import temperature
from embaudit.remedies.temperature.plan import Scaling, Support, Temperatures, plan_scalings, support_of

__all__ = ["Scaling", "Support", "Temperatures", "plan_scalings", "support_of", "temperature"]
