"""Surface: does a query find the same documents when it is written otherwise?

For a change c (lower case, a typo, full-width letters, …) and the queries q of a judged collection that it changes,

    overlap@10 = mean over q of |top10(c(q)) ∩ top10(q)| / |top10(q)|
    change     = mean over q of nDCG@10(c(q)) − nDCG@10(q)
    moved      = mean over q of 1 − cos(c(q), q)

Documents stay as they are. Dense retrievers are known to lose by typos (Zhuang and Zuccon 2021, arXiv 2108.12139;
Sidiropoulos and Kanoulas 2022, arXiv 2205.02303); users report that a query in lower case finds other documents than
the same one with its capitals (FlagOpen/FlagEmbedding#934), or that all queries in capitals have one vector
(ollama/ollama#13942). Whoever serves the checkpoint learns which forms of a text
to bring into one before it is encoded, and which typos to correct.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import DIFFERENCE_OF_COSINES, SHARE, Interval, Row, Series, column, rule
from embaudit.measures.measure import SAMPLE_QUERIES, CollectionSettings, Measure, Readable, Work, parts_of

# Every change writes each query once more, a typo or a rare form in more tokens; a tokenizer that writes some of them
# alike leaves fewer.
CHANGES, TOKENS = 14, 18


class SurfaceSettings(CollectionSettings):
    """Settings of the surface measure."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        queries = self.queries if self.corpora else SAMPLE_QUERIES
        yield Work(CHANGES * queries, min(TOKENS, readable.max_length))


OVER_QUERIES = Interval("bootstrap over queries that share no relevant document, null below ten or if all are equal")
DIFFERENCE = (-1, 1)


class SurfaceRow(Row, table="surface", key=("change",), item="{change}"):
    """What a change of their form does to the queries of a collection; documents stay as they are."""

    change: str = column("What is changed in a query.")
    kind: Literal["case", "typos", "punctuation", "unicode", "spaces", "spelling"] = column("Kind of change.")
    data_set: str = column("The collection that is searched; sample is the embedded one.")
    documents: int = column("Its documents.", ge=1)
    queries: int = column("Queries that are written otherwise after the change; the figures are about these.", ge=0)
    unchanged: int = column("Queries that the change leaves as they are.", ge=0)
    units: int = column("Groups of the queries that share no relevant document.", ge=0)
    same_tokens: float | None = column(
        "Share of the queries whose token ids stay the same, so that nothing can change; null without queries.",
        within=SHARE,
        figure=Worse("lower", absolute=0.02),
    )
    unwritten: float | None = column(
        "Share of the queries that get an unknown token, or are left without any, which they were not before.",
        within=SHARE,
        figure=Worse("higher", absolute=0.02),
    )
    moved: float | None = column(
        "Mean of 1 − cosine between a query's vectors before and after.",
        within=DIFFERENCE_OF_COSINES,
        figure=Worse("higher", absolute=0.02),
    )
    overlap: float | None = column(
        "Mean share of the ten best documents that are still among the ten best.",
        within=SHARE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_QUERIES,
    )
    ndcg: float | None = column("Mean nDCG@10 of the queries as they are.", within=SHARE)
    ndcg_change: float | None = column(
        "Mean change of nDCG@10.",
        within=DIFFERENCE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_QUERIES,
    )
    words_overlap: float | None = column(
        "The same overlap in the ranking by TF-IDF; null if no text has a word.", within=SHARE
    )
    words_ndcg_change: float | None = column("The change of TF-IDF's nDCG@10.", within=DIFFERENCE)

    @rule
    def figures_need_queries(queries: Series, overlap: Series, ndcg_change: Series, moved: Series) -> Series:
        """There are figures if and only if the change writes a query otherwise."""
        return (
            (overlap.notna() == (queries > 0))
            & (ndcg_change.notna() == (queries > 0))
            & (moved.notna() == (queries > 0))
        )


ROWS: tuple[type[Row], ...] = (SurfaceRow,)

MEASURE_VERSION = 1

MEASURE = Measure(
    name="surface",
    package=__name__,
    question="Does a query find the same when it is written otherwise?",
    parts=parts_of(__name__),
    settings=SurfaceSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"surface": ("overlap",)},
    shares={"surface": "overlap"},
    # It encodes every query several times.
    is_default=False,
    shown_tables=("surface",),
)
