"""Chunks: what chunk size does this checkpoint want?

A collection of long documents is searched in several ways, and each is scored by nDCG@10 of the documents:

    whole      s(q, d) = s(q, v(d)), d cut at the length limit, as served
    best(z)    s(q, d) = max over the pieces c of d of s(q, v(c))
    mean(z)    s(q, d) = s(q, mean over the pieces c of d of v(c))

A piece is a run of whole sentences with at most z tokens (``embaudit.measures.collection``); v is the served vector and
s the declared similarity. The gain of a way is its mean nDCG@10 over queries minus that of ``whole``, paired. The size
that a checkpoint wants is chosen on half of the queries, and its gain reported on the others.

The documents are the user's own if the median one is long enough to be cut. Otherwise, and without a collection, they
are composed: four passages of different subjects joined, as in a newsletter, each passage in exactly one document.
Such documents are longer than what many checkpoints read, and about four things: what one vector can say of them is
little, whatever the checkpoint. How much of the loss is the length limit and how much is the crowding is told apart by
queries whose passage is read and whose passage is cut off.

For whoever serves the checkpoint: the size of pieces to store, and what whole documents would cost. Sources: Guenther
et al. 2024, "Late Chunking" (arXiv 2409.04701), which compares chunk sizes; Zhou et al. 2024, length collapse (arXiv
2410.24200): vectors of long texts are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from embaudit.declared.figure import Worse
from embaudit.declared.table import ROUNDED_SHARE, Interval, Row, Series, column, rule
from embaudit.measures.measure import DOCUMENTS, SAMPLE_TOKENS, CollectionSettings, Measure, Readable, Work, parts_of

# A piece of fewer tokens is hardly a sentence.
SMALLEST = 8


class ChunksSettings(CollectionSettings):
    """Settings of the chunks measure."""

    sizes: tuple[int, ...] = Field(
        default=(32, 64, 128, 256), min_length=1, description="sizes of pieces, in tokens; those below the length limit"
    )
    passages: int = Field(default=4, ge=2, description="passages of a composed document")
    # Each is encoded whole and once per size: 50 000 tokens of the embedded sample.
    searched: int = Field(default=132, ge=4, description="documents (or passages to compose) that are searched")

    @field_validator("sizes")
    @classmethod
    def _ascending(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if min(sizes) < SMALLEST:
            raise ValueError(f"a piece has at least {SMALLEST} tokens")
        return tuple(sorted(set(sizes)))

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        tokens = readable.tokens[DOCUMENTS] if self.corpora else float(SAMPLE_TOKENS)
        for size in self.sizes:
            if size < readable.max_length:
                count = max(1.0, tokens / size)
                yield Work(self.searched * count, tokens / count)
        yield Work(self.searched / self.passages, min(tokens * self.passages, readable.max_length))


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

MEASURE_VERSION = 1

MEASURE = Measure(
    name="chunks",
    package=__name__,
    question="What chunk size does the checkpoint want?",
    parts=parts_of(__name__),
    settings=ChunksSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"chunk": ("score",)},
    shares={"chunk": "score"},
    # It encodes the documents once per size, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("chunk", "chunk_length", "chunk_choice"),
)
