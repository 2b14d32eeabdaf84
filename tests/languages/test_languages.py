"""Translations found against slow loops, vectors whose answer is known, and a tokenizer that cannot write a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import run_of
from scipy.stats import ortho_group
from tiny import tiny_bert

from embaudit.checkpoint.vocabulary.script import script_of
from embaudit.declared.chart import Chart
from embaudit.declared.document import Table
from embaudit.declared.rule import Finding
from embaudit.measures.languages import SENTENCES, LanguageRow, LanguagesSettings
from embaudit.measures.languages.findings import findings, section
from embaudit.measures.languages.steps import (
    NAMES,
    _vectors,
    all_sentences,
    character_grams,
    chosen,
    declared_languages,
    found,
    grams_found,
    is_declared,
    is_told_apart,
    margins,
    mean_cosine,
    measure,
    nearest,
    same_pairs,
    share_estimate,
    unknown_share,
)
from embaudit.measures.run import Run
from embaudit.pages.html import svg
from embaudit.statistics import score_share
from embaudit.steps.staging.stage import read_rows
from embaudit.words.estimate import Estimate


def units(n: int, d: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng([seed, n, d]).normal(size=(n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


# ---- the sentences ----


def test_every_sentence_is_there_once_in_each_language() -> None:
    sentences = all_sentences()
    assert sentences.keys() == NAMES.keys() == {"en", *LanguagesSettings().languages}
    for language, texts in sentences.items():
        assert len({*texts}) == len(texts) == SENTENCES, language
        assert all(text == text.strip() and len(text) > 5 for text in texts), language
    scripts = {language: script_of("".join(texts)) for language, texts in sentences.items()}
    assert set(scripts.values()) == {"Latin", "Cyrillic", "Han", "Hiragana", "Arabic", "Devanagari", "Hangul"}
    # No two translations are the same words.
    assert not {*sentences["en"]} & {*sentences["de"]}


def test_numbers_are_the_same_in_all_languages() -> None:
    for place, english in enumerate(all_sentences()["en"]):
        wanted = {"".join(filter(str.isdigit, english))}
        # The hour of a concert is 8 or 20.
        wanted |= {"20"} if wanted == {"8"} else set()
        for language, texts in all_sentences().items():
            assert "".join(filter(str.isdigit, texts[place])) in wanted, (language, place)


def test_characters_find_names_and_numbers_and_little_else() -> None:
    assert character_grams("The Concert, um 8!") == "the con onc nce cer ert um 8"
    assert character_grams("…") == ""
    shares = grams_found(all_sentences())
    assert all(0.05 < shares[language] < 0.15 for language in ("ru", "zh", "ja", "ar", "hi", "ko"))
    assert all(0.15 < shares[language] < 0.6 for language in ("de", "fr", "es", "pt", "pl", "tr"))
    assert grams_found({"en": all_sentences()["en"], "copy": all_sentences()["en"]}) == {"copy": 1.0}


# ---- by definition ----


def slow(english: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """(found, margin), one product at a time."""
    hits, margin, n = 0, 0.0, len(english)

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(sum(x * y for x, y in zip(a, b, strict=True)) / sqrt(sum(a * a)) / sqrt(sum(b * b)))

    for asked, known in ((english, other), (other, english)):
        for i in range(n):
            wrong = max(cosine(asked[i], known[j]) for j in range(n) if j != i)
            right = cosine(asked[i], known[i])
            hits += right > wrong
            margin += right - wrong
    return hits / (2 * n), margin / (2 * n)


@settings(max_examples=10)
@given(st.integers(0, 1000), st.integers(2, 9), st.floats(0, 1))
def test_found_and_margin_are_those_of_loops(seed: int, n: int, noise: float) -> None:
    english = units(n, 5, seed)
    other = english + noise * units(n, 5, seed + 1)
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    cosines = other @ english.T
    assert (found(cosines).mean(), margins(cosines).mean()) == pytest.approx(slow(english, other), abs=1e-9)


def test_cosines_within_a_language_are_those_of_loops() -> None:
    rows = units(12, 3)
    rows[7] = rows[2]
    pairs = [(i, j) for i in range(12) for j in range(12) if i != j]
    assert mean_cosine(rows) == pytest.approx(np.mean([rows[i] @ rows[j] for i, j in pairs]))
    slow_apart = [max(rows[i] @ rows[j] for j in range(12) if j != i) <= 0.99 for i in range(12)]
    assert is_told_apart(rows).tolist() == slow_apart
    assert not slow_apart[7]
    # A sentence without a vector is told from nothing.
    rows[5] = 0
    assert not is_told_apart(rows)[5]


# ---- what is known ----


def test_english_finds_itself_and_random_vectors_find_by_chance() -> None:
    english = units(40, 32)
    assert found(english @ english.T).tolist() == [1.0] * 40
    assert tuple(share_estimate(np.ones(40))) == pytest.approx((1.0, score_share(40, 40)[0], 1.0))
    shares = [found(units(40, 32, seed) @ english.T).mean() for seed in range(1, 200)]
    assert np.mean(shares) == pytest.approx(1 / 40, abs=0.005)


def test_equal_vectors_find_by_chance_and_a_turned_space_finds_nothing() -> None:
    same = np.repeat(units(1, 8), 40, axis=0)
    assert found(same @ units(40, 8).T).mean() == pytest.approx(0.5 * (1 / 40 + 1 / 40))
    assert nearest(np.ones((5, 5))).tolist() == [0.2] * 5
    # Rounding makes none of them the nearest.
    assert nearest(1 + 1e-8 * units(5, 5)).tolist() == [0.2] * 5
    turned = units(40, 32) @ ortho_group.rvs(32, random_state=0)
    assert found(turned @ units(40, 32).T).mean() < 0.15
    assert mean_cosine(turned) == pytest.approx(mean_cosine(units(40, 32)))


@settings(max_examples=20)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=10, max_size=60))
def test_an_interval_holds_its_share_and_has_a_width(values: list[float]) -> None:
    _, low, high = share_estimate(np.array(values))
    assert low is not None
    assert high is not None
    assert 0 <= low <= np.mean(values) <= high <= 1
    assert high - low > 0.02


def test_below_ten_sentences_there_is_no_interval() -> None:
    assert share_estimate(np.ones(9)) == Estimate(1.0)


def test_what_is_unknown_is_counted() -> None:
    assert unknown_share([[1, 5, 5], [5]], 5) == 0.75
    assert unknown_share([[1, 5]], None) == 0.0
    assert unknown_share([[], []], 5) == 0.0
    assert same_pairs([[1], [2], [1], [1], [2]]) == 4


# ---- what a card says ----


def test_languages_of_a_card(tmp_path: Path) -> None:
    def said(front: str) -> frozenset[str] | None:
        (tmp_path / "README.md").write_text(f"---\n{front}\n---\n# A model\n")
        return declared_languages(tmp_path)

    assert declared_languages(tmp_path) is None
    assert said("license: mit") is None
    assert said("language: en") == frozenset(["en"])
    assert said("language:\n- multilingual\n- de") == frozenset(["multilingual", "de"])
    assert said("language: pt-BR") == frozenset(["pt"])
    assert said("language: [") is None
    assert [is_declared("de", one) for one in (None, frozenset(["en"]), frozenset(["multilingual"]))] == [
        *(None, False, True)
    ]


# ---- findings ----


def row(language: str, share: float | None = 1.0, **other: Any) -> dict[str, Any]:
    found = Estimate() if share is None else share_estimate((np.arange(40) < round(40 * share)).astype(float))
    return {
        **{"language": language, "name": NAMES[language], "declared": None, "sentences": 40},
        **found.columns("found"),
        **{"chance": 0.025, "words_found": 0.2},
        **{
            "unknown": 0.0,
            "same_ids": 0,
            "empty": 0,
            "alike": 0.1,
            "english_alike": 0.1,
            "told_apart": 1.0,
            "told_apart_low": 0.9,
            "told_apart_high": 1.0,
        },
        **in_one_pool(**other),
        **other,
    }


def in_one_pool(own_above: float = 0.02, own_bias: float = 0.0, english_bias: float = 0.0, **_: Any) -> dict[str, Any]:
    """Of a language that does not come first, unless these say so."""
    return {
        **Estimate.around(own_above, 0.05).columns("own_above"),
        **Estimate.around(own_bias, 0.05).columns("own_bias"),
        **Estimate.around(english_bias, 0.05).columns("english_bias"),
        **{"other_above": 0.02, "centred_own_above": 0.01, "english_above": 0.02},
    }


def made(*rows: dict[str, Any]) -> dict[str, Finding]:
    every = [row("en", None), *rows]
    return {one.name: one for one in findings(lambda table: every if table == "language" else [], LanguagesSettings())}


def test_a_monolingual_checkpoint_is_not_broken() -> None:
    one = made(row("de", 0.1, declared=False), row("fr", 0.5), row("ru", 0.95))["retrieval"]
    assert one.level == "ok"
    assert one.sentence == (
        "Of 40 sentences, these are nearest to their translation into English: most in Russian (95%); more than shared "
        "characters explain in French (50%); not surely more than shared characters explain in German (10%). On "
        "average 52%."
    )


def test_a_language_that_is_listed_has_to_be_found() -> None:
    one = made(row("de", 0.5, declared=True), row("fr", 0.95, declared=True))["retrieval"]
    assert (one.level, one.value) == ("look", 0.5)
    assert one.sentence.endswith("Its model card lists German (50% [35%, 65%]).")
    # As long as it may be found often enough, nothing is held against it.
    assert made(row("de", 0.75, declared=True))["retrieval"].level == "ok"
    few = {"found_low": None, "found_high": None}
    assert made(row("de", 0.5, declared=True, **few))["retrieval"].level == "not measured"


@pytest.mark.parametrize(
    ("changed", "level", "said"),
    [
        ({}, "ok", "in all of 2 languages are read and told apart: at most 0.0%"),
        ({"unknown": 0.099}, "ok", "at most 9.9% of the tokens are unknown (Chinese)"),
        (
            {"unknown": 0.1},
            "look",
            "Texts in Chinese are hardly read or told apart: tokens that are unknown, 10% in Chinese.",
        ),
        ({"unknown": 0.6, "declared": False}, "look", "60% in Chinese"),
        ({"unknown": 0.6, "declared": True}, "problem", "60% in Chinese"),
        (
            {"same_ids": 3, "told_apart": 0.9},
            "look",
            "same ids, 3 pairs of sentences in Chinese; told apart from all others, 90% [90%, 100%] in Chinese.",
        ),
        ({"told_apart": 0.8, "told_apart_low": 0.7, "told_apart_high": 0.9}, "look", "80% [70%, 90%] in Chinese"),
        (
            {"same_ids": 1, "empty": 2},
            "look",
            "1 pair of sentences in Chinese; no token left, 2 sentences in Chinese.",
        ),
        # A fifth of what English leaves.
        ({"alike": 0.83}, "look", "cosine of two sentences, 0.83 in Chinese (English 0.10)"),
        ({"alike": 0.81}, "ok", ""),
        ({"alike": 0.83, "english_alike": 0.8}, "ok", ""),
        # Two of forty may be chance.
        ({"told_apart": 0.94, "told_apart_high": 0.98}, "ok", "in all of 2 languages"),
    ],
)
def test_a_script_that_is_not_written(changed: Mapping[str, Any], level: str, said: str) -> None:
    one = made(row("zh", 0.1, **changed))["unwritten"]
    assert one.level == level
    assert said in one.sentence
    assert bool(one.advice) == (level != "ok")


def test_without_languages_there_is_no_finding() -> None:
    assert not made()


# ---- the step ----


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A vocabulary of Latin letters and digits, and nothing else."""
    folder = tmp_path_factory.mktemp("languages")
    return run_of(tiny_bert(folder / "tiny"), folder, "languages", languages=("de", "zh", "ru"))


