"""Language bias against slow loops, spaces whose answer is known, and what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_languages import row, units

from embaudit.declared.rule import Finding
from embaudit.measures.languages import LanguagesSettings
from embaudit.measures.languages.bias import above, all_cosines, biases, by_characters, centred
from embaudit.measures.languages.findings import findings
from embaudit.measures.languages.steps import all_sentences, character_grams, one_pool

Space = dict[str, np.ndarray]


def space(seed: int, languages: int, n: int, offset: float, noise: float, d: int = 24) -> Space:
    """The same meanings in every language, each moved by a direction of its own."""
    # Otherwise a language's direction would be part of what is said.
    own = np.arange(d) < d // 2
    meanings = units(n, d, seed) * own
    meanings /= np.linalg.norm(meanings, axis=1, keepdims=True)
    found = {}
    for place, language in enumerate(["en", "de", "fr", "ru"][:languages]):
        rows = meanings + offset * np.eye(d)[d // 2 + place] + noise * units(n, d, 2_000 + seed + place)
        found[language] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found


def slow(vectors: Space, asked: str, irrelevant: str | None) -> tuple[float, int]:
    """How often one of the irrelevant ones is nearer than the right one, triple by triple, and of how many right ones.

    Args:
        irrelevant: their language; None: that of the right text.
    """
    hits = count = 0
    for i, query in enumerate(vectors[asked]):
        for language in vectors:
            if language in (asked, irrelevant if irrelevant != asked else None):
                continue
            right = float(query @ vectors[language][i])
            wrong = [vectors[irrelevant or language][j] for j in range(len(vectors[asked])) if j != i]
            hits += any(float(query @ one) > right for one in wrong)
            count += 1
    return hits / count if count else float("nan"), count


@settings(max_examples=15)
@given(st.integers(0, 1_000), st.integers(2, 4), st.integers(3, 9), st.floats(0, 3), st.floats(0.1, 2))
def test_shares_are_those_of_loops(seed: int, languages: int, n: int, offset: float, noise: float) -> None:
    vectors = space(seed, languages, n, offset, noise)
    for asked, bias in biases(all_cosines(vectors), "en").items():
        assert bias.own.mean() == pytest.approx(slow(vectors, asked, asked)[0])
        assert bias.other.mean() == pytest.approx(slow(vectors, asked, None)[0])
        share, count = slow(vectors, asked, "en")
        if asked == "en" or not count:
            assert bias.english is None
            assert bias.english_other is None
        else:
            assert bias.english is not None
            assert bias.english.mean() == pytest.approx(share)


def test_equal_texts_stand_above_by_chance() -> None:
    assert above(np.ones(4), np.ones((4, 4))).tolist() == [0.75] * 4
    # What the query says itself is not irrelevant, and rounding puts nothing above.
    assert above(np.zeros(3), np.eye(3) - 1).tolist() == [0.0] * 3
    assert above(np.zeros(2), np.full((2, 2), 1e-8)).tolist() == [0.5, 0.5]


def test_random_vectors_miss_by_chance_and_have_no_bias() -> None:
    found = [
        biases(
            all_cosines({name: units(20, 16, 10 * seed + place) for place, name in enumerate(["en", "de", "fr"])}), "en"
        )
        for seed in range(100)
    ]
    own, other = (
        np.mean([getattr(one[name], side).mean() for one in found for name in one]) for side in ("own", "other")
    )
    assert own == pytest.approx(1 - 1 / 20, abs=0.01)
    assert other == pytest.approx(own, abs=0.01)


def test_a_direction_of_each_language_is_bias_and_its_mean_takes_it_out() -> None:
    """The right text is the nearest of its language, and below all of the query's own until they are centred."""
    vectors = space(3, 4, 40, offset=3.0, noise=0.05)
    found = one_pool(vectors, {name: texts for name, texts in all_sentences().items() if name in vectors})
    for name, one in found.items():
        assert (one["own_above"], one["other_above"], one["own_bias"]) == (1.0, 0.0, 1.0)
        assert one["centred_own_above"] < 0.2
        # All are equal, which is no certainty for a bootstrap; Wilson's interval has a width.
        assert one["own_bias_low"] is None
        assert one["own_above_low"] < 0.95
        # English is no nearer than any other language.
        assert one["english_above"] == (None if name == "en" else 0.0)


