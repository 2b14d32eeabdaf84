"""What a measure is: its name, its question, its settings and where its parts are.

A measure is named once, in ``embaudit.measures.MEASURES``; plan, audit flow, log, gate and command line go over that
list. Its sub-flow is ``embaudit_flows.NAME:NAME``, called with the plan and the ingested corpora by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from embaudit.figure import Summary
    from embaudit.finding import Finding, Rows
    from embaudit.request import AuditSettings
    from embaudit.table import Row


class MeasureSettings(BaseModel):
    """What a profile says of one measure; ``corpora`` names the corpora that it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpora: tuple[str, ...] = ()

    def requested(self, request: AuditSettings) -> Self:
        """These settings with what one request changes of them.

        Raises:
            UsageError: if a change does not fit.
        """
        return self


@dataclass(frozen=True)
class Measure:
    """One measure of an audit.

    Attributes:
        question: what it answers, in one line.
        settings: its part of a profile.
        version: rises when values change, and with it every key of its steps.
        rows: its published tables.
        view_summaries: views over them that have figures, which gates and regressions know.
        is_default: whether an audit includes it unasked.
        is_sharded: whether its shards may be computed elsewhere (``EMBAUDIT_RUNNER``).
        shown_tables: those of its tables that are small enough to be read on a page of the Prefect UI.
    """

    name: str
    question: str
    settings: type[MeasureSettings]
    version: int
    rows: tuple[type[Row], ...]
    view_summaries: tuple[Summary, ...] = ()
    is_default: bool = True
    is_sharded: bool = False
    shown_tables: tuple[str, ...] = ()

    @property
    def page(self) -> Any:
        """The module of its part of an audit's page: ``FACTS``, what it reads, and ``section``, what it makes of them.

        ``section(facts)`` is None where the audit left the measure out.
        """
        return import_module(f"embaudit.measures.{self.name}.page")

    def find(self, rows: Rows, settings: MeasureSettings) -> Iterator[Finding]:
        """What its figures come to, in an audit that ran it: ``findings`` of its module of that name."""
        found: Iterator[Finding] = import_module(f"embaudit.measures.{self.name}.findings").findings(rows, settings)
        return found
