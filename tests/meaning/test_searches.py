"""Searches against a slow count, what words and chance make of them, the finding, and the step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import found_by, run_of, tables_of
from tiny import tiny_bert

from embaudit.checkpoint import Encoder
from embaudit.declared.document import Table
from embaudit.measures.meaning import MeaningSettings
from embaudit.measures.meaning.searches import KINDS, searches, share, words_found
from embaudit.measures.meaning.work import (
    CONTRASTS,
    REWORDINGS,
    SENTENCE,
    findings,
    meaning_of_sentences,
    section,
    sentences,
    told,
    words_nearer,
)
from embaudit.measures.measure import Readable
from embaudit.steps.results import checkpoint_of
from embaudit.steps.staging.stage import read_rows


@settings(max_examples=50)
@given(st.lists(st.sampled_from([-1.0, -0.1, 0.0, 0.1, 1.0]), min_size=1, max_size=60))
def test_a_share_is_counted_one_by_one(margins: list[float]) -> None:
    right = sum(1.0 if one > 0 else 0.5 if one == 0 else 0.0 for one in margins)
    found = share(np.array(margins))
    assert found.value == pytest.approx(right / len(margins))
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.known <= found.high <= 1
    assert found.high > found.low, "a share of a sample is never certain"
    assert share(-np.array(margins)).known == pytest.approx(1 - found.known)


# ---- the texts ----


def test_every_kind_has_sixteen_searches_and_no_text_twice() -> None:
    every = searches()
    assert Counter(one.kind for one in every) == dict.fromkeys(KINDS, 16)
    texts = [text for one in every for text in one[1:]]
    assert len(set(texts)) == len(texts)
    assert all(text == text.strip() and len(text.split()) > 1 for text in texts)
    assert all(one.right[-1] == one.wrong[-1] == "." or one.kind == "foil" for one in every)


def words(text: str) -> list[str]:
    return text.lower().replace(",", "").replace(".", "").replace("?", "").split()


@pytest.mark.parametrize("kind", ["magnitude", "version"])
def test_texts_of_a_figure_or_version_differ_in_one_place(kind: str) -> None:
    for one in searches():
        if one.kind == kind:
            right, wrong = words(one.right), words(one.wrong)
            assert len(right) == len(wrong)
            assert sum(a != b for a, b in zip(right, wrong, strict=True)) == 1, one


def test_a_foil_is_shorter_begins_with_the_query_and_shares_more_of_its_words() -> None:
    for one in searches():
        if one.kind == "foil":
            assert len(words(one.wrong)) < 0.6 * len(words(one.right))
            asked = set(words(one.query))
            shared = [len(asked & set(words(text))) for text in (one.right, one.wrong)]
            assert shared[1] > shared[0], one.query
            assert asked & set(words(one.wrong)[:4]), one.query


def test_an_exclusion_is_said_in_the_query_and_broken_by_the_wrong_text() -> None:
    said = {"without", "not", "no", "except", "excluding", "cannot", "other"}
    for one in searches():
        if one.kind == "exclusion":
            assert said & set(words(one.query)), one.query


def test_words_alone_are_right_about_versions_and_wrong_where_the_wrong_text_repeats_the_query() -> None:
    found = words_found()
    assert {kind: found[kind] for kind in ("unit", "exclusion", "foil")} == {"unit": 0.0, "exclusion": 0.0, "foil": 0.0}
    assert found["version"] > 0.9
    assert 0.3 < found["magnitude"] < 0.7


def test_random_vectors_are_right_by_chance() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 4_000, 20))
    units = rows / np.linalg.norm(rows, axis=2, keepdims=True)
    found = share((units[0] * units[1]).sum(axis=1) - (units[0] * units[2]).sum(axis=1))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.5 <= found.high


# ---- what is said ----


def row(kind: str, right: int, words_found: float = 0.0) -> dict[str, Any]:
    found = share(np.array([1.0] * right + [-1.0] * (16 - right)))
    return {"kind": kind, "searches": 16, **found.columns("found"), "words_found": words_found}


@pytest.mark.parametrize(
    ("rows", "level", "said"),
    [
        # Five of sixteen may be chance, four are not.
        (
            (row("unit", 5), row("version", 16, 0.97)),
            "ok",
            "least often beside the same figure in another unit (31% [14%, 56%])",
        ),
        (
            (row("unit", 4), row("version", 16, 0.97)),
            "look",
            "before the right one: the same figure in another unit (25% [10%, 49%])",
        ),
        (
            (row("foil", 0), row("exclusion", 2)),
            "look",
            "without an answer (0% [0%, 19%]), what the query excludes (12% [3%, 36%])",
        ),
        # What words find, it has to find as well.
        ((row("unit", 8), row("version", 12, 0.97)), "look", "another version (75% [51%, 90%])"),
        ((row("unit", 8), row("version", 15, 0.97)), "ok", "no less often"),
    ],
)
def test_the_finding_names_what_comes_before_the_right_text(
    rows: tuple[dict[str, Any], ...], level: str, said: str
) -> None:
    found = found_by("meaning", {"meaning_search": list(rows)})
    assert list(found) == ["searches"]
    assert found["searches"].level == level
    assert said in found["searches"].sentence
    assert bool(found["searches"].advice) == (level == "look")


# ---- the step ----


def test_the_step_asks_with_the_prompt_of_queries(tmp_path: Path) -> None:
    """Each share is that of vectors which are compared here one by one."""
    run = run_of(tiny_bert(tmp_path / "tiny"), tmp_path, "meaning")
    rows = {one["kind"]: one for one in tables_of(run, "meaning")["meaning_search"]}
    assert list(rows) == list(KINDS)
    checkpoint = checkpoint_of(run.spec)

    def vector(text: str, role: Any) -> np.ndarray:
        vectors = Encoder(checkpoint.reading(role)).encode_texts([text])[0].astype(np.float64)
        return np.asarray(vectors / np.linalg.norm(vectors))

    kind = "unit"
    margins = []
    for one in searches():
        if one.kind == kind:
            query = vector(one.query, "query")
            margins.append(query @ vector(one.right, "document") - query @ vector(one.wrong, "document"))
    assert rows[kind]["found"] == np.mean(np.array(margins) > 0)
    assert rows[kind]["margin"] == pytest.approx(np.mean(margins), abs=1e-5)
    for one in rows.values():
        assert one["margin"] == pytest.approx(one["right_similarity"] - one["wrong_similarity"], abs=1e-9)


def test_as_much_is_encoded_as_is_estimated() -> None:
    readable = Readable(6, 72, 384, 30_522, 1_000, 256, {}, {})
    assert [one.texts for one in MeaningSettings().work(readable)] == [
        sum(map(len, sentences().values())),
        3 * len(searches()),
    ]


def test_an_audit_of_before_has_no_searches_to_show() -> None:
    triples = [
        {"contrast": "roles", "rewording": kind, "triples": 46, "nearer": 0.1, "nearer_low": 0.05, "nearer_high": 0.2}
        | {"words_nearer": 0.0, "margin": 0.1, "rewording_similarity": 0.5, "contrast_similarity": 0.4}
        for kind in ("close", "free")
    ]
    shown = section({"meaning": triples, "meaning_searches": []})
    assert shown is not None
    assert sum(isinstance(part, Table) for part in shown.parts) == 1


# ---- meaning: triples against a slow count, what words and chance make of them, the finding, and the step ----


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


def test_random_vectors_of_pairs_are_right_by_chance() -> None:
    generator = np.random.default_rng(0)
    vectors = [generator.normal(size=(4_000, 20)) for _ in range(3)]
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in vectors]
    found = told((units[0] * units[1]).sum(axis=1), (units[0] * units[2]).sum(axis=1))
    _, low, high = found.nearer
    assert low is not None
    assert high is not None
    assert low <= 0.5 <= high


# ---- what is said ----


def row_of(contrast: str, nearer: float, rewording: str = "close") -> dict[str, Any]:
    found = told(*np.array([[1, 0]] * round(46 * nearer) + [[0, 1]] * (46 - round(46 * nearer))).T)
    return {"contrast": contrast, "rewording": rewording, "triples": 46, **found.nearer.columns("nearer")}


@pytest.mark.parametrize(
    ("shares", "level", "said"),
    [
        ((1.0, 1.0), "ok", "is no further from it"),
        # Half of them is no preference.
        ((1.0, 0.5), "ok", "is no further from it"),
        ((1.0, 0.2), "look", "exchanged roles (20% [11%, 33%])"),
        ((0.0, 0.2), "look", "its denial (0% [0%, 8%]), exchanged roles (20% [11%, 33%])"),
    ],
)
def test_the_finding_names_contrasts_that_are_clearly_preferred(
    shares: tuple[float, float], level: str, said: str
) -> None:
    rows = [row_of("negation", shares[0]), row_of("roles", shares[1]), row_of("negation", 0.0, "free")]
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
