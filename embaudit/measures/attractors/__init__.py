"""Attractors: which texts stand in everyone's results, and do texts without content stand above relevant ones?

Hubs. Every document d of a collection asks for its k = 10 nearest others, and every query q for its ten best documents:

    N(x) = number of these askers that have document x among their ten,
    S = E[(N − μ)³]/σ³ over the documents                           Radovanović et al. 2010, JMLR 11

beside S of the ranking by TF-IDF and of random vectors of as many documents with the same effective rank.

Junk. Texts of our own that stand in real indexes without saying anything (navigation, cookie notices, error pages,
lorem ipsum, …) are added to the documents. Of each kind A and over the queries q:

    met   = share with a text of A among the ten best of documents and A
    above = share for which max cos(q, a) over A exceeds max cos(q, d) over the documents relevant for q
    clean = share for which no text of any kind does

Users of vector search report that very short segments with little to say dominate its results (apache/lucene#16263).
Whoever serves the checkpoint learns what to keep out of the index, and how many results such texts will take.
"""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.declared.figure import Worse
from embaudit.declared.table import SHARE, Interval, Row, Series, column, rule
from embaudit.measures.measure import CollectionSettings, Measure, Readable, Work, parts_of

# The added texts, and their tokens.
TEXTS, TOKENS = 54, 20


class AttractorsSettings(CollectionSettings):
    """Settings of the attractors measure."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        yield Work(TEXTS, min(TOKENS, readable.max_length))


OVER_QUERIES = Interval("Wilson's interval of a share of queries, null below ten")
OVER_ASKERS = Interval("bootstrap over askers, ± 1.96 standard deviations, null below ten")


class AttractorRow(Row, table="attractor", key=("kind",), item="{kind}"):
    """Texts of one kind that say nothing, added to the documents of a collection."""

    kind: str = column("Kind of text.")
    data_set: str = column("The collection that is searched; sample is the embedded one.")
    texts: int = column("Texts of the kind.", ge=1)
    queries: int = column("Queries of the collection.", ge=1)
    occurrences: int = column("Places that they take among the ten best, over all queries.", ge=0)
    met: float = column(
        "Share of queries with one of them among the ten best.",
        within=SHARE,
        figure=Worse("higher", absolute=0.02),
        interval=OVER_QUERIES,
    )
    chance: float = column("The same share if documents and these texts were ranked at random.", within=SHARE)
    above: float = column(
        "Share of queries for which one of them stands above every relevant document.",
        within=SHARE,
        figure=Worse("higher", absolute=0.02),
        interval=OVER_QUERIES,
    )
    worst_text: str | None = column(
        "The text that stands above the relevant documents of most queries, or else is met by most; null if none is."
    )
    words_met: float | None = column("The same as met in the ranking by TF-IDF; null without words.", within=SHARE)
    words_above: float | None = column("The same as above in the ranking by TF-IDF; null without words.", within=SHARE)


class HubRow(Row, table="hub", key=("data_set", "rank")):
    """One of the ten documents that are among the ten nearest of most askers."""

    data_set: str = column("The collection that is searched; sample is the embedded one.")
    rank: int = column("1 is the document with the most occurrences.", within=(1, 10))
    text: str = column("Beginning of the document.")
    words: int = column("Words of the document.", ge=0)
    occurrences: int = column("Askers, documents and queries, that have it among their ten nearest.", ge=0)
    words_occurrences: int | None = column("The same in the ranking by TF-IDF; null without words.", ge=0)
    met: float = column("Share of the queries that have it among their ten best.", within=SHARE)
    relevant: int = column("Queries that it is relevant for.", ge=0)
    above_relevant: int = column(
        "Queries for which it stands above every relevant document, though it is not relevant for them.", ge=0
    )


class AttractorSummaryRow(Row, table="attractor_summary", key=("data_set",), item="{data_set}"):
    """Hubs and texts without content in one collection."""

    data_set: str = column("The collection that is searched; sample is the embedded one.")
    documents: int = column("Its documents.", ge=1)
    queries: int = column("Its queries.", ge=1)
    texts: int = column("Texts without content that were added, of all kinds.", ge=1)
    skew: float | None = column(
        "Skewness of the occurrences of the documents; null up to twenty documents, or if all occur equally often.",
        figure=Worse("higher", relative=0.2),
        interval=OVER_ASKERS,
    )
    words_skew: float | None = column("The same in the ranking by TF-IDF.")
    random_skew: float | None = column("The same for random vectors with the documents' effective rank, mean of draws.")
    top_share: float | None = column(
        "Share of the askers that have the most frequent document among their ten nearest; null like skew.",
        within=SHARE,
        figure=Worse("higher", absolute=0.05),
        interval=Interval("Wilson's interval of a share of askers, null below ten"),
    )
    words_top_share: float | None = column("The same in the ranking by TF-IDF.", within=SHARE)
    clean: float = column(
        "Share of queries for which no text without content stands above every relevant document.",
        within=SHARE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_QUERIES,
    )
    words_clean: float | None = column("The same in the ranking by TF-IDF; null without words.", within=SHARE)

    @rule
    def a_hub_needs_documents(documents: Series, skew: Series) -> Series:
        """Up to twenty documents, most are neighbours of most others."""
        return skew.isna() | (documents > 20)


ROWS: tuple[type[Row], ...] = (AttractorRow, HubRow, AttractorSummaryRow)

MEASURE_VERSION = 1

MEASURE = Measure(
    name="attractors",
    package=__name__,
    question="Which texts stand in everyone's results?",
    parts=parts_of(__name__),
    settings=AttractorsSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"attractor_summary": ("clean",)},
    shares={"attractor_summary": "clean"},
    # It encodes a collection, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("attractor", "hub", "attractor_summary"),
)
