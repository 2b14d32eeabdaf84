"""Languages as a step: one row for the sentences of each language, and whether the checkpoint says it is for it.

The same forty sentences in each language: does one find its translation, and are they told apart at all?

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
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.card import front_matter
from embaudit.checkpoint.vocabulary.script import script_of
from embaudit.corpora.downstream import unit_rows
from embaudit.measures.languages import MEASURE_VERSION, LanguageRow, LanguagesSettings
from embaudit.measures.languages.bias import EQUAL, Bias, all_cosines, biases, by_characters, centred
from embaudit.measures.run import Run
from embaudit.statistics import MIN_UNITS, mean_interval, score_share
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
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


MULTILINGUAL = "multilingual"


def declared_languages(folder: Path) -> frozenset[str] | None:
    """The codes in its model card's ``language``, without regions; None if it names none, or cannot be read."""
    try:
        found = front_matter(folder / "README.md").get("language")
    except Exception:  # broken YAML raises several classes, and is a finding of integrity, not of this
        return None
    names = [found] if isinstance(found, str) else list(found or [])
    return frozenset(str(name).lower().partition("-")[0] for name in names) or None


def is_declared(language: str, declared: frozenset[str] | None) -> bool | None:
    """Whether it is for this language; None if it does not say."""
    return None if declared is None else MULTILINGUAL in declared or language in declared


RESAMPLES = 1_000
SEED = 0


@step("languages", version=MEASURE_VERSION, tables=(LanguageRow,), name="languages")
def compare_languages(out: Outputs, spec: CheckpointSpec, settings: LanguagesSettings) -> None:
    """Table ``language``: English first, then each language beside it."""
    encoder = encoder_of(spec)
    checkpoint = encoder.checkpoint
    texts = chosen(settings.languages)
    read = {language: encoder.tokenize(of_language) for language, of_language in texts.items()}
    of_each = dict(zip(texts, np.split(_vectors(encoder, list(chain(*read.values()))), len(texts)), strict=True))
    by_grams = grams_found(texts)
    in_one_pool = one_pool(of_each, texts)
    declared = declared_languages(checkpoint.resolved.folder)
    own_ids = {language: checkpoint.own_ids(of_language) for language, of_language in texts.items()}
    shared = {"english_alike": mean_cosine(of_each[ENGLISH])}
    rows = [
        {
            **{"language": language, "name": NAMES[language], "script": script_of("".join(texts[language]))},
            **{"declared": is_declared(language, declared), "sentences": len(texts[language])},
            "truncated": encoder.count_truncated(texts[language]),
            "empty": sum(not ids for ids in read[language]),
            **_translation(of_each[language], of_each[ENGLISH], by_grams.get(language)),
            "unknown": unknown_share(own_ids[language], checkpoint.tokenizer.unk_token_id),
            "tokens": sum(map(len, own_ids[language])),
            "premium": sum(map(len, own_ids[language])) / max(1, sum(map(len, own_ids[ENGLISH]))),
            "same_ids": same_pairs(read[language]),
            **_apart(of_each[language]),
            **in_one_pool[language],
            **shared,
        }
        for language in texts
    ]
    out.rows(LanguageRow, rows, encodes=encoder.texts)


def _vectors(encoder: Encoder, sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """(n, d) float64 unit vectors; 0 for a sequence without ids, which a checkpoint cannot encode."""
    places = [place for place, ids in enumerate(sequences) if len(ids)]
    vectors = np.zeros((len(sequences), encoder.checkpoint.dimension))
    with tracked("languages", len(places)) as advance:
        vectors[places] = unit_rows(encoder.encode_ids([sequences[place] for place in places], advance))
    return vectors


def grams_found(texts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The share found by characters in each language but English."""
    from embaudit.measures.quality.measured import TFIDF, collection_overlap

    others = [language for language in texts if language != ENGLISH]
    grams = {language: [character_grams(text) for text in of_language] for language, of_language in texts.items()}
    cosines = collection_overlap([text for language in others for text in grams[language]], grams[ENGLISH])[TFIDF]
    return {
        language: float(found(own).mean()) for language, own in zip(others, np.split(cosines, len(others)), strict=True)
    }


def _translation(vectors: np.ndarray, english: np.ndarray, by_grams: float | None) -> dict[str, Any]:
    """What is about translations; all null of English, which is the only one without a baseline."""
    if by_grams is None:
        return {**Estimate().columns("found"), "chance": None, "words_found": None, **Estimate().columns("margin")}
    cosines = vectors @ english.T
    hits, apart = found(cosines), margins(cosines)
    return {
        **share_estimate(hits).columns("found"),
        **{"chance": 1 / len(hits), "words_found": by_grams},
        **_mean_of(apart).columns("margin"),
    }


def one_pool(units: Mapping[str, np.ndarray], texts: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """What the queries of each language find in one pool of all, from (n, d) unit vectors of each language's texts."""
    grams = {language: [character_grams(text) for text in of_language] for language, of_language in texts.items()}
    by_words = biases(by_characters(grams), ENGLISH)
    moved = biases(all_cosines({language: centred(rows) for language, rows in units.items()}), ENGLISH)
    return {
        language: {
            **share_estimate(bias.own).columns("own_above"),
            "other_above": float(bias.other.mean()),
            "words_own_above": float(by_words[language].own.mean()),
            "centred_own_above": float(moved[language].own.mean()),
            **_mean_of(bias.own - bias.other).columns("own_bias"),
            **_of_english(bias),
        }
        for language, bias in biases(all_cosines(units), ENGLISH).items()
    }


def _of_english(bias: Bias) -> dict[str, float | None]:
    if bias.english is None or bias.english_other is None:
        return {**Estimate().columns("english_above"), **Estimate().columns("english_bias")}
    beyond = _mean_of(bias.english - bias.english_other)
    return {**share_estimate(bias.english).columns("english_above"), **beyond.columns("english_bias")}


def _mean_of(values: np.ndarray) -> Estimate:
    """Of (n,) values by sentence."""
    return Estimate.holding(float(values.mean()), mean_interval(values, np.arange(len(values)), RESAMPLES, SEED))


def _apart(vectors: np.ndarray) -> dict[str, Any]:
    is_apart = is_told_apart(vectors)
    share = Estimate(float(is_apart.mean()), *score_share(int(is_apart.sum()), len(is_apart)))
    return {"alike": mean_cosine(vectors), **share.columns("told_apart")}


def measure(run: Run) -> list[Staged]:
    """The same sentences in several languages, each beside English."""
    return run(compare_languages, run.spec, run.settings(LanguagesSettings))
