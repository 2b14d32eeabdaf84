"""TempScale: softmax(QKᵀ/(τ√d)) on a checkpoint as it is, by its weights (Length-Induced Embedding Collapse, §5).

``temperatures`` is what was asked for, ``support`` says whether a family allows it, ``plan`` which rows that divides,
``context`` does it for a while, ``probe`` asserts that it took effect. ``apply`` writes it down as a checkpoint, with
``places``, ``tensors`` and ``card``.
"""

from embaudit.tempscale.context import temperature
from embaudit.tempscale.plan import Scaling, plan_scalings
from embaudit.tempscale.support import Support, support_of
from embaudit.tempscale.temperatures import Temperatures

__all__ = ["Scaling", "Support", "Temperatures", "plan_scalings", "support_of", "temperature"]
