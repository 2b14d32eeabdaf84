"""Meaning: is a sentence nearer to its rewording than to one that says something else in almost the same words?

The definition is in ``triples``; the sentences are in ``triples.tsv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import ANY, SHARE, Interval, Row, column
from embaudit.measures.measure import Measure, MeasureSettings, Readable, Work, parts_of

# Sentences of its own, and their mean length.
SENTENCES, TOKENS = 414, 20


class MeaningSettings(MeasureSettings):
    """Settings of the meaning measure: it has sentences of its own, and nothing to choose."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work(SENTENCES, min(TOKENS, readable.max_length))


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


ROWS: tuple[type[Row], ...] = (MeaningRow,)


# Increase this when values change, or the sentences do: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


MEASURE = Measure(
    name="meaning",
    package=__name__,
    question="Is a rewording nearer than a sentence that says something else?",
    parts=parts_of(__name__),
    settings=MeaningSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"meaning": ("nearer",)},
    shares={"meaning": "nearer"},
    is_default=False,
    shown_tables=("meaning",),
)
