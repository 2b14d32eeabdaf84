"""Occurrence of severe tokens in real texts; equations stand in ``counts`` and ``removal``."""

from __future__ import annotations

from typing import Literal

from embaudit.figure import Worse
from embaudit.table import SHARE, TOLERANCE, BigInt, Interval, Range, Row, Series, column, rule

OVER_TEXTS = Interval("Student's over texts, null below two")
EXACT = Interval("Clopper and Pearson")
CHANGE: Range = (-2 - TOLERANCE, 2 + TOLERANCE)
CHANGE_SIZE: Range = (0, 2 + TOLERANCE)


class MovementRow(Row):
    """How similarities move where tokens are taken out; null where no text allows it."""

    removal_texts: int = column("Texts that tokens were taken out of.", ge=0)
    shift: float | None = column(
        "Mean change of a text's cosine to other texts of the corpus, without the tokens − with them.",
        within=CHANGE,
        interval=OVER_TEXTS,
    )
    moved: float | None = column("Mean size of that change.", within=CHANGE_SIZE, interval=OVER_TEXTS)
    ordinary_moved: float | None = column(
        "The same where as many other tokens of the same texts are taken out.", within=CHANGE_SIZE
    )
    excess: float | None = column("moved − ordinary_moved, paired within texts.", within=CHANGE, interval=OVER_TEXTS)

    @rule
    def movement_needs_a_text(removal_texts: Series, moved: Series, shift: Series, excess: Series) -> Series:
        """Similarities move where tokens were taken out of a text, and nowhere else."""
        has = removal_texts > 0
        return (moved.notna() == has) & (shift.notna() == has) & (excess.notna() == has)

    @rule
    def excess_is_a_difference(moved: Series, ordinary_moved: Series, excess: Series) -> Series:
        """excess = moved − ordinary_moved."""
        difference = moved.astype(float) - ordinary_moved.astype(float)
        return excess.isna() | ((excess.astype(float) - difference).abs() <= TOLERANCE)


class OccurrenceCorpusRow(MovementRow, table="occurrence_corpus", key=("corpus",), item="{corpus}"):
    """The severe tokens of the audit in one corpus; they are all taken out at once."""

    corpus: str = column("Name of the corpus in this audit.")
    corpus_id: str = column("The corpus.")
    texts: int = column("Texts with at least one token.", at_least="severe_texts")
    tokens: BigInt = column("Tokens of their own that the checkpoint reads.", at_least="severe")
    listed: int = column("Severe tokens that a text can hold.", at_least="met")
    unreachable: int = column("Severe tokens that no text can produce: left out.", ge=0)
    met: int = column("Listed tokens that occur.", ge=0)
    severe: BigInt = column("Occurrences of listed tokens.", at_least="severe_texts")
    severe_texts: int = column("Texts that hold one.", ge=0, at_least="dense_texts")
    severe_share: float | None = column(
        "severe_texts / texts; null without a text.", within=SHARE, figure=True, interval=EXACT
    )
    excess: float | None = column(
        "moved − ordinary_moved, paired within texts.",
        within=CHANGE,
        figure=Worse("higher", absolute=0.01),
        interval=OVER_TEXTS,
    )
    dense_texts: int = column("Texts in which they are unusually dense.", ge=0)

    @rule
    def share_agrees_with_counts(texts: Series, severe_texts: Series, severe_share: Series) -> Series:
        """Texts that hold a severe token / texts."""
        share = severe_texts.astype(float) / texts.astype(float).replace(0, float("nan"))
        return (share.isna() & severe_share.isna()) | ((severe_share.astype(float) - share).abs() <= TOLERANCE)


class OccurrenceRow(MovementRow, table="occurrence", key=("corpus", "token_id")):
    """One severe token in one corpus; it alone is taken out."""

    corpus: str = column("Name of the corpus in this audit.")
    token_id: int = column("Id of the token.", ge=0)
    severity: Literal["strong", "moderate", "weak"] = column("How bad eight copies are.")
    loss: float = column("Share of a sentence's similarities that eight copies take away.")
    occurrences: BigInt = column("How often it occurs.", at_least="texts")
    texts: int = column("Texts that hold it.", ge=0)
    per_million: float = column("Occurrences in a million tokens of the corpus.", ge=0)
    less_frequent: float = column(
        "Share of the vocabulary's reachable entries that occur less often, with half of those that occur as often.",
        within=SHARE,
    )

    @rule
    def occurrences_are_in_texts(occurrences: Series, texts: Series) -> Series:
        """A token occurs where a text holds it."""
        return (occurrences > 0) == (texts > 0)


class OccurrenceTextRow(Row, table="occurrence_text", key=("corpus", "rank"), detail=True):
    """A text in which severe tokens are unusually dense, among the densest of its corpus."""

    corpus: str = column("Name of the corpus in this audit.")
    rank: int = column("1 is the densest.", ge=1)
    position: BigInt = column("Place among the rows of the corpus, from 0.", ge=0)
    tokens: int = column("Tokens of its own that the checkpoint reads.", at_least="severe")
    severe: int = column("Those of them that are severe.", ge=2)
    score: float = column("Sum of their losses / tokens.", ge=0)
    log10_p: float = column(
        "Common logarithm of the probability of so many at the rate of the rest of the corpus, times its texts.", le=0
    )
    worst_token_id: int = column("The severe token that it has most of.", ge=0)


ROWS: tuple[type[Row], ...] = (OccurrenceCorpusRow, OccurrenceRow, OccurrenceTextRow)
