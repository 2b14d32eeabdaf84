"""How far another precision may move a figure.

A figure of one audit in half precision and of the other in float32 (a machine that is faster in it, ``--dtype``) has
changed only if it moved by more than the precision explains.
"""

from __future__ import annotations

from typing import Protocol

FULL = "float32"
# Of a 95 % interval's width: a validation in half precision that moves a figure by more is made in float32.
OF_INTERVAL = 0.1
# Of a figure's size, and of a figure below 1 so much in itself: measured, see docs/methods.md.
OF_VALUE, LEAST = 0.02, 0.002


class Measured(Protocol):
    """A figure, as gates and comparisons read it."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def dtype(self) -> str: ...


def moved_by_precision(own: Measured, before: Measured) -> float:
    """How far the two figures may be apart because of their precision alone; 0 if it is the same."""
    if own.dtype == before.dtype:
        return 0.0
    sizes = [abs(one.value) for one in (own, before) if one.value is not None]
    widths = [one.high - one.low for one in (own, before) if one.low is not None and one.high is not None]
    return max(LEAST, OF_VALUE * max(sizes, default=0.0), OF_INTERVAL * max(widths, default=0.0))