def test_a_vocabulary_without_a_script_writes_nothing_in_it(run: Run, one_thread: None) -> None:
    (staged,) = measure(run)
    rows = {one["language"]: one for one in read_rows([staged.path])}
    assert list(rows) == ["en", "de", "zh", "ru"]
    english, german, chinese, russian = rows.values()
    assert (english["found"], english["premium"], english["unknown"]) == (None, 1.0, 0.0)
    assert german["premium"] > 1
    # It has no ß.
    assert 0 < german["unknown"] < 0.01
    assert (german["same_ids"], german["script"]) == (0, "Latin")
    assert (english["english_above"], english["english_bias"]) == (None, None)
    assert german["english_above"] is not None
    # Digits are known, and so are commas and full stops, but not those of Chinese.
    assert chinese["unknown"] > 0.95
    assert russian["unknown"] > 0.75
    assert chinese["same_ids"] > 10
    assert chinese["told_apart"] < 0.5
    assert (chinese["told_apart_low"], chinese["told_apart_high"]) == score_share(round(40 * chinese["told_apart"]), 40)
    for one in rows.values():
        assert one["english_alike"] == english["alike"]
        assert one["tokens"] == pytest.approx(one["premium"] * english["tokens"])
        assert all(value == value for value in one.values())
        assert one["own_bias"] == pytest.approx(one["own_above"] - one["other_above"])
        assert 0 <= one["own_above_low"] <= one["own_above"] <= one["own_above_high"] <= 1
    pandas = pytest.importorskip("pandas")
    derived = LanguageRow.table.derive(pandas.DataFrame(list(rows.values())))
    for rule in LanguageRow.table.rules:
        assert derived[rule.name].all(), rule.name
    found_here = {one.name: one for one in findings(lambda table: list(rows.values()), LanguagesSettings())}
    assert found_here["unwritten"].level == "look"
    assert "Chinese" in found_here["unwritten"].sentence
    assert "German" not in found_here["unwritten"].sentence
    assert staged.encodes == 160
    assert measure(run) == [staged]


