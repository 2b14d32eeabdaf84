"""The same forty sentences in each language: does one find its translation, and are they told apart at all?

e_i and f_i are the unit vectors of sentence i in English and in another language, n of each; a token is one of the
text's own, without special tokens and prompt.

    found       ½ · mean over i of [f_i·e_i is the largest f_i·e_j] + [f_i·e_i is the largest f_j·e_i]; t equal
                largest count 1/t. 1/n by chance                 Artetxe and Schwenk 2019, arXiv 1812.10464 (Tatoeba)
    margin      ½ · mean over i of (f_i·e_i − max_{j≠i} f_i·e_j) + (f_i·e_i − max_{j≠i} f_j·e_i)
    alike       mean of f_i·f_j over pairs i ≠ j
    told apart  1 − share of i with a j ≠ i of f_i·f_j > .99
    unknown     share of tokens that are the unknown token
    premium     tokens of a language's sentences over those of the English ones
                                                                 Petrov et al. 2023, arXiv 2305.15425

A tokenizer that cannot write a script replaces words by one unknown token: sentences get the same ids, and one vector,
whatever the model. With few pieces of a script the ids differ and the vectors hardly do.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from math import ceil, floor
from pathlib import Path

import numpy as np

from embaudit.statistics.intervals import MIN_UNITS, score_share
from embaudit.words.estimate import Estimate

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


# Cosines of equal texts in batches of different width differ by float32 rounding.
EQUAL = 1e-6
# Two sentences this alike are one for any threshold and any rounding of a served score.
SAME = 0.99


def nearest(cosines: np.ndarray) -> np.ndarray:
    """(n,) whether the diagonal is the largest of each row of (n, n); 1/t if t are equal and largest."""
    own = np.diag(cosines)[:, None]
    is_beaten = (cosines > own + EQUAL).any(axis=1)
    equal = (np.abs(cosines - own) <= EQUAL).sum(axis=1)
    return np.where(is_beaten, 0.0, 1 / equal)


def found(cosines: np.ndarray) -> np.ndarray:
    """(n,) how often a sentence and its translation find each other, 0 to 1, mean of both directions.

    Args:
        cosines: (n, n) of translations (rows) and originals (columns).
    """
    return np.asarray((nearest(cosines) + nearest(cosines.T)) / 2)


def margins(cosines: np.ndarray) -> np.ndarray:
    """(n,) how much closer a translation is than the closest other sentence, mean of both directions."""
    own = np.diag(cosines)
    others = np.where(np.eye(len(cosines), dtype=bool), -np.inf, cosines)
    return np.asarray(own - (others.max(axis=1) + others.max(axis=0)) / 2)


def share_estimate(values: np.ndarray) -> Estimate:
    """The mean of (n,) values from 0 to 1 with Wilson's interval; none below ten.

    A sum that is no whole number takes the ends of its two neighbours. Values between 0 and 1 vary less than those of a
    share of the same mean, so it is at most too wide; and it has a width where all are 0 or 1, unlike a bootstrap.
    """
    n, total = len(values), float(values.sum())
    if n < MIN_UNITS:
        return Estimate(total / n)
    near = round(total, 9)
    ends = score_share(floor(near), n)[0], score_share(ceil(near), n)[1]
    return Estimate.holding(total / n, ends)


def mean_cosine(units: np.ndarray) -> float:
    """Mean cosine of different sentences, from their (n, d) unit vectors; n is at least 2."""
    n = len(units)
    whole = np.square(units.sum(axis=0)).sum() - np.square(units).sum()
    return float(whole / (n * (n - 1)))


def is_told_apart(units: np.ndarray) -> np.ndarray:
    """(n,) whether a sentence has a vector, and no other one has a cosine above ``SAME`` with it."""
    cosines = units @ units.T
    np.fill_diagonal(cosines, -1)
    return np.asarray((cosines.max(axis=1) <= SAME) & units.any(axis=1))


def same_pairs(sequences: Sequence[Sequence[int]]) -> int:
    """Pairs of sentences with the same ids."""
    return sum(count * (count - 1) // 2 for count in Counter(map(tuple, sequences)).values())


def unknown_share(sequences: Sequence[Sequence[int]], unknown: int | None) -> float:
    """Share of all tokens that are the unknown one; 0 for a tokenizer that has none."""
    total = sum(map(len, sequences))
    return sum(list(ids).count(unknown) for ids in sequences) / total if total and unknown is not None else 0.0
