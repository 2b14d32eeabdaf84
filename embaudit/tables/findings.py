"""What an audit's figures come to, in words."""

from __future__ import annotations

from embaudit.finding import Level
from embaudit.table import Row, Series, column, rule


class FindingRow(Row, table="finding", key=("measure", "name")):
    """What a measure's figures come to for somebody who serves the checkpoint; docs/findings.md has every rule."""

    measure: str = column("Measure that found it; audit: true of the audit as a whole.")
    name: str = column("Which rule found it; the same in every audit.")
    place: int = column("Order within the audit, from 0.", ge=0)
    level: Level = column("problem, look, ok; not measured: the evidence is too thin to say.")
    sentence: str = column("What was found, with its number and interval.")
    meaning: str | None = column("What it means for texts of somebody who serves the checkpoint.")
    advice: str | None = column("What to do next.")
    value: float | None = column("The number of the sentence.")
    low: float | None = column("Lower end of its 95 % interval.")
    high: float | None = column("Upper end of its 95 % interval.", at_least="low")

    @rule
    def values_lie_in_intervals(value: Series, low: Series, high: Series) -> Series:
        """An interval has two ends, and a value between them."""
        has_one = low.notna()
        return (has_one == high.notna()) & (~has_one | value.notna() & ~((value < low) | (value > high)))


ROWS: tuple[type[Row], ...] = (FindingRow,)
