"""Compression: what a search loses with smaller vectors: fewer bits for each dimension, or fewer dimensions.

The ways, their equations and the figures are in ``compression``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import ROUNDED_SHARE, SHARE, Interval, Range, Row, Series, column, rule
from embaudit.measures.measure import CollectionSettings, Measure, Readable, Work, parts_of

# Of 38 rankings (eight ways, and ten draws of random dimensions for each of three cuts) of 90 queries with their
# intervals and BM25, measured.
CORE_SECONDS = 1.0


class CompressionSettings(CollectionSettings):
    """Settings of the compression measure: those of the collection that is searched."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        yield Work(0, 0, core_seconds=CORE_SECONDS)


Way = Literal[
    "float32",
    "int8",
    "binary",
    "binary, rescored",
    "first half",
    "first quarter",
    "first eighth",
    "first quarter, int8",
]
OVER_QUERIES = Interval("bootstrap over queries, null below ten or if all agree")
CHANGE: Range = (-1, 1)


class CompressionRow(Row, table="compression", key=("way",), item="{way}"):
    """A search of a judged collection with smaller vectors, compared with float32."""

    way: Way = column("How vectors are stored; of a cut, the first dimensions.")
    data_set: str = column("Name of the judged collection.")
    queries: int = column("Queries searched for.", ge=1)
    documents: int = column("Documents searched.", ge=1)
    dimension: int = column("d, the dimensions of a served vector.", ge=1, at_least="kept")
    kept: int = column("Dimensions that are stored.", ge=1)
    bytes: int = column("Size of a stored vector.", unit="bytes", ge=1)
    of_float32: float = column("bytes as a share of those of float32.", within=SHARE)
    recall: float = column(
        "Share of the ten documents that float32 finds which are still found, mean over queries.",
        within=ROUNDED_SHARE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_QUERIES,
    )
    ndcg: float = column(
        "Mean nDCG@10 of the queries.",
        within=ROUNDED_SHARE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_QUERIES,
    )
    ndcg_change: float = column(
        "nDCG@10 minus that of float32, mean over queries.",
        within=CHANGE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_QUERIES,
    )
    random_recall: float | None = column(
        "Recall of as many random dimensions, mean over ten draws; null if all dimensions are stored.",
        within=ROUNDED_SHARE,
    )
    random_spread: float | None = column("Standard deviation of random_recall over its draws.", ge=0)
    beyond_random: float | None = column(
        "recall minus random_recall: above 0 if the first dimensions hold more than others; null as random_recall.",
        within=CHANGE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_QUERIES,
    )
    ndcg_beyond_random: float | None = column(
        "ndcg minus the mean of the same draws of random dimensions; null as random_recall.",
        within=CHANGE,
        figure=True,
        interval=OVER_QUERIES,
    )
    words_ndcg: float | None = column(
        "nDCG@10 of BM25 on the same collection, below which a search by words does better; null if it has no word.",
        within=ROUNDED_SHARE,
    )
    declared: str | None = column("Where the checkpoint says that its first dimensions can be served alone.")

    @rule
    def float32_loses_nothing(of_float32: Series, recall: Series, ndcg_change: Series) -> Series:
        """The search that the others are compared with is equal to itself."""
        return (of_float32 < 1) | ((recall > 1 - 1e-9) & (ndcg_change == 0))

    @rule
    def cuts_have_a_control(kept: Series, dimension: Series, random_recall: Series) -> Series:
        """There are random dimensions to compare with if and only if some are left out."""
        return random_recall.notna() == (kept < dimension)


ROWS: tuple[type[Row], ...] = (CompressionRow,)

MEASURE_VERSION = 1

MEASURE = Measure(
    name="compression",
    package=__name__,
    question="What does a search lose with smaller vectors?",
    parts=parts_of(__name__),
    settings=CompressionSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"compression": ("recall",)},
    shares={"compression": "recall"},
    is_default=False,
    shown_tables=("compression",),
)
