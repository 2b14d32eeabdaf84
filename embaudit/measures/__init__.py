"""All measures, in the order in which an audit runs and shows them: embaudit's own, then those of other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embaudit.measures.listed import DEFAULT_MEASURES, MEASURES, Measure, MeasureName, MeasureSettings

__all__ = ["DEFAULT_MEASURES", "MEASURES", "Measure", "MeasureName", "MeasureSettings"]


def __getattr__(name: str) -> Any:
    """Listed on first use: a passport is verified in the time that importing every measure takes."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from embaudit.measures import listed

    return getattr(listed, name)