def test_it_is_shown_with_severe_tokens_only_if_they_were_searched_for(run: Run, one_thread: None) -> None:
    (staged,) = measure(run)
    facts = {"languages": read_rows([staged.path]), "language_severe": []}
    shown = section(facts)
    assert shown is not None
    table, chart = shown.parts
    assert isinstance(table, Table)
    assert isinstance(chart, Chart)
    assert len(chart.records()) == 6
    assert svg(chart, {})
    assert len(table.rows) == 4
    with_severe = section({**facts, "language_severe": [{"script": "Cyrillic", "severe": 3}]})
    assert with_severe is not None
    (severe, *_) = with_severe.parts
    assert isinstance(severe, Table)
    assert {cells[0]: cells[-1] for cells in severe.rows} == {"English": 0, "German": 0, "Chinese": 0, "Russian": 3}
    assert section({"languages": [], "language_severe": []}) is None


class Dropping:
    """A tokenizer without special tokens that drops what it does not know."""

    checkpoint = SimpleNamespace(dimension=4)

    def encode_ids(self, sequences: Sequence[Sequence[int]], progress: Any) -> np.ndarray:
        assert all(sequences)
        return np.array([[ids[0], 1, 0, 0] for ids in sequences], dtype=np.float32)


def test_a_sentence_without_tokens_has_no_vector() -> None:
    vectors = _vectors(Dropping(), [[3], [], [3, 5], []])  # type: ignore[arg-type]
    assert vectors[[1, 3]].tolist() == [[0.0] * 4] * 2
    assert np.linalg.norm(vectors[[0, 2]], axis=1) == pytest.approx(1)
    # And finds its translation by chance alone.
    assert nearest(vectors @ vectors.T)[[1, 3]].tolist() == [0.25, 0.25]


def test_as_much_is_encoded_as_is_estimated() -> None:
    assert [one.texts for one in LanguagesSettings().work(_readable())] == [
        sum(len(texts) for texts in chosen(LanguagesSettings().languages).values())
    ]


def _readable() -> Any:
    from embaudit.measures.measure import Readable

    return Readable(6, 72, 384, 30_522, 1_000, 256, {}, {})