def test_english_beside_the_others_is_english_bias() -> None:
    """Every query is moved towards English, and so are the English texts; others are where they were."""
    meanings = units(40, 64, 5) * (np.arange(64) > 0)
    towards = {"de": 4.0, "fr": 0.0, "en": 4.0}
    vectors = {name: meanings + far * np.eye(64)[:1] for name, far in towards.items()}
    cosines = all_cosines({name: rows / np.linalg.norm(rows, axis=1, keepdims=True) for name, rows in vectors.items()})
    bias = biases(cosines, "en")["de"]
    assert bias.english is not None
    assert bias.english_other is not None
    assert bias.english.mean() == 1.0
    assert bias.english_other.mean() == 0.0


@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(0, 1_000))
def test_a_vector_is_centred_by_others_only(n: int, seed: int) -> None:
    rows = units(n, 5, seed)
    moved = rows.copy()
    for i in range(n):
        moved[i] -= np.mean([rows[j] for j in range(n) if j % 2 != i % 2], axis=0)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    np.testing.assert_allclose(centred(rows), moved, atol=1e-9)


def test_by_characters_its_own_language_comes_first_too() -> None:
    grams = {name: [character_grams(text) for text in all_sentences()[name]] for name in ("en", "de", "ru")}
    found = biases(by_characters(grams), "en")
    assert found["ru"].own.mean() > 0.95
    assert found["de"].own.mean() > found["de"].other.mean() > 0.5


# ---- what is said ----


def said(*rows: dict[str, Any]) -> Finding:
    made = findings(lambda table: list(rows) if table == "language" else [], LanguagesSettings())
    return {one.name: one for one in made}["own_language_first"]


def test_a_language_whose_translations_are_hidden_is_named() -> None:
    one = said(
        row("en", None, own_above=0.03, own_bias=0.02),
        row("zh", 1.0, own_above=0.6, other_above=0.02, own_bias=0.58, centred_own_above=0.05),
        row("de", 1.0, own_above=0.1, own_bias=0.09),
        row("pt", 1.0, own_above=0.5, other_above=0.04, own_bias=0.46, centred_own_above=0.08),
    )
    assert (one.level, one.value) == ("look", 0.58)
    assert one.sentence == (
        "In one pool of 4 languages, an irrelevant sentence in the query's own language stands above the right one of "
        "another language for queries in Chinese (60%), Portuguese (50%); one in the right one's language, at most 4%. "
        "Chinese differs most: +58% [+53%, +63%]."
    )
    assert "at most 8% are then left here" in one.advice


def test_english_before_everything_is_named_too() -> None:
    one = said(row("en", None), row("zh", 1.0, english_above=0.4, english_bias=0.38), row("de", 1.0))
    assert one.level == "look"
    assert "an irrelevant sentence in English stands above the right one" in one.sentence
    assert "Chinese (40%)" in one.sentence
    assert (one.value, one.sentence.partition("differs most: ")[2]) == (0.38, "+38% [+33%, +43%].")
    assert "English texts before the right ones" in one.meaning


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"own_bias_low": 0.09}, "60% of the right ones of another (Chinese)"),
        ({"own_bias_low": None, "own_bias_high": None}, "60% of the right ones of another (Chinese)"),
        # Half of them are missed anyway.
        ({"other_above": 0.5}, "2% of the right ones of another (English)"),
    ],
)
def test_what_may_be_chance_or_is_missed_anyway_is_no_bias(changed: dict[str, Any], named: str) -> None:
    one = said(row("en", None), row("zh", 1.0, own_above=0.6, own_bias=0.58, **changed))
    assert one.level == "ok"
    assert f"stand above {named}" in one.sentence


def test_a_checkpoint_for_one_language_is_told_nothing_but_that() -> None:
    one = said(*(row(name, share, own_above=0.95, other_above=0.85) for name, share in (("en", None), ("de", 0.4))))
    assert one.level == "ok"
    assert one.sentence.endswith(
        "It finds most translations for queries of no language, so no language can come first."
    )
    few = {"own_above_low": None, "own_bias_low": None, "own_bias_high": None}
    assert said(row("en", None, **few), row("de", 0.4, **few)).level == "not measured"
