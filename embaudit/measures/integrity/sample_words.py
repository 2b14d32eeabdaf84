"""Ordinary English words, what a text does to them (accents), and their ids."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embaudit.checkpoint import Checkpoint

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


def word_forms() -> dict[str, tuple[str, ...]]:
    """The words in small letters, capitalised (River), in capitals (RIVER) and with an accent."""
    plain = words()
    return {
        "small": plain,
        "capital": tuple(word.capitalize() for word in plain),
        "upper": tuple(word.upper() for word in plain),
        "accented": tuple(accented(word) for word in plain),
    }


def ids_alone(checkpoint: Checkpoint, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """The ids of each text by the loaded tokenizer, without special tokens."""
    encoded = checkpoint.tokenizer(
        list(texts), add_special_tokens=False, truncation=False, padding=False, verbose=False
    )
    return [tuple(ids) for ids in encoded["input_ids"]]
