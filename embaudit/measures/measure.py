"""A measure: its name, question and settings, and where its parts are.

Measures are listed once, in ``embaudit.measures.MEASURES``; plan, audit flow, log, gate and command line iterate over
that list. Other packages add theirs by an entry point (``embaudit.measures.listed``).

Estimates an audit's duration from its plan: the operations of its measures, over what a layer reaches here.

In a forward pass of L layers of width d, a token in a sequence of n tokens takes 2N + 4Lnd operations: two for each of
the N = 12Ld² weights of a transformer (Kaplan et al., arXiv 2001.08361, table 1), plus the attention products. Work
other than encoding is counted in core seconds if it is comparable. How fast operations are depends on the precision
that they run in, so each piece of work names its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field

from embaudit.corpora.draw import Draw, How
from embaudit.declared.table import Row, column

if TYPE_CHECKING:
    from embaudit.declared.figure import Summary
    from embaudit.declared.rule import Finding, Rows
    from embaudit.measures.run import Run
    from embaudit.steps.results import Staged


class OfCorpus(Row):
    """A row about a corpus."""

    corpus: str = column("Name of the corpus in this audit.")


# The audit's own (``--dtype``); that of the scan, which is half precision where this is clearly faster; or float32
# whatever the audit runs in.
Precision = Literal["audit", "scan", "float32"]

# For each layer and number of a state. Measured once: all-MiniLM-L6-v2 on two cores, 27 µs a token in either precision,
# beside layers at 137 GFLOP/s in float32 and 275 in bfloat16.
BESIDE_LAYERS = 1_600


@dataclass(frozen=True)
class Work:
    """``texts`` sequences of about ``tokens`` tokens each, special tokens included, that a measure encodes.

    Attributes:
        core_seconds: single-core time of further work on them.
        is_shared: whether other measures of the same audit find it done if it is equal to theirs.
        runs_in: the precision in which they are encoded.
    """

    texts: float
    tokens: float
    core_seconds: float = 0.0
    is_shared: bool = False
    runs_in: Precision = "audit"


@dataclass(frozen=True)
class Readable:
    """Sizes of a checkpoint and of the corpora that an audit reads.

    Attributes:
        heads: total over all layers.
        vocabulary, searched: number of entries, and of those in the search.
        max_length: longest input in tokens.
        rows, tokens: by corpus, the number of texts or pairs, and their estimated mean length.
    """

    layers: int
    heads: int
    hidden_size: int
    vocabulary: int
    searched: int
    max_length: int
    rows: Mapping[str, int]
    tokens: Mapping[str, float]

    def read(self, corpus: str, wanted: float, *, times: float = 1.0, up_to: float | None = None) -> Work:
        """``wanted`` texts of a corpus (or all, if fewer), each encoded ``times`` times, up to a length."""
        length = min(self.tokens[corpus], self.max_length if up_to is None else up_to)
        return Work(times * min(wanted, self.rows[corpus]), length)

    def operations(self, work: Work) -> float:
        """Operations that encoding its texts takes."""
        weights = 12 * self.layers * self.hidden_size**2
        per_token = 2 * weights + 4 * self.layers * work.tokens * self.hidden_size
        return work.texts * work.tokens * per_token

    def beside_layers(self, work: Work) -> float:
        """Operations that take as long in float32 as what tokens cost beside their layers: ids, masks, pooling."""
        return work.texts * work.tokens * BESIDE_LAYERS * self.layers * self.hidden_size

    def seconds(self, work: Iterable[Work], operations_per_second: Mapping[Precision, float], cores: int) -> float:
        """Duration at the throughput of each precision; what is no product is no faster in half precision."""
        rates = operations_per_second
        return sum(
            self.operations(one) / rates[one.runs_in]
            + self.beside_layers(one) / rates.get("float32", rates[one.runs_in])
            + one.core_seconds / cores
            for one in work
        )


class Asked(Protocol):
    """What a request may change in any measure's settings (``embaudit.questions.audit.AuditSettings``)."""

    @property
    def corpora(self) -> Mapping[str, str]: ...
    @property
    def measure_settings(self) -> Mapping[str, dict[str, Any]]: ...
    @property
    def draw(self) -> How | None: ...


class MeasureSettings(BaseModel):
    """A profile's settings for one measure; ``corpora`` names the corpora that it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpora: tuple[str, ...] = ()

    @property
    def builds_on(self) -> tuple[str, ...]:
        """Measures of the same audit whose tables it reads; they precede it in the list."""
        return ()

    def requested(self, request: Asked) -> Self:
        """These settings with a request's changes applied.

        Raises:
            UsageError: if a change is invalid.
        """
        return self

    def without_sample(self, request: Asked) -> Self:
        """These settings, reading only corpora that the request gives: for a measure with a sample of its own."""
        given = (name for name in self.corpora if request.corpora.get(name, "sample") != "sample")
        return self.model_copy(update={"corpora": tuple(given)})

    @property
    def mined_negatives(self) -> int:
        """Passages per query to mine for a corpus of hard negatives."""
        return 1

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        """Which of a corpus's rows it reads; all of them by default."""
        return Draw(rows=rows)

    def work(self, readable: Readable) -> Iterator[Work]:
        """Approximate model input, for estimating an audit's duration; nothing if unknown."""
        yield from ()


class DrawnSettings(MeasureSettings):
    """Settings of a measure that reads a sample of each corpus."""

    texts: int
    draw: How = Field(
        default="random", description="which rows of a corpus are read: a random sample by the seed, or the first ones"
    )

    def requested(self, request: Asked) -> Self:
        return self if request.draw is None else self.model_copy(update={"draw": request.draw})

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        return Draw.of(self.texts, rows, self.draw, seed)

    def work(self, readable: Readable) -> Iterator[Work]:
        for corpus in self.corpora:
            yield readable.read(corpus, self.texts)


