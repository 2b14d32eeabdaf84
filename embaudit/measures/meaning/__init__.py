"""Meaning: is a sentence nearer to its rewording than to one that says something else in almost the same words?

And is the right text found before one that is wrong by a figure, a date, a version, or what the query excludes?

The definitions are in ``work`` and ``searches``; the sentences are in ``triples.tsv`` and ``searches.tsv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import ANY, SHARE, Interval, Row, column
from embaudit.measures.measure import Measure, MeasureSettings, Readable, Work, parts_of

# Sentences of its own, and their mean length; texts of its searches likewise.
SENTENCES, TOKENS = 414, 20
SEARCH_TEXTS, SEARCH_TOKENS = 336, 14


class MeaningSettings(MeasureSettings):
    """Settings of the meaning measure: it has sentences of its own, and nothing to choose."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work(SENTENCES, min(TOKENS, readable.max_length))
        yield Work(SEARCH_TEXTS, min(SEARCH_TOKENS, readable.max_length))


Contrast = Literal["negation", "number", "roles", "entity", "tense", "antonym"]
Rewording = Literal["close", "free"]
OVER_TRIPLES = Interval("Wilson's interval of a share")
OF_MARGIN = Interval("Student's t over triples, null if all are equal")


class MeaningRow(Row, table="meaning", key=("contrast", "rewording"), item="{contrast}, {rewording} rewording"):
    """Triples of a sentence, a rewording, and a contrast: a sentence that says something else in nearly its words."""

    contrast: Contrast = column(
        "What the contrast changes: it denies the sentence, or has another number, roles exchanged, another name, "
        "another tense, or the opposite word."
    )
    rewording: Rewording = column("close: most of the sentence's words, in another order; free: other words.")
    triples: int = column("Number of triples.", ge=1)
    nearer: float = column(
        "Share of triples whose rewording is nearer than the contrast; ties count half. Chance is .5.",
        within=SHARE,
        figure=Worse("lower", absolute=0.05),
        interval=OVER_TRIPLES,
    )
    words_nearer: float = column("The same share by TF-IDF: 0, because contrasts share more words.", within=SHARE)
    margin: float = column(
        "Mean similarity to the rewording less that to the contrast, by the declared similarity.", interval=OF_MARGIN
    )
    rewording_similarity: float = column("Mean similarity of sentence and rewording.", within=ANY)
    contrast_similarity: float = column("Mean similarity of sentence and contrast.", within=ANY)


SearchKind = Literal["magnitude", "format", "unit", "date", "version", "exclusion", "foil"]


class MeaningSearchRow(Row, table="meaning_search", key=("kind",), item="{kind}"):
    """Searches with a right text, and one that is wrong by one thing."""

    kind: SearchKind = column(
        "What decides: a figure beyond the query's limit, a figure in another format or in another unit, a date, a "
        "version, what the query excludes, or (foil) that a short text repeats the query's words and answers nothing."
    )
    searches: int = column("Number of searches.", ge=1)
    found: float = column(
        "Share of searches whose right text is nearer than the wrong one; ties count half. Chance is .5.",
        within=SHARE,
        figure=Worse("lower", absolute=0.1),
        interval=Interval("Wilson's interval of a share"),
    )
    words_found: float = column("The same share by TF-IDF.", within=SHARE)
    margin: float = column(
        "Mean similarity to the right text less that to the wrong one, by the declared similarity.",
        interval=Interval("Student's t over searches, null if all are equal"),
    )
    right_similarity: float = column("Mean similarity of query and right text.", within=ANY)
    wrong_similarity: float = column("Mean similarity of query and wrong text.", within=ANY)


ROWS: tuple[type[Row], ...] = (MeaningRow, MeaningSearchRow)


# Increase this when values change, or the sentences do: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


MEASURE = Measure(
    name="meaning",
    package=__name__,
    question="Is a rewording nearer than a sentence that says something else, and a right text than a wrong one?",
    parts=parts_of(__name__),
    settings=MeaningSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"meaning": ("nearer",), "meaning_search": ("found",)},
    shares={"meaning": "nearer"},
    is_default=False,
    shown_tables=("meaning", "meaning_search"),
)
