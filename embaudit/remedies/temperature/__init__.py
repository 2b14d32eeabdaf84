"""TempScale: softmax(QKᵀ/(τ√d)) on an existing checkpoint, by scaling its weights (arXiv 2410.24200, §5).

``temperatures`` holds the requested values, ``support`` says whether a family allows them, ``plan`` which rows to
divide; ``context`` scales a loaded model temporarily, ``probe`` asserts that it took effect. ``apply`` writes a scaled
checkpoint, with ``places`` and ``card``.
"""

from embaudit.remedies.temperature.context import temperature
from embaudit.remedies.temperature.plan import Scaling, plan_scalings
from embaudit.remedies.temperature.support import Support, support_of
from embaudit.remedies.temperature.temperatures import Temperatures

__all__ = ["Scaling", "Support", "Temperatures", "plan_scalings", "support_of", "temperature"]
