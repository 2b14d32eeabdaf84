"""Languages as a step: one row for the sentences of each language, and whether the checkpoint says it is for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.card import front_matter
from embaudit.checkpoint.vocabulary.script import script_of
from embaudit.corpora.downstream.task import unit_rows
from embaudit.measures.languages import MEASURE_VERSION, LanguageRow, LanguagesSettings
from embaudit.measures.languages.sentences import (
    ENGLISH,
    NAMES,
    character_grams,
    chosen,
    found,
    is_told_apart,
    margins,
    mean_cosine,
    same_pairs,
    share_estimate,
    unknown_share,
)
from embaudit.measures.run import Run
from embaudit.statistics.intervals import mean_interval, score_share
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.estimate import Estimate

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
    from embaudit.measures.quality.baselines import TFIDF, collection_overlap

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
    ends = mean_interval(apart, np.arange(len(apart)), RESAMPLES, SEED)
    return {
        **share_estimate(hits).columns("found"),
        **{"chance": 1 / len(hits), "words_found": by_grams},
        **Estimate.holding(float(apart.mean()), ends).columns("margin"),
    }


def _apart(vectors: np.ndarray) -> dict[str, Any]:
    is_apart = is_told_apart(vectors)
    share = Estimate(float(is_apart.mean()), *score_share(int(is_apart.sum()), len(is_apart)))
    return {"alike": mean_cosine(vectors), **share.columns("told_apart")}


def measure(run: Run) -> list[Staged]:
    """The same sentences in several languages, each beside English."""
    return run(compare_languages, run.spec, run.settings(LanguagesSettings))
