"""Meaning: triples against a slow count, what words and chance make of them, the finding, and the step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import run_of
from tiny import tiny_bert

from embaudit.measures.meaning import MeaningSettings
from embaudit.measures.meaning.work import (
    CONTRASTS,
    REWORDINGS,
    SENTENCE,
    findings,
    meaning_of_sentences,
    sentences,
    told,
    words_nearer,
)
from embaudit.steps.staging.stage import read_rows

SIMILARITIES = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=60)


def counted(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Share and margin, triple by triple."""
    right = sum(1.0 if near > far else 0.5 if near == far else 0.0 for near, far in pairs)
    return right / len(pairs), math.fsum(near - far for near, far in pairs) / len(pairs)


@settings(max_examples=50)
@given(SIMILARITIES)
def test_shares_and_margins_are_counted(pairs: list[tuple[float, float]]) -> None:
    rewording, contrast = np.array(pairs).T
    found = told(rewording, contrast)
    share, margin = counted(pairs)
    assert found.nearer.value == pytest.approx(share)
    assert found.margin.value == pytest.approx(margin, abs=1e-12)
    nearer, low, high = found.nearer
    assert low is not None
    assert high is not None
    assert 0 <= low <= nearer <= high <= 1
    assert high > low, "a share of a sample is never certain"


@settings(max_examples=20)
@given(SIMILARITIES)
def test_exchanging_the_two_turns_the_share_round(pairs: list[tuple[float, float]]) -> None:
    rewording, contrast = np.array(pairs).T
    one, other = told(rewording, contrast), told(contrast, rewording)
    assert one.nearer.known + other.nearer.known == pytest.approx(1)
    assert one.margin.value == pytest.approx(-other.margin.known, abs=1e-12)


# ---- the sentences ----


def test_every_sentence_is_there_once_and_in_more_than_forty_triples() -> None:
    texts = sentences()
    every = [text for column in texts.values() for text in column]
    assert len(set(every)) == len(every)
    assert min(map(len, texts.values())) >= 40
    assert all(text == text.strip() and text[-1] == "." for text in every)


def test_a_contrast_shares_more_words_than_a_rewording_so_words_are_always_wrong() -> None:
    assert set(words_nearer().values()) == {0.0}


def test_a_close_rewording_shares_more_words_than_a_free_one() -> None:
    def shared(one: str, two: str) -> float:
        words = [set(text.lower().replace(".", "").split()) for text in (one, two)]
        return len(words[0] & words[1]) / len(words[0] | words[1])

    texts = sentences()
    close, free = ([shared(*pair) for pair in zip(texts[SENTENCE], texts[kind], strict=True)] for kind in REWORDINGS)
    assert np.mean(close) > 2 * np.mean(free)


def test_random_vectors_are_right_by_chance() -> None:
    generator = np.random.default_rng(0)
    vectors = [generator.normal(size=(4_000, 20)) for _ in range(3)]
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in vectors]
    found = told((units[0] * units[1]).sum(axis=1), (units[0] * units[2]).sum(axis=1))
    _, low, high = found.nearer
    assert low is not None
    assert high is not None
    assert low <= 0.5 <= high


# ---- what is said ----


def row(contrast: str, nearer: float, rewording: str = "close") -> dict[str, Any]:
    found = told(*np.array([[1, 0]] * round(46 * nearer) + [[0, 1]] * (46 - round(46 * nearer))).T)
    return {"contrast": contrast, "rewording": rewording, "triples": 46, **found.nearer.columns("nearer")}


@pytest.mark.parametrize(
    ("shares", "level", "said"),
    [
        ((1.0, 1.0), "ok", "is no further from it"),
        # Half of them is no preference.
        ((1.0, 0.5), "ok", "is no further from it"),
        ((1.0, 0.2), "look", "than almost the same words with exchanged roles (20%)"),
        ((0.0, 0.2), "look", "its denial (0%), exchanged roles (20%)"),
    ],
)
def test_the_finding_names_contrasts_that_are_clearly_preferred(
    shares: tuple[float, float], level: str, said: str
) -> None:
    rows = [row("negation", shares[0]), row("roles", shares[1]), row("negation", 0.0, "free")]
    (found,) = findings(lambda table: rows if table == "meaning" else [], MeaningSettings())
    assert found.level == level
    assert said in found.sentence
    assert found.value == pytest.approx(min(shares), abs=0.02)
    assert bool(found.advice) == (level == "look")


def test_nothing_is_said_without_rows() -> None:
    assert list(findings(lambda table: [], MeaningSettings())) == []


# ---- the step ----


def test_the_step_compares_what_the_checkpoint_gives(tmp_path: Path) -> None:
    run = run_of(tiny_bert(tmp_path / "tiny"), tmp_path, "meaning")
    (staged,) = run(meaning_of_sentences, run.spec)
    rows = read_rows([staged.path])
    assert [(one["contrast"], one["rewording"]) for one in rows] == [(c, r) for c in CONTRASTS for r in REWORDINGS]
    assert staged.encodes == sum(map(len, sentences().values()))
    for one in rows:
        assert one["margin"] == pytest.approx(one["rewording_similarity"] - one["contrast_similarity"], abs=1e-9)
        assert one["words_nearer"] == 0
        assert one["nearer_low"] <= one["nearer"] <= one["nearer_high"]
