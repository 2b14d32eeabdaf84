"""The sentences: the same forty in each language (sentences.md says who wrote them)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("sentences.tsv")
ENGLISH = "en"
NAMES = {
    **{"en": "English", "de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese", "pl": "Polish"},
    **{"ru": "Russian", "zh": "Chinese", "ja": "Japanese", "ar": "Arabic", "hi": "Hindi", "ko": "Korean"},
    "tr": "Turkish",
}
WIDTH = 3


@cache
def all_sentences() -> dict[str, tuple[str, ...]]:
    """Sentences by language, the translations of one sentence in the same place."""
    with SOURCE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {language: tuple(row[language] for row in rows) for language in rows[0]}


def chosen(languages: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """English first, then these."""
    sentences = all_sentences()
    return {language: sentences[language] for language in (ENGLISH, *languages)}


def character_grams(text: str) -> str:
    """The words of a text in three characters each, lower-cased, as words of their own.

    A name or a cognate shares some of them in two languages: "night", "nacht" have "cht" and "ght", "concert",
    "concerto" have five in common.
    """
    words = re.findall(r"(?u)[^\W_]+", text.lower())
    return " ".join(word[start : start + WIDTH] for word in words for start in range(max(1, len(word) - WIDTH + 1)))
