"""Languages: does a sentence find its translation, and are sentences of other scripts told apart at all?

And in one pool of several languages, does the query's own language come before what is right?

The entry point is ``compare_languages``; sources and equations are in ``steps`` and ``bias``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import COSINE, DIFFERENCE_OF_COSINES, SHARE, Interval, Row, Series, column, rule
from embaudit.measures.measure import Measure, MeasureSettings, Readable, Work, parts_of

# The columns of sentences.tsv beside English.
Language = Literal["de", "fr", "es", "pt", "pl", "ru", "zh", "ja", "ar", "hi", "ko", "tr"]
SENTENCES = 40
# Mean length over all languages, of an English vocabulary: 11 tokens of English, 32 of Russian, letter by letter.
TOKENS = 21


class LanguagesSettings(MeasureSettings):
    """Settings of the languages measure."""

    languages: tuple[Language, ...] = Field(
        default=get_args(Language), min_length=1, description="languages that are compared with English"
    )

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work((1 + len(self.languages)) * SENTENCES, min(TOKENS, readable.max_length))


DIFFERENCE = (-1.0, 1.0)
OVER_SENTENCES = Interval("bootstrap over sentences, null below ten")
OF_SHARE = Interval("Wilson's interval of a share, null below ten")


class LanguageRow(Row, table="language", key=("language",), item="{language}"):
    """The same sentences in one language; of English, what is about a translation is null."""

    language: str = column("ISO 639-1 code of the language.")
    name: str = column("Its name in English.")
    script: str = column("Unicode script of most of its letters.")
    declared: bool | None = column("Whether the model card lists the language; null if it lists none.")
    sentences: int = column("n, its sentences.", ge=2, at_least=("truncated", "empty"))
    truncated: int = column("Sentences truncated to the checkpoint's length limit.", ge=0)
    empty: int = column("Sentences without any token, special ones included: they have no vector.", ge=0)
    found: float | None = column(
        "Share of sentences that are nearest to their translation into English, mean of both directions.",
        within=SHARE,
        figure=Worse("lower", absolute=0.05),
        interval=OF_SHARE,
    )
    chance: float | None = column("Share that chance finds, 1/n.", within=SHARE)
    words_found: float | None = column(
        "The same by TF-IDF of three characters each, which finds names, numbers and cognates.", within=SHARE
    )
    margin: float | None = column(
        "Cosine of a translation minus that of the nearest other sentence, mean of both directions.",
        within=DIFFERENCE_OF_COSINES,
        figure=Worse("lower", absolute=0.02),
        interval=OVER_SENTENCES,
    )
    unknown: float = column(
        "Share of tokens that are the unknown token.", within=SHARE, figure=Worse("higher", absolute=0.01)
    )
    tokens: int = column("Tokens of all its sentences, without special tokens.", ge=0)
    premium: float = column("tokens over those of the English sentences.", ge=0, figure=Worse("higher", relative=0.1))
    alike: float = column("Mean cosine of different sentences of the language.", within=COSINE, figure=True)
    english_alike: float = column("The same of the English sentences.", within=COSINE)
    same_ids: int = column(
        "Pairs of different sentences with the same ids, which no model can tell apart.",
        ge=0,
        figure=Worse("higher", absolute=0.5),
    )
    told_apart: float = column(
        "Share of sentences without another of a cosine above .99.",
        within=SHARE,
        figure=Worse("lower", absolute=0.05),
        interval=OF_SHARE,
    )

    own_above: float = column(
        "In one pool of all languages: share of a sentence's translations into the others above which another sentence "
        "of its own language stands; 1 − 1/n by chance.",
        within=SHARE,
        figure=Worse("higher", absolute=0.05),
        interval=OF_SHARE,
    )
    other_above: float = column(
        "Share above which another sentence of the translation's language stands.", within=SHARE
    )
    words_own_above: float = column("own_above by TF-IDF of three characters each.", within=SHARE)
    centred_own_above: float = column(
        "own_above after the mean of its language, over the half of its sentences to which it does not belong, was "
        "subtracted from each vector.",
        within=SHARE,
    )
    own_bias: float = column(
        "own_above − other_above: what the language of irrelevant sentences does.",
        within=DIFFERENCE,
        figure=Worse("higher", absolute=0.05),
        interval=OVER_SENTENCES,
    )
    english_above: float | None = column(
        "Share of the translations into neither its own language nor English above which another English sentence "
        "stands; null for English, and without a third language.",
        within=SHARE,
        figure=Worse("higher", absolute=0.05),
        interval=OF_SHARE,
    )
    english_bias: float | None = column(
        "english_above − the share of the same above which another sentence of the translation's language stands.",
        within=DIFFERENCE,
        figure=Worse("higher", absolute=0.05),
        interval=OVER_SENTENCES,
    )

    @rule
    def english_is_not_beside_itself(language: Series, english_above: Series, english_bias: Series) -> Series:
        """English is the query's own language there, or another one."""
        return (english_above.isna() == english_bias.isna()) & (english_above.isna() | (language != "en"))

    @rule
    def own_bias_is_a_difference(own_bias: Series, own_above: Series, other_above: Series) -> Series:
        """Of the shares beside it."""
        return (own_bias - own_above + other_above).abs() < 1e-9

    @rule
    def translations_have_chances(found: Series, chance: Series, margin: Series, words_found: Series) -> Series:
        """Everything about translations is null for English and nothing else."""
        is_one = found.notna()
        return (chance.notna() == is_one) & (margin.notna() == is_one) & (words_found.notna() == is_one)

    @rule
    def same_ids_are_not_told_apart(same_ids: Series, empty: Series, told_apart: Series) -> Series:
        """Sentences with the same ids have the same vector, and those without any have none."""
        return ((same_ids == 0) & (empty == 0)) | (told_apart < 1)


ROWS: tuple[type[Row], ...] = (LanguageRow,)

MEASURE_VERSION = 2

MEASURE = Measure(
    name="languages",
    package=__name__,
    question="Does a sentence find its translation, also among its own language, and are scripts told apart?",
    parts=parts_of(__name__),
    settings=LanguagesSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"language": ("found",)},
    shares={"language": "found"},
    is_default=False,
    shown_tables=("language",),
)
