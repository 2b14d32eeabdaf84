"""What changes of a query's form do to what it finds; the definitions are in ``embaudit.measures.surface``."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import DIFFERENCE_OF_COSINES, SHARE, Interval, Row, Series, column, rule

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
