"""Ordinary English words, and what a text does to them: capitals, accents."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files

ACCENTED = str.maketrans("aeioun", "áéíöüñ")


@cache
def words() -> tuple[str, ...]:
    """Distinct words in small letters of the embedded pairs of sentences, three ASCII letters or more, in order."""
    source = files("embaudit.corpora.sample") / "sts.csv"
    texts = [text for row in csv.reader(source.read_text("utf-8").splitlines()) for text in row[:2]]
    return tuple(dict.fromkeys(word for text in texts for word in re.findall(r"\b[a-z]{3,}\b", text)))


def accented(word: str) -> str:
    """The word with an accent on its first vowel or n that has one; unchanged if there is none."""
    for place, letter in enumerate(word):
        if letter.translate(ACCENTED) != letter:
            return word[:place] + letter.translate(ACCENTED) + word[place + 1 :]
    return word
