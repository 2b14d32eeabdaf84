"""What a measure is: its name, its question, its settings and where its parts are.

A measure is named once, in ``embaudit.measures.MEASURES``; plan, audit flow, log, gate and command line go over that
list. Its sub-flow is ``embaudit_flows.NAME:NAME``, called with the plan and the ingested corpora by name, and where it
builds on other measures with what those staged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field

from embaudit.draw import Draw, How
from embaudit.measures.workload import Readable, Work

if TYPE_CHECKING:
    from embaudit.figure import Summary
    from embaudit.finding import Finding, Rows
    from embaudit.table import Row


class Asked(Protocol):
    """What a request may ask of any measure (``embaudit.request.AuditSettings``)."""

    @property
    def corpora(self) -> Mapping[str, str]: ...
    @property
    def measure_settings(self) -> Mapping[str, dict[str, Any]]: ...
    @property
    def draw(self) -> How | None: ...
    @property
    def exhaustive(self) -> bool: ...
    @property
    def reference(self) -> bool: ...
    @property
    def scan_dtype(self) -> Literal["auto", "float32", "bfloat16", "float16"] | None: ...


class MeasureSettings(BaseModel):
    """What a profile says of one measure; ``corpora`` names the corpora that it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpora: tuple[str, ...] = ()

    @property
    def builds_on(self) -> tuple[str, ...]:
        """Measures of the same audit whose tables it reads; they stand before it in the list."""
        return ()

    def requested(self, request: Asked) -> Self:
        """These settings with what one request changes of them.

        Raises:
            UsageError: if a change does not fit.
        """
        return self

    @property
    def mined_negatives(self) -> int:
        """Passages per query that it wants of a corpus of hard negatives that are mined."""
        return 1

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        """What it reads of a corpus of so many rows; where a measure does not say, it may look at all of them."""
        return Draw(rows=rows)

    def work(self, readable: Readable) -> Iterator[Work]:
        """About what it gives the model, from which an audit's time is estimated; nothing where nobody knows."""
        yield from ()


class DrawnSettings(MeasureSettings):
    """Settings of a measure that reads some rows of each corpus."""

    texts: int
    draw: How = Field(
        default="random", description="which rows of a corpus are read: drawn at random by the seed, or the first"
    )

    def requested(self, request: Asked) -> Self:
        return self if request.draw is None else self.model_copy(update={"draw": request.draw})

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        return Draw.of(self.texts, rows, self.draw, seed)

    def work(self, readable: Readable) -> Iterator[Work]:
        for corpus in self.corpora:
            yield readable.read(corpus, self.texts)


# So many, or every one.
Size = int | Literal["all"]


class DownstreamSettings(MeasureSettings):
    """Settings of a measure that scores what embeddings are used for: what tasks take of their corpora, and how."""

    corpora: tuple[Literal["longdocs", "retrieval", "sts"], ...] = Field(
        default=("longdocs", "retrieval", "sts"),
        description="labelled texts, a collection with judged queries, scored pairs",
    )
    texts: int = Field(default=1_000, ge=4, description="labelled texts")
    documents: Size = Field(default=1_200, description="of the collection, relevant ones first; or all")
    queries: Size = Field(default=300, description="of the collection, or all")
    pairs: int = Field(default=1_000, ge=4, description="scored pairs")
    folds: int = Field(default=5, ge=2, description="of the cross-validation, in each half")
    neighbours: int = Field(default=5, ge=1, description="k of the nearest neighbours")
    resamples: int = Field(default=1_000, ge=100, description="of the paired bootstrap")

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        """Labelled texts are drawn; pairs are picked among those that have a score, documents by their queries."""
        return (
            Draw.of(self.texts, rows, "random", seed) if corpus == "longdocs" else super().draw_from(corpus, rows, seed)
        )

    def one_pass(self, readable: Readable, times: float) -> Iterator[Work]:
        """All texts of all corpora, so many times."""
        for corpus in self.corpora:
            yield self.texts_of(corpus, readable, times)

    def texts_of(self, corpus: str, readable: Readable, times: float) -> Work:
        """All texts that tasks take of one corpus, so many times."""
        most = {"longdocs": self.texts, "retrieval": self.documents, "sts": 2 * self.pairs}[corpus]
        return readable.read(corpus, readable.rows[corpus] if most == "all" else most, times=times)


@dataclass(frozen=True)
class Measure:
    """One measure of an audit.

    Attributes:
        question: what it answers, in one line.
        settings: its part of a profile.
        version: rises when values change, and with it every key of its steps.
        rows: its published tables.
        view_summaries: views over them that have figures, which gates and regressions know.
        headline_figures: of its figures those that a reader asks for first of two audits, by summary.
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
    headline_figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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
