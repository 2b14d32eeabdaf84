"""Tables of the position measure; its definition is in ``embaudit.measures.position``."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import SHARE, Interval, Row, Series, column, rule

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
