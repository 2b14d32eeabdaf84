"""Origin and script of tokens, by their marks and letters."""

from __future__ import annotations

import sys

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import ByteLevel

from embaudit.checkpoint.vocabulary.script import (
    COMMON,
    SCRIPTS,
    UNKNOWN,
    WordMarks,
    is_marker,
    origin_of,
    read_marks,
    script_of,
    script_of_character,
    token_bytes,
)

WORDPIECE = WordMarks(continuation="##")
SENTENCEPIECE = WordMarks(start="▁")
BYTE_LEVEL = WordMarks(start="Ġ", is_byte_level=True)
CLIP = WordMarks(end="</w>", is_byte_level=True)
PLAIN = WordMarks()


@pytest.mark.parametrize(
    ("marks", "token", "text", "origin"),
    [
        (WORDPIECE, "table", "table", "word"),
        (WORDPIECE, "##ing", "##ing", "subword"),
        (WORDPIECE, "##", "##", "punctuation"),
        (WORDPIECE, "#", "#", "punctuation"),
        (WORDPIECE, "##19", "##19", "digits"),
        (WORDPIECE, "##8th", "##8th", "subword"),
        (WORDPIECE, "½", "½", "digits"),
        (WORDPIECE, "²", "²", "digits"),
        (WORDPIECE, "##ा", "##ा", "subword"),  # an Indic vowel sign is a mark, and no punctuation
        (WORDPIECE, "\u0301", "\u0301", "punctuation"),
        (WORDPIECE, "€", "€", "punctuation"),
        (WORDPIECE, "[unused7]", "[unused7]", "unused"),
        (SENTENCEPIECE, "▁the", " the", "word"),
        (SENTENCEPIECE, "ing", "ing", "subword"),
        (SENTENCEPIECE, "▁", " ", "byte"),
        (SENTENCEPIECE, "▁2014", " 2014", "digits"),
        (SENTENCEPIECE, "▁—", " —", "punctuation"),
        (SENTENCEPIECE, "<0x0A>", "\n", "byte"),
        (SENTENCEPIECE, "<0x41>", "A", "byte"),
        (SENTENCEPIECE, "<unused12>", "<unused12>", "unused"),
        (SENTENCEPIECE, "\u200d", "\u200d", "byte"),
        (SENTENCEPIECE, "\ue412", "\ue412", "punctuation"),
        (BYTE_LEVEL, "Ġthe", " the", "word"),
        (BYTE_LEVEL, "ing", "ing", "subword"),
        (BYTE_LEVEL, "Ġ", " ", "byte"),
        (BYTE_LEVEL, "Ċ", "\n", "byte"),
        (BYTE_LEVEL, "âĢ", "\ufffd", "byte"),
        (BYTE_LEVEL, "ï¿½", "\ufffd", "punctuation"),  # the token of U+FFFD itself is no broken one
        (BYTE_LEVEL, "ĠÐ¿", " п", "word"),
        (BYTE_LEVEL, "Ġ1999", " 1999", "digits"),
        (BYTE_LEVEL, "####", "####", "punctuation"),
        (BYTE_LEVEL, "madeupword0001", "madeupword0001", "unused"),
        (BYTE_LEVEL, "<|reserved_special_token_7|>", "<|reserved_special_token_7|>", "unused"),
        (CLIP, "the</w>", "the", "word"),
        (CLIP, "worl", "worl", "subword"),
        (CLIP, "!</w>", "!", "punctuation"),
        (CLIP, "1</w>", "1", "digits"),
        (CLIP, "é</w>", "\ufffd", "byte"),
        (PLAIN, "word", "word", "word"),
        (PLAIN, "[x", "[x", "word"),
    ],
)
def test_origin_by_marks(marks: WordMarks, token: str, text: str, origin: str) -> None:
    assert origin_of(token, text, marks) == origin


def test_special_comes_first_and_a_row_without_string_is_unused() -> None:
    assert origin_of("[CLS]", "[CLS]", WORDPIECE, is_special=True) == "special"
    assert origin_of("<extra_id_0>", "<extra_id_0>", SENTENCEPIECE, is_special=True) == "special"
    assert origin_of("<extra_id_0>", "<extra_id_0>", SENTENCEPIECE) == "unused"
    assert origin_of(None, "", WORDPIECE) == "unused"
    assert origin_of("<html>", "<html>", WORDPIECE, is_dead_marker=True) == "unused"
    assert origin_of("<html>", "<html>", WORDPIECE) == "word"


@pytest.mark.parametrize(
    ("two_words", "accented", "marks"),
    [
        (["▁a", "▁a"], ["▁é"], SENTENCEPIECE),
        (["a", "▁a"], ["é"], SENTENCEPIECE),  # Gemma adds no space in front
        (["▁", "<unk>", "▁", "<unk>"], ["▁", "<unk>"], SENTENCEPIECE),  # a vocabulary without Latin
        (["a", "Ġa"], ["Ã©"], BYTE_LEVEL),
        (["a</w>", "a</w>"], ["Ã©</w>"], CLIP),
        (["a", "a"], ["e"], PLAIN),
    ],
)
def test_marks_are_read_off_the_behaviour(two_words: list[str], accented: list[str], marks: WordMarks) -> None:
    assert read_marks(two_words, accented) == marks


def test_marks_that_the_tokenizer_states() -> None:
    assert read_marks(["a", "a"], ["e"], "##", None) == WORDPIECE
    assert read_marks(["a", "a"], ["e"], "@@", "").bare("@@ing") == "ing"


@pytest.mark.parametrize("text", ["[unused7]", "<extra_id_3>", "<|im_end|>", "[MASK]", " <s>", "</s>"])
def test_bracketed_markers_with_letters(text: str) -> None:
    assert is_marker(text)


@pytest.mark.parametrize(
    "text", ["[]", "<>", "[1]", "<3>", "(s)", "[a", "a]", "[a b]", "[a] [b]", "x[a]", "", "\ufffd"]
)
def test_what_is_no_marker(text: str) -> None:
    assert not is_marker(text)


@given(st.text(min_size=1))
def test_byte_level_spelling_is_undone(text: str) -> None:
    """Against the tokenizers library's own alphabet."""
    spelled = "".join(piece for piece, _ in ByteLevel(False, use_regex=False).pre_tokenize_str(text))
    assert token_bytes(spelled, BYTE_LEVEL) == text.encode()
    assert token_bytes(f"{spelled}</w>", CLIP) == text.encode()


def test_bytes_only_where_the_token_stands_for_bytes() -> None:
    assert token_bytes("<0xE2>", SENTENCEPIECE) == b"\xe2"
    assert token_bytes("the", SENTENCEPIECE) is None
    assert token_bytes("Ġthe", BYTE_LEVEL) == b" the"
    assert token_bytes("<mask> 日", BYTE_LEVEL) is None


@given(st.text(), st.sampled_from([WORDPIECE, SENTENCEPIECE, BYTE_LEVEL, CLIP, PLAIN]))
def test_any_string_has_an_origin(token: str, marks: WordMarks) -> None:
    known = {"special", "unused", "byte", "word", "subword", "punctuation", "digits"}
    assert origin_of(token, token, marks) in known


# ---- scripts ----


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
