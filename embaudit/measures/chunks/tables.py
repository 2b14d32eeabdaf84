"""Tables of the chunks measure; its definition is in ``embaudit.measures.chunks``."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import ROUNDED_SHARE, Interval, Row, Series, column, rule

Way = Literal["whole", "best", "mean"]
# Of the queries: by their document if it is as it was given, by their passage if documents are composed.
Part = Literal["document read whole", "document cut", "passage read", "passage cut"]
OVER_UNITS = Interval("bootstrap over queries, those of one document together, null below ten documents")


class ScoredWay(Row):
    """What every way of searching has."""

    searched: str = column("How documents are searched, in one word: whole, best 64, mean 64.")
    way: Way = column(
        "`whole`: one vector per document, cut at the length limit; `best`: the best of a document's pieces; `mean`: "
        "the mean of their vectors."
    )
    size: int = column("Most tokens of a piece; of the whole, the length limit.", unit="tokens", ge=1)
    queries: int = column("Queries.", ge=1)
    score: float = column(
        "Mean nDCG@10 of the documents.",
        within=ROUNDED_SHARE,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_UNITS,
    )
    gain: float = column("Mean paired difference from the whole's nDCG@10.", interval=OVER_UNITS)
    words_score: float | None = column(
        "nDCG@10 of BM25 over the same pieces, by their highest or mean score; it reads the whole uncut; null without "
        "words.",
        within=ROUNDED_SHARE,
    )

    @rule
    def the_whole_gains_nothing(way: Series, gain: Series) -> Series:
        """The whole is what the others are compared with."""
        return (way != "whole") | (gain == 0)


class ChunkRow(ScoredWay, table="chunk", key=("searched",), item="{searched}"):
    """One way of searching long documents."""

    pieces: float = column("Pieces of a document, on average.", ge=1)
    cut: int = column("Documents that fall into several pieces; the others are searched whole either way.", ge=0)
    is_best: bool = column("Whether no other way has a higher score.")


class ChunkLengthRow(ScoredWay, table="chunk_length", key=("part", "searched"), item="{part}, {searched}"):
    """The same for part of the queries; only parts with at least ten of them."""

    part: Part = column(
        "Queries by whether their best document is read whole; in composed documents, whether their passage is read."
    )


class ChunkChoiceRow(Row, table="chunk_choice", key=("data_set",)):
    """The way that one half of the queries wants, and what the other half gains by it."""

    data_set: str = column("Name of the collection.")
    is_composed: bool = column("Whether the documents were composed of the collection's, which are short.")
    passages: int = column("Documents of the collection in one searched document.", ge=1)
    documents: int = column("Searched documents.", ge=1, at_least="truncated")
    tokens: float = column("Their mean length.", unit="tokens", ge=0)
    length_limit: int = column("Own tokens of a document that the checkpoint reads.", unit="tokens", ge=1)
    truncated: int = column("Searched documents that are longer than that.", ge=0)
    unwritten: int = column("Searched documents that are mostly tokens that the tokenizer lacks.", ge=0)
    way: Way = column("The way with the highest score on the choosing half.")
    size: int = column("Its pieces' most tokens.", unit="tokens", ge=1)
    choosing: int = column("Queries of the choosing half.", ge=1)
    reporting: int = column("Queries of the reporting half.", ge=1)
    whole: float = column("nDCG@10 of whole documents, reporting half.", within=ROUNDED_SHARE)
    gain: float = column("Gain of the chosen way over the whole, reporting half.", interval=OVER_UNITS)


ROWS: tuple[type[Row], ...] = (ChunkRow, ChunkLengthRow, ChunkChoiceRow)
