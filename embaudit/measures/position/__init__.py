"""Position: where in a document may the evidence for a query stand?

A query q has its evidence e, the beginning of its best relevant document. D(e, p) is a document of n tokens: passages
that are irrelevant to q, the same ones whatever p is, with e after a share p of them. D(e', p) is the same document
with the evidence of another query in the same place, of the same number of tokens:

    gain(p)    = mean over queries of s(q, D(e, p)) − s(q, D(e', p))
    kept(p)    = gain(p) / gain(0)
    change(p)  = mean over queries of the gain at p minus the gain at 0, paired
    won(p)     = share of queries with s(q, D(e, p)) > s(q, D(e', p)); ties count half

with s the similarity that the checkpoint declares. Both documents have the same length, filler and place, so only what
the evidence says can part them. Behind the length limit, nothing does: both documents are read as the same tokens.

For whoever serves the checkpoint: at a place with a small gain, a document is hardly found by what it says there; cut
documents into pieces, or put what counts first. Sources: Coelho et al. 2024, "Dwell in the Beginning" (arXiv
2404.04163), and Zeng et al. 2025, "An Empirical Study of Position Bias in Modern Information Retrieval" (arXiv
2505.13950), which move the relevant passage; the paired control with other evidence is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import SHARE, Interval, Row, Series, column, rule
from embaudit.measures.measure import CollectionSettings, Measure, Readable, Work, parts_of

# Share of the filler before the evidence.
DEPTHS: Mapping[str, float] = {"0": 0.0, "1/4": 0.25, "1/2": 0.5, "3/4": 0.75, "1": 1.0}
ALONE, START, BEYOND = "alone", "0", "beyond"


class PositionSettings(CollectionSettings):
    """Settings of the position measure."""

    # 12 pairs that share their documents: 31 000 tokens, and just enough pairs for intervals.
    moved: int = Field(default=24, ge=2, description="queries whose evidence is moved")
    tokens: int = Field(default=256, ge=16, description="length of the documents, in tokens; at most what is read")
    evidence_tokens: int = Field(default=48, ge=4, description="length of the evidence, in tokens")

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        yield Work(self.moved * len(DEPTHS), min(self.tokens, readable.max_length))
        yield Work(self.moved, min(self.evidence_tokens, readable.max_length))


Depth = Literal["alone", "0", "1/4", "1/2", "3/4", "1", "beyond"]
OVER_PAIRS = Interval("bootstrap over pairs of queries that share their documents, null below ten")


class PositionRow(Row, table="position", key=("depth",), item="{depth}"):
    """What evidence at one depth of a document gains for its query, over other evidence in the same place."""

    depth: Depth = column(
        "Share of the document's other tokens before the evidence; `alone`: the evidence without a document; `beyond`: "
        "behind the length limit, where it is not read."
    )
    is_read: bool = column("Whether the evidence is within the length limit.")
    tokens_before: float | None = column(
        "Tokens of the document before the evidence, on average; null alone.", unit="tokens", ge=0
    )
    queries: int = column("Queries whose evidence was moved.", ge=2)
    score: float | None = column(
        "Mean similarity of a query to the document with its evidence; null behind the limit, where nothing is encoded."
    )
    gain: float = column(
        "Mean of that similarity minus the one to the same document with other evidence in the same place; 0 behind "
        "the limit, since both are read as the same tokens.",
        figure=True,
        interval=OVER_PAIRS,
    )
    change: float | None = column(
        "Mean paired change of the gain from that at the start; null alone.",
        interval=OVER_PAIRS,
    )
    kept: float | None = column(
        "Gain over the gain at the start; null if the latter may be 0.", figure=Worse("lower", absolute=0.1)
    )
    won: float = column(
        "Share of queries that prefer the document with their evidence; ties count half.",
        within=SHARE,
        figure=Worse("lower", absolute=0.05),
        interval=Interval("Wilson's interval of a share, null below ten queries and behind the limit"),
    )
    words_gain: float | None = column(
        "The gain by TF-IDF of the same texts, which are read whole wherever the evidence stands; null without words."
    )
    is_lost: bool = column(
        "Whether the gain may be 0, or is below half of that at the start; false if that is not known."
    )

    @rule
    def only_what_is_read_has_a_score(is_read: Series, score: Series) -> Series:
        """There is a similarity if and only if something is read."""
        return is_read == score.notna()


class PositionSummaryRow(Row, table="position_summary", key=("data_set",)):
    """The collection whose evidence was moved, and what the checkpoint reads of its documents."""

    data_set: str = column("Name of the collection.")
    length_limit: int = column("Own tokens of a document that the checkpoint reads.", unit="tokens", ge=0)
    tokens: int = column("Length of the documents with evidence.", unit="tokens", ge=1, at_least="evidence_tokens")
    evidence_tokens: float = column("Length of the evidence, on average.", unit="tokens", ge=0)
    queries: int = column("Queries whose evidence was moved.", ge=0)
    unwritten: int = column("Queries left out because their evidence is mostly tokens that the tokenizer lacks.", ge=0)
    left_out: int = column(
        "Queries left out because their evidence is that of the query they would share documents with, or because "
        "there are too few irrelevant texts, or no other query.",
        ge=0,
    )
    documents: int = column("Documents of the collection.", ge=1, at_least="truncated")
    truncated: int = column("Documents that are longer than the checkpoint reads.", ge=0)
    lost_from: str | None = column("The first depth within the limit where evidence is lost; null if it nowhere is.")


ROWS: tuple[type[Row], ...] = (PositionRow, PositionSummaryRow)

MEASURE_VERSION = 1

MEASURE = Measure(
    name="position",
    package=__name__,
    question="Where in a document may the evidence stand?",
    parts=parts_of(__name__),
    settings=PositionSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"position": ("won", "kept")},
    shares={"position": "won"},
    # It encodes long documents, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("position", "position_summary"),
)
