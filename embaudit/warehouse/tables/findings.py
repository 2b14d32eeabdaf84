"""Findings: an audit's results in words, and its verdict."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.rule import Level
from embaudit.declared.table import Row, Series, column, rule

AuditVerdict = Literal["do not serve", "could not be checked", "look first", "nothing found wrong", "not checked"]


class FindingRow(Row, table="finding", key=("measure", "name")):
    """What a measure's figures mean for whoever deploys the checkpoint; docs/findings.md lists every rule."""

    measure: str = column("Measure that found it; audit: about the audit as a whole.")
    name: str = column("The rule behind it; stable across audits.")
    place: int = column("Order within the audit, from 0.", ge=0)
    level: Level = column("problem, look, ok; not measured: not enough evidence to say.")
    sentence: str = column("What was found, with its number and interval.")
    meaning: str | None = column("What it means for texts in production.")
    advice: str | None = column("What to do next.")
    value: float | None = column("The number in the sentence.")
    low: float | None = column("Lower end of its 95 % interval.")
    high: float | None = column("Upper end of its 95 % interval.", at_least="low")

    @rule
    def values_lie_in_intervals(value: Series, low: Series, high: Series) -> Series:
        """An interval has two ends, with the value between them."""
        has_one = low.notna()
        return (has_one == high.notna()) & (~has_one | value.notna() & ~((value < low) | (value > high)))


class VerdictRow(Row, table="verdict", key=("kind",)):
    """Whether the checkpoint may be served; one row per audit."""

    kind: AuditVerdict = column(
        "do not serve: integrity or quality found a problem; look first: something was found; not checked: integrity "
        "and quality were not measured; could not be checked: a part of them failed."
    )
    line: str = column("The verdict in one line.")
    cause: str | None = column("The rule that most likely explains the others, as in finding; null without a problem.")
    looks: int = column("Number of findings to look at first.", ge=0)
    unmeasured: int = column("Number of findings that say what was not measured.", ge=0)

    @rule
    def only_problems_have_a_cause(kind: Series, cause: Series) -> Series:
        """A cause is named where the checkpoint must not be served, and only there."""
        return (kind == "do not serve") == cause.notna()


ROWS: tuple[type[Row], ...] = (FindingRow, VerdictRow)
