"""Language bias: in one pool of several languages, does an irrelevant text stand above the right one of another?

v_{a,i} is the unit vector of sentence i in language a, n sentences of each. Query (a, i) searches a pool that holds its
translation into b, the right text, and the n − 1 other sentences in language c, which are irrelevant:

    above(a, b, c)  mean over i of 1 − [v_{a,i}·v_{b,i} is the largest of it and all v_{a,i}·v_{c,j}, j ≠ i]; t equal
                    largest count 1/t. 1 − 1/n by chance
    own_above(a)    mean over b ≠ a of above(a, b, a)
    other_above(a)  mean over b ≠ a of above(a, b, b), the search of one language in another
    own_bias(a)     own_above − other_above: what the language of the irrelevant texts does, as many of them in both
    english_above, english_bias   likewise over b other than a and English, with c = English

Beside it the same by shared characters, and after the mean of its language was subtracted from every vector (*centred*;
the mean is that of the half of its sentences to which a vector does not belong): a language's direction is most of what
brings its texts together, and is taken out of an index without training (arXiv 2606.18801).

An irrelevant text of the query's own language above the relevant one of another is the preference that arXiv 2605.07249
(MLAIRE) holds against semantic accuracy; irrelevant English above the relevant text, the *English inclination* of arXiv
2604.05684. Theirs are searches of passages by questions; these are sentences and translations, whose right text says
all that the query says, so that they ask for less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.downstream import unit_rows

# Cosines of equal texts in batches of different width differ by float32 rounding.
EQUAL = 1e-6


@dataclass(frozen=True)
class Bias:
    """Per query sentence, (n,) float64, means over the languages of the right text.

    Attributes:
        own: how often an irrelevant sentence of the query's own language stands above the right one.
        other: how often one of the right text's language does.
        english: how often an English one does, and
        english_other: one of the right text's language, for the same right texts; None for English, and without a third
            language.
    """

    own: np.ndarray
    other: np.ndarray
    english: np.ndarray | None = None
    english_other: np.ndarray | None = None


def above(right: np.ndarray, irrelevant: np.ndarray) -> np.ndarray:
    """(n,) whether an irrelevant text stands above the right one; 1 − 1/t if t are equal and largest.

    Args:
        right: (n,) cosine of each query and its right text.
        irrelevant: (n, n) cosines of queries and texts of one language; the diagonal, what the query says, is left out.
    """
    is_other = ~np.eye(len(right), dtype=bool)
    apart = irrelevant - right[:, None]
    is_beaten = ((apart > EQUAL) & is_other).any(axis=1)
    equal = 1 + ((np.abs(apart) <= EQUAL) & is_other).sum(axis=1)
    return np.where(is_beaten, 1.0, 1 - 1 / equal)


def biases(cosines: Mapping[tuple[str, str], np.ndarray], english: str) -> dict[str, Bias]:
    """The bias of the queries of each language.

    Args:
        cosines: (n, n) of queries (rows) in the first language and texts in the second, for every two of at least two.
        english: the code of English, one of these languages.
    """
    languages = list(dict.fromkeys(asked for asked, _ in cosines))
    found = {}
    for asked in languages:
        others = [language for language in languages if language != asked]
        right = {language: np.diag(cosines[asked, language]) for language in others}
        own = {language: above(right[language], cosines[asked, asked]) for language in others}
        other = {language: above(right[language], cosines[asked, language]) for language in others}
        third = [language for language in others if language != english] if asked != english else []
        of_english = [above(right[language], cosines[asked, english]) for language in third]
        found[asked] = Bias(
            np.mean(list(own.values()), axis=0),
            np.mean(list(other.values()), axis=0),
            np.mean(of_english, axis=0) if third else None,
            np.mean([other[language] for language in third], axis=0) if third else None,
        )
    return found


def all_cosines(units: Mapping[str, np.ndarray]) -> dict[tuple[str, str], np.ndarray]:
    """(n, n) of the sentences of every two languages, from their (n, d) unit vectors."""
    return {(one, other): rows @ columns.T for one, rows in units.items() for other, columns in units.items()}


def by_characters(grams: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], np.ndarray]:
    """The same by TF-IDF of grams that are written as words."""
    from embaudit.measures.quality.measured import word_cosines

    flat = [text for of_language in grams.values() for text in of_language]
    cosines = word_cosines(flat, flat)
    assert cosines is not None, "no language is without letters"
    rows = dict(zip(grams, np.split(cosines, len(grams)), strict=True))
    return {
        (one, other): part
        for one in grams
        for other, part in zip(grams, np.split(rows[one], len(grams), axis=1), strict=True)
    }


def centred(units: np.ndarray) -> np.ndarray:
    """(n, d) unit vectors less the mean of the half, even or odd places, to which each does not belong; n ≥ 2."""
    moved = units.astype(np.float64)
    for half in (0, 1):
        moved[half::2] -= units[1 - half :: 2].mean(axis=0)
    return unit_rows(moved)
