from __future__ import annotations

import sys

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from embaudit.checkpoint.vocabulary.script import COMMON, SCRIPTS, UNKNOWN, script_of, script_of_character


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("the", "Latin"),
        (" the", "Latin"),
        ("ſ", "Latin"),
        ("ᴮ", "Latin"),
        ("привет", "Cyrillic"),
        ("糹", "Han"),
        ("っ", "Hiragana"),
        ("カ", "Katakana"),
        ("ন", "Bengali"),
        ("ང", "Tibetan"),
        ("ᆷ", "Hangul"),
        ("ذ", "Arabic"),
        ("ว", "Thai"),
        ("2014", COMMON),
        ("...", COMMON),
        ("😀", COMMON),
        (" ", COMMON),
        ("10th", "Latin"),
        ("µ", COMMON),  # the micro sign; the Greek letter is another character
        ("μ", "Greek"),
        ("\u0301", "Inherited"),
        ("e\u0301", "Latin"),
        ("ー", COMMON),  # the long-vowel mark serves both kana
        ("食べる", "Hiragana"),
        ("食べ", "Han"),
        ("", UNKNOWN),
        ("\ue412", UNKNOWN),  # private use
        ("\U000e0fff", UNKNOWN),
    ],
)
def test_script_of_text(text: str, script: str) -> None:
    assert script_of(text) == script


def test_every_assigned_code_point_has_a_script() -> None:
    """No script is missing from the list: what is left over is what Unicode itself calls Unknown."""
    known = regex.compile("[" + "".join(rf"\p{{Script={name}}}" for name in SCRIPTS) + "]")
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    assert regex.sub(r"\p{Script=Unknown}", "", known.sub("", everything)) == ""


def test_names_are_unicode_names() -> None:
    assert len(set(SCRIPTS)) == len(SCRIPTS)
    assert all(regex.compile(rf"\p{{Script={name}}}") for name in SCRIPTS[:100])


@given(st.characters(codec="utf-8"))
def test_a_character_has_the_script_that_regex_says(character: str) -> None:
    script = script_of_character(character)
    assert regex.fullmatch(rf"\p{{Script={script}}}", character)


@given(st.text(st.characters(categories=["L"]), min_size=1), st.text(st.characters(categories=["Nd", "Po"])))
def test_digits_and_punctuation_do_not_decide(letters: str, marks: str) -> None:
    plain = script_of(letters)
    if plain not in (COMMON, UNKNOWN):
        own = [s for s in map(script_of_character, marks) if s not in (COMMON, UNKNOWN, "Inherited")]
        assert script_of(letters + marks) == plain or own
