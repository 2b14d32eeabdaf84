"""Occurrence: do severe tokens occur in real texts, and what do they do there?

``occurrence`` counts them, with the code of ``embaudit screen``, removes them and measures how cosines change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import SHARE, TOLERANCE, BigInt, Interval, Range, Row, Series, column, rule
from embaudit.measures.measure import DrawnSettings, Measure, OfCorpus, Readable, Work, parts_of
from embaudit.remedies.screening import Severity

# Typical number of severe tokens that occur in ordinary texts.
TOKENS_MET = 10


class OccurrenceSettings(DrawnSettings):
    """Settings of the occurrence measure (``docs/methods.md``)."""

    corpora: tuple[str, ...] = Field(
        default=("wikipedia", "msmarco"), description="corpora of texts in which tokens are counted"
    )
    texts: int = Field(default=20_000, ge=1, description="texts of each corpus; 20 000 is what an audit keeps")
    severity: Severity = Field(default="moderate", description="lowest severity of the tokens counted")
    removal_texts: int = Field(default=30, ge=2, description="texts that a token is removed from")
    anchors: int = Field(default=200, ge=2, description="texts that these are compared with before and after removal")

    @property
    def builds_on(self) -> tuple[str, ...]:
        return ("sticky",)

    def work(self, readable: Readable) -> Iterator[Work]:
        for corpus in self.corpora:
            yield readable.read(corpus, self.anchors)
            yield readable.read(corpus, self.removal_texts, times=2 * TOKENS_MET)


OVER_TEXTS = Interval("Student's t over texts, null below two")
EXACT = Interval("Clopper–Pearson")
CHANGE: Range = (-2 - TOLERANCE, 2 + TOLERANCE)
CHANGE_SIZE: Range = (0, 2 + TOLERANCE)


class MovementRow(Row):
    """How similarities change when tokens are removed; null if no text allows it."""

    removal_texts: int = column("Texts that tokens were removed from.", ge=0)
    shift: float | None = column(
        "Mean change of a text's cosine to other texts of the corpus: without the tokens − with them.",
        within=CHANGE,
        interval=OVER_TEXTS,
    )
    moved: float | None = column("Mean absolute value of that change.", within=CHANGE_SIZE, interval=OVER_TEXTS)
    ordinary_moved: float | None = column(
        "The same when as many other tokens are removed from the same texts.", within=CHANGE_SIZE
    )
    excess: float | None = column("moved − ordinary_moved, paired within texts.", within=CHANGE, interval=OVER_TEXTS)

    @rule
    def movement_needs_a_text(removal_texts: Series, moved: Series, shift: Series, excess: Series) -> Series:
        """There are changes if and only if tokens were removed from a text."""
        has = removal_texts > 0
        return (moved.notna() == has) & (shift.notna() == has) & (excess.notna() == has)

    @rule
    def excess_is_a_difference(moved: Series, ordinary_moved: Series, excess: Series) -> Series:
        """excess = moved − ordinary_moved."""
        difference = moved.astype(float) - ordinary_moved.astype(float)
        return excess.isna() | ((excess.astype(float) - difference).abs() <= TOLERANCE)


class OccurrenceCorpusRow(MovementRow, OfCorpus, table="occurrence_corpus", key=("corpus",), item="{corpus}"):
    """The audit's severe tokens in one corpus; for removal_texts and the changes, all are removed at once."""

    corpus_id: str = column("Id of the corpus.")
    texts: int = column("Texts with at least one token.", at_least="severe_texts")
    tokens: BigInt = column("Tokens that the checkpoint reads, without special tokens.", at_least="severe")
    listed: int = column("Severe tokens that some text can produce.", at_least="met")
    unreachable: int = column("Severe tokens that no text can produce, left out.", ge=0)
    met: int = column("Listed tokens that occur.", ge=0)
    severe: BigInt = column("Occurrences of listed tokens.", at_least="severe_texts")
    severe_texts: int = column("Texts that contain a listed token.", ge=0, at_least="dense_texts")
    severe_share: float | None = column(
        "severe_texts / texts; null without a text.", within=SHARE, figure=True, interval=EXACT
    )
    excess: float | None = column(
        "moved − ordinary_moved, paired within texts.",
        within=CHANGE,
        figure=Worse("higher", absolute=0.01),
        interval=OVER_TEXTS,
    )
    dense_texts: int = column("Texts in which listed tokens are unusually dense.", ge=0)

    @rule
    def share_agrees_with_counts(texts: Series, severe_texts: Series, severe_share: Series) -> Series:
        """severe_share = severe_texts / texts."""
        share = severe_texts.astype(float) / texts.astype(float).replace(0, float("nan"))
        return (share.isna() & severe_share.isna()) | ((severe_share.astype(float) - share).abs() <= TOLERANCE)


class OccurrenceRow(MovementRow, OfCorpus, table="occurrence", key=("corpus", "token_id")):
    """One severe token in one corpus; for removal_texts and the changes, it alone is removed."""

    token_id: int = column("Id of the token.", ge=0)
    severity: Literal["strong", "moderate", "weak"] = column("Severity of eight copies.")
    loss: float = column("Loss from eight copies, as in sticky_validation.")
    occurrences: BigInt = column("How often it occurs.", at_least="texts")
    texts: int = column("Texts that contain it.", ge=0)
    per_million: float = column("Occurrences per million tokens of the corpus.", ge=0)
    less_frequent: float = column(
        "Share of the vocabulary's reachable entries that occur less often; ties count half.",
        within=SHARE,
    )

    @rule
    def occurrences_are_in_texts(occurrences: Series, texts: Series) -> Series:
        """A token that occurs does so in some text."""
        return (occurrences > 0) == (texts > 0)


class OccurrenceTextRow(OfCorpus, table="occurrence_text", key=("corpus", "rank"), detail=True):
    """One of the texts of a corpus in which severe tokens are densest, all unusually dense."""

    rank: int = column("1 is the densest.", ge=1)
    position: BigInt = column("Row index in the corpus, from 0.", ge=0)
    tokens: int = column("Tokens that the checkpoint reads, without special tokens.", at_least="severe")
    severe: int = column("Severe tokens among them.", ge=2)
    score: float = column("Sum of their losses / tokens.", ge=0)
    log10_p: float = column(
        "log10 of the probability of as many at the rate in the rest of the corpus, times the number of texts.", le=0
    )
    worst_token_id: int = column("The severe token that it contains most often.", ge=0)


ROWS: tuple[type[Row], ...] = (OccurrenceCorpusRow, OccurrenceRow, OccurrenceTextRow)

MEASURE_VERSION = 2

MEASURE = Measure(
    name="occurrence",
    package=__name__,
    question="Do severe tokens occur in real texts, and what do they do there?",
    parts=parts_of(__name__),
    settings=OccurrenceSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: conclusions need real corpora, which must be named, too.
    is_default=False,
    shown_tables=("occurrence_corpus", "occurrence"),
)