# A number, or all.
Size = int | Literal["all"]


class DownstreamSettings(MeasureSettings):
    """Settings of a measure that scores downstream tasks: how much of each corpus they use, and how."""

    corpora: tuple[Literal["longdocs", "retrieval", "sts"], ...] = Field(
        default=("longdocs", "retrieval", "sts"),
        description="labelled texts, a collection with judged queries, scored pairs",
    )
    texts: int = Field(default=1_000, ge=4, description="labelled texts")
    documents: Size = Field(default=1_200, description="documents of the collection, relevant ones first; or all")
    queries: Size = Field(default=300, description="queries of the collection, or all")
    pairs: int = Field(default=1_000, ge=4, description="scored pairs")
    folds: int = Field(default=5, ge=2, description="cross-validation folds, in each half")
    neighbours: int = Field(default=5, ge=1, description="k of nearest-neighbour classification")
    resamples: int = Field(default=1_000, ge=100, description="resamples of the paired bootstrap")

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        """Labelled texts are sampled; tasks choose pairs among those with a score, and documents by their queries."""
        return (
            Draw.of(self.texts, rows, "random", seed) if corpus == "longdocs" else super().draw_from(corpus, rows, seed)
        )

    def one_pass(self, readable: Readable, times: float) -> Iterator[Work]:
        """All texts of all corpora, encoded ``times`` times."""
        for corpus in self.corpora:
            yield self.texts_of(corpus, readable, times)

    def texts_of(self, corpus: str, readable: Readable, times: float) -> Work:
        """All texts that tasks use of one corpus, encoded ``times`` times."""
        most = {"longdocs": self.texts, "retrieval": self.documents, "sts": 2 * self.pairs}[corpus]
        return readable.read(corpus, readable.rows[corpus] if most == "all" else most, times=times)


@dataclass(frozen=True)
class Parts:
    """What a measure does; its modules are imported when one of these is needed.

    Attributes:
        measure: runs its steps, and returns what they staged.
        findings: what its staged tables show, in an audit that ran it.
        page: the module of its section of an audit's page: ``FACTS``, the queries, and ``section``, which renders them
            (None if the audit left the measure out).
    """

    measure: Callable[[Run], list[Staged]]
    findings: Callable[[Rows, Any], Iterator[Finding]]
    page: Any


def parts_of(package: str) -> Callable[[], Parts]:
    """The parts of a measure by where they are: commands that measure nothing import none of these modules.

    ``measure(run)`` is in the package's ``steps``, ``findings(rows, settings)`` in ``findings``, the section in
    ``page`` or with the findings; a small measure has all of them in ``work``.
    """

    def parts() -> Parts:
        def module(*names: str) -> Any:
            # Also found, without an origin: a folder that an older checkout left, with nothing but __pycache__ in it.
            specs = filter(None, (find_spec(f"{package}.{one}") for one in names))
            return import_module(next(spec.name for spec in specs if spec.origin))

        findings = module("findings", "work")
        return Parts(module("steps", "work").measure, findings.findings, module("page", "findings", "work"))

    return parts


@dataclass(frozen=True)
class Measure:
    """One measure of an audit.

    Attributes:
        package: the package that it is in; files of its folder ``queries`` are named queries.
        question: the question that it answers, in one line.
        parts: imports what it does (``parts_of``).
        settings: its part of a profile.
        version: to be increased when values change, which changes the keys of all its steps.
        rows: its published tables.
        view_summaries: views over them that have figures, for gates and regressions.
        headline_figures: by summary, the figures shown first when two audits are compared.
        shares: by table, a figure from 0 to 1 of which 1 is best: what a chart of several measures shows side by side.
        is_default: whether an audit includes it unless told otherwise.
        is_sharded: whether its shards may be computed elsewhere (``EMBAUDIT_RUNNER``).
        shown_tables: tables small enough to show on a page of the Prefect UI.
    """

    name: str
    package: str
    question: str
    parts: Callable[[], Parts]
    settings: type[MeasureSettings]
    version: int
    rows: tuple[type[Row], ...]
    view_summaries: tuple[Summary, ...] = ()
    headline_figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shares: Mapping[str, str] = field(default_factory=dict)
    is_default: bool = True
    is_sharded: bool = False
    shown_tables: tuple[str, ...] = ()


# The corpus of documents, as ``embaudit.corpora.judged`` names it.
DOCUMENTS = "retrieval"
# Of the embedded sample: its documents, and the length of these with their queries; and its queries.
SAMPLE_DOCUMENTS, SAMPLE_TOKENS = 270, 110
SAMPLE_QUERIES = 90


class CollectionSettings(MeasureSettings):
    """Settings of a measure that searches a judged collection."""

    corpora: tuple[Literal["retrieval"], ...] = Field(
        default=("retrieval",), description="a collection with judged queries; without one, a sample of its own"
    )
    documents: int = Field(default=600, ge=2, description="documents of the collection, relevant ones first")
    queries: int = Field(default=200, ge=4, description="queries of the collection")

    def requested(self, request: Asked) -> Self:
        """Its own sample is larger than the embedded corpora, and takes their place."""
        return self.without_sample(request)

    def work(self, readable: Readable) -> Iterator[Work]:
        """The collection, which the first of the measures that search it encodes."""
        if self.corpora:
            yield replace(readable.read(DOCUMENTS, self.documents), is_shared=True)
        else:
            yield Work(SAMPLE_DOCUMENTS, min(SAMPLE_TOKENS, readable.max_length), is_shared=True)
