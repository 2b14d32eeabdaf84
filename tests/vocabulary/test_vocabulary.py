from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from older import transformers_5
from some_rows import mostly_slow
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from embaudit.checkpoint import vocabulary
from embaudit.checkpoint.vocabulary import (
    TokenEntry,
    category_of,
    ids_without_row,
    read_vocabulary,
    special_ids,
)
from embaudit.words.errors import CheckpointError, UsageError

# The real vocabularies are loaded by one worker, once.
pytestmark = pytest.mark.xdist_group("vocabularies")

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    Load = Callable[[str], PreTrainedTokenizerBase]
    Read = Callable[[str], list[TokenEntry]]

BERT = {"ok": 23_694, "special": 5, "unreachable_special": 994, "unreachable_multi": 5_829}
BYTE_LEVEL = {"ok": 49_889, "undecodable": 344, "meaningless": 23}
CATEGORIES = {
    "minilm": BERT,
    "bert-base-uncased": BERT,
    # The shared file is text encoded twice ("Ã©" for "é"): what is not ASCII never comes back from it.
    "bert-base-cased": {
        "ok": 21_877,
        "special": 5,
        "unreachable_special": 101,
        "unreachable_single": 108,
        "unreachable_multi": 6_905,
    },
    "gpt2": BYTE_LEVEL | {"special": 1},
    "roberta-base": BYTE_LEVEL | {"special": 5, "unreachable_special": 1, "unreachable_multi": 3},
    "t5-small": {"ok": 31_994, "special": 103, "meaningless": 1, "unreachable_multi": 2},
    "albert": {"ok": 29_988, "special": 5, "meaningless": 1, "unreachable_multi": 6},
    "clip": {
        "ok": 34_301,
        "special": 2,
        "meaningless": 20,
        "undecodable": 533,
        "unreachable_single": 8_302,
        "unreachable_multi": 6_250,
    },
}
BERT_ORIGINS = "special 5 unused 994 word 22634 subword 5558 digits 996 punctuation 335"
ORIGINS = {
    "minilm": BERT_ORIGINS,
    "bert-base-uncased": BERT_ORIGINS,
    "bert-base-cased": "special 5 unused 101 word 21688 subword 6360 digits 737 punctuation 105",
    "gpt2": "special 1 byte 398 word 32104 subword 15141 digits 1694 punctuation 919",
    "roberta-base": "special 5 unused 4 byte 398 word 32104 subword 15141 digits 1694 punctuation 919",
    "t5-small": "special 103 byte 2 word 21537 subword 9294 digits 1033 punctuation 131",
    "albert": "special 5 byte 1 word 21620 subword 6749 digits 1582 punctuation 43",
    "clip": "special 2 byte 614 word 33081 subword 13878 digits 22 punctuation 1811",
}
BERT_SCRIPTS = """Latin 26828 Common 2340 Han 494 Hiragana 92 Katakana 92 Cyrillic 86 Arabic 84 Bengali 72
    Hangul 70 Devanagari 66 Hebrew 56 Greek 54 Armenian 42 Tamil 36 Georgian 34 Thai 30 Tibetan 26 Sinhala 12
    Kannada 6 Myanmar 2"""
BYTE_LEVEL_SCRIPTS = """Latin 47004 Unknown 344 Katakana 95 Han 42 Hiragana 30 Greek 22 Arabic 18 Cyrillic 17 Hebrew 11
    Inherited 5 Hangul 2 Devanagari 1"""
SCRIPTS = {
    "minilm": BERT_SCRIPTS,
    "bert-base-uncased": BERT_SCRIPTS,
    "bert-base-cased": "Latin 28048 Common 948",
    "gpt2": f"{BYTE_LEVEL_SCRIPTS} Common 2666",
    "roberta-base": f"{BYTE_LEVEL_SCRIPTS} Common 2674",
    "t5-small": "Latin 30751 Common 1269 Cyrillic 80",
    "albert": "Latin 28369 Common 1631",
    "clip": """Latin 46681 Common 1902 Unknown 534 Inherited 9 Hangul 59 Thai 51 Arabic 47 Devanagari 29
        Cyrillic 27 Katakana 22 Tamil 12 Hiragana 11 Han 10 Braille 7 Kannada 2 Georgian 1 Greek 1
        Bengali 1 Malayalam 1 Telugu 1""",
}
# How the names of letters begin in the Unicode data that Python ships, and the script they are of.
SCRIPT_OF_NAME = {"CJK": "Han"} | {
    script.upper(): script for line in SCRIPTS.values() for script in line.split()[::2] if script != "Common"
}


# One of each kind of vocabulary in ``make test``, their relatives in ``make test-all``.
REAL = mostly_slow(CATEGORIES, ("minilm", "gpt2", "t5-small"))


def by_token(entries: list[TokenEntry]) -> dict[str, TokenEntry]:
    return {entry.token: entry for entry in entries}


def wrapped(backend: Tokenizer, **names: str) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def wordpiece(tokens: dict[str, int]) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.WordPiece(vocab=tokens, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return wrapped(backend, unk_token="[UNK]")


def byte_fallback(*, has_dummy_space: bool) -> PreTrainedTokenizerFast:
    """SentencePiece BPE with 256 bytes for what is not in it: Llama's (a dummy space in front) or Gemma's."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += ["▁", "t", "h", "e", "A", "n", "é", "th", "the", "▁the", "an", "▁t", "▁th"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("a", "n"), ("▁", "t"), ("▁", "th")]
    merges = [(left, right) for left, right in merges if {left, right, left + right} <= set(tokens)]
    vocab = {token: n for n, token in enumerate(tokens)}
    backend = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    spaces, pieces = normalizers.Replace(" ", "▁"), [decoders.Replace("▁", " "), decoders.ByteFallback()]
    if has_dummy_space:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), spaces])
        backend.decoder = decoders.Sequence([*pieces, decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    else:
        backend.normalizer, backend.decoder = spaces, decoders.Sequence(pieces)
    return wrapped(backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def slow_category(tokenizer: PreTrainedTokenizerBase, token_id: int, *, kind: str) -> str:
    """Straight from the definition, one id at a time and through transformers' own calls."""

    def encode(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, truncation=False, padding=False)["input_ids"])

    def decode(ids: list[int]) -> str:
        return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    text = decode([token_id])
    results = []
    if kind == "sentencepiece":
        text = decode([*encode("q"), token_id]).removeprefix("q")
        for anchor in "q«":
            head, whole = encode(anchor), encode(anchor + text)
            if whole[: len(head)] == head:
                results.append(whole[len(head) :])
    elif kind == "clip":
        text = text.replace("</w>", "")
    results = results or [encode(text)]
    special = {
        *tokenizer.all_special_ids,
        *(i for i, t in tokenizer.added_tokens_decoder.items() if t.special),
    }
    if text.isspace() or not text:
        return "meaningless"
    if [token_id] in results:
        return "special" if token_id in special else "ok"
    stripped = text.strip()
    if any(c.isalpha() for c in text) and stripped[0] + stripped[-1] in ("[]", "<>") and " " not in stripped:
        return "unreachable_special"
    if "�" in text:
        return "undecodable"
    return "unreachable_single" if len(results[0]) == 1 else "unreachable_multi"


@pytest.mark.parametrize("name", REAL)
def test_categories_of_real_vocabularies(real_vocabulary: Read, name: str) -> None:
    assert Counter(entry.category for entry in real_vocabulary(name)) == CATEGORIES[name]


def test_categories_of_the_published_results(real_vocabulary: Read, shared: Path) -> None:
    golden = json.loads((shared / "golden" / "std_reference_all_minilm_l6_v2.json").read_text("utf-8"))
    published = golden["vocabulary"]
    counts = Counter(entry.category for entry in real_vocabulary("minilm"))
    assert counts.total() == published.pop("size")
    del published["note"]
    assert counts == published


def counted(line: str) -> dict[str, int]:
    """The counts in a line of the tables above."""
    return dict(zip(line.split()[::2], map(int, line.split()[1::2]), strict=True))


@pytest.mark.parametrize("name", REAL)
def test_origins_of_real_vocabularies(real_vocabulary: Read, name: str) -> None:
    assert Counter(entry.origin for entry in real_vocabulary(name)) == counted(ORIGINS[name])


@pytest.mark.parametrize("name", REAL)
def test_scripts_of_real_vocabularies(real_vocabulary: Read, name: str) -> None:
    assert Counter(entry.script for entry in real_vocabulary(name)) == counted(SCRIPTS[name])


@pytest.mark.parametrize("name", REAL)
def test_scripts_against_the_names_of_letters(real_vocabulary: Read, name: str) -> None:
    """A second source for whatever has letters of one script only: what Unicode calls them, not its Script property."""
    compared = 0
    for entry in real_vocabulary(name):
        if entry.origin not in ("word", "subword", "byte"):
            continue
        # Modifier letters are left out: the long-vowel mark is named after Katakana and serves Hiragana as well.
        letters = [unicodedata.name(c, "") for c in entry.text if c.isalpha() and unicodedata.category(c) != "Lm"]
        scripts = {SCRIPT_OF_NAME.get(letter.split("-")[0].split(" ")[0], "") for letter in letters}
        if len(scripts) == 1 and "" not in scripts and entry.category != "undecodable":
            assert {entry.script} == scripts, entry
            compared += 1
    assert compared > 0.8 * len(real_vocabulary(name))


def test_scripts_of_single_tokens(real_vocabulary: Read) -> None:
    # 994 [unused…] and 5 specials of the Common ones above are markers: no Latin text.
    entries = by_token(real_vocabulary("minilm"))
    assert {token: entries[token].script for token in ("糹", "ང", "##ন", "##ing", "[unused7]")} == {
        "糹": "Han",
        "ང": "Tibetan",
        "##ন": "Bengali",
        "##ing": "Latin",
        "[unused7]": "Common",
    }


@pytest.mark.parametrize("name", REAL)
def test_every_id_once_in_order_and_consistent(real_vocabulary: Read, real_tokenizer: Load, name: str) -> None:
    entries = real_vocabulary(name)
    assert [entry.token_id for entry in entries] == list(range(len(real_tokenizer(name))))
    for entry in entries:
        assert entry.token == real_tokenizer(name).convert_ids_to_tokens(entry.token_id)
        assert entry.is_reachable or entry.category not in ("ok", "special")
        assert (entry.script == "Unknown") >= (entry.category == "undecodable")


@pytest.mark.parametrize("name", mostly_slow(CATEGORIES, ("t5-small",)))
def test_category_against_the_definition(real_vocabulary: Read, real_tokenizer: Load, name: str) -> None:
    entries, tokenizer = real_vocabulary(name), real_tokenizer(name)
    kind = {"t5-small": "sentencepiece", "albert": "sentencepiece", "clip": "clip"}.get(name, "plain")
    draw = random.Random(name)
    doubtful = [entry for entry in entries if entry.category != "ok"]
    for entry in [*draw.sample(entries, 300), *draw.sample(doubtful, min(200, len(doubtful)))]:
        assert entry.category == slow_category(tokenizer, entry.token_id, kind=kind), entry


def test_a_bare_tokenizer_file_names_no_specials_but_marks_them(real_tokenizer: Load, real_vocabulary: Read) -> None:
    transformers_5("a tokenizer without its class's special tokens")
    tokenizer = real_tokenizer("roberta-base")
    assert "<s>" not in tokenizer.all_special_tokens
    assert special_ids(tokenizer) == {0, 1, 2, 3, 50_264}
    assert by_token(real_vocabulary("minilm"))["[CLS]"].category == "special"


def test_text_keeps_the_marked_space(real_vocabulary: Read) -> None:
    assert by_token(real_vocabulary("t5-small"))["▁the"].text == " the"
    assert by_token(real_vocabulary("t5-small"))["ing"].text == "ing"
    assert by_token(real_vocabulary("gpt2"))["Ġthe"].text == " the"
    assert by_token(real_vocabulary("minilm"))["##ing"].text == "##ing"


def test_the_first_test_that_holds_decides() -> None:
    assert category_of(7, " ", [7], is_special=True) == "meaningless"
    assert category_of(7, "\ufffd", [7], is_special=False) == "ok"
    assert category_of(7, "\ufffd", [8], is_special=False) == "undecodable"
    assert category_of(7, "[a\ufffd]", [8], is_special=False) == "unreachable_special"
    assert category_of(7, "[CLS]", [7], is_special=True) == "special"
    assert category_of(7, "x", [8], is_special=True) == "unreachable_single"
    assert category_of(7, "x", [8, 9], is_special=False) == "unreachable_multi"
    assert category_of(7, "x", [], is_special=False) == "unreachable_multi"


@pytest.mark.parametrize("has_dummy_space", [True, False])
def test_byte_fallback(has_dummy_space: bool) -> None:
    entries = by_token(read_vocabulary(byte_fallback(has_dummy_space=has_dummy_space)))
    assert (entries["▁the"].text, entries["the"].text) == (" the", "the")
    seen = {token: (entries[token].category, entries[token].is_reachable) for token in entries}
    assert seen["▁the"] == seen["the"] == seen["é"] == ("ok", True)
    assert seen["<0x0A>"] == (
        "meaningless",
        True,
    )  # a line break, which the vocabulary has no other token for
    assert seen["<0x41>"] == ("unreachable_single", False)  # "A" is in the vocabulary
    assert seen["<0x42>"] == ("ok", True)
    assert seen["<0xE2>"] == seen["<0xF0>"] == seen["<0x80>"] == ("undecodable", True)
    assert seen["<0xC0>"] == seen["<0xFF>"] == ("undecodable", False)  # never part of UTF-8
    assert seen["<s>"] == ("special", True)
    assert {entries[f"<0x{byte:02X}>"].origin for byte in range(256)} == {"byte"}
    never = {0x20, 0x74, 0x68, 0x65, 0x41, 0x6E, 0xC0, 0xC1, *range(0xF5, 0x100)}
    assert {byte for byte in range(256) if not entries[f"<0x{byte:02X}>"].is_reachable} == never


def test_scripts_of_byte_fallback() -> None:
    """A byte is Latin where it is a Latin letter by itself, and of no known script as a part of a character."""
    entries = by_token(read_vocabulary(byte_fallback(has_dummy_space=True)))
    seen = {token: entries[token].script for token in ("<0x0A>", "<0x42>", "<0x3F>", "<0xE2>", "<0xFF>", "<s>", "▁the")}
    assert seen == {
        "<0x0A>": "Common",
        "<0x42>": "Latin",
        "<0x3F>": "Common",
        "<0xE2>": "Unknown",
        "<0xFF>": "Unknown",
        "<s>": "Common",
        "▁the": "Latin",
    }


def test_sentencepiece_without_latin_is_still_read_behind_an_anchor() -> None:
    pieces = [
        ("<unk>", 0.0),
        ("▁", -2.0),
        ("的", -3.0),
        ("中", -4.0),
        ("中国", -5.0),
        ("字", -5.0),
        ("▁中", -9.0),
    ]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    entries = by_token(read_vocabulary(wrapped(backend, unk_token="<unk>")))
    assert {token for token in entries if entries[token].category == "ok"} == {"的", "中", "中国", "字"}
    assert not entries["▁中"].is_reachable  # ▁ and 中 together score better


def test_a_mark_at_the_end_of_a_word_is_no_part_of_the_text() -> None:
    """As CLIP has it; its own vocabulary is read in ``make test-all``."""
    tokens = {"[UNK]": 0, "a": 1, "b": 2, "a</w>": 3, "b</w>": 4, "ab</w>": 5}
    backend = Tokenizer(models.BPE(tokens, [("a", "b</w>")], unk_token="[UNK]", end_of_word_suffix="</w>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    entries = by_token(read_vocabulary(wrapped(backend, unk_token="[UNK]")))
    assert (entries["ab</w>"].text, entries["ab</w>"].category) == ("ab", "ok")
    assert entries["a"].category == "unreachable_single"  # alone it is the end of a word


def test_slow_tokenizer() -> None:
    tokenizer = ByT5Tokenizer()
    assert not tokenizer.is_fast
    entries = read_vocabulary(tokenizer)
    assert [entry.token_id for entry in entries] == list(range(len(entries)))
    assert by_token(entries)["a"].category == "ok"
    assert by_token(entries)["</s>"].category == "special"


def a_hundred() -> PreTrainedTokenizerFast:
    return wordpiece({"[UNK]": 0, **{f"w{n}": n for n in range(1, 100)}})


@pytest.mark.parametrize(
    ("tokenizer", "tokens", "rows"),
    [("a_hundred", 100, 128), pytest.param("t5-small", 32_100, 32_128, marks=pytest.mark.slow)],
)
def test_rows_beyond_the_tokenizer(real_tokenizer: Load, tokenizer: str, tokens: int, rows: int) -> None:
    loaded = a_hundred() if tokenizer == "a_hundred" else real_tokenizer(tokenizer)
    entries = read_vocabulary(loaded, rows)
    assert entries[:tokens] == read_vocabulary(loaded)
    assert len(entries) == rows
    assert entries[-1] == TokenEntry(rows - 1, "", "", "undecodable", False, "unused", "Unknown")


@pytest.mark.parametrize(
    ("tokenizer", "tokens", "rows"),
    [("a_hundred", 100, 30), pytest.param("t5-small", 32_100, 32_000, marks=pytest.mark.slow)],
)
def test_ids_beyond_the_matrix(
    real_tokenizer: Load, caplog: pytest.LogCaptureFixture, tokenizer: str, tokens: int, rows: int
) -> None:
    loaded = a_hundred() if tokenizer == "a_hundred" else real_tokenizer(tokenizer)
    with caplog.at_level(logging.WARNING):
        entries = read_vocabulary(loaded, rows)
    assert [entry.token_id for entry in entries] == list(range(rows))
    assert ids_without_row(loaded, rows) == list(range(rows, tokens))
    assert ids_without_row(loaded, tokens) == []
    assert f"{tokens - rows} token ids from {rows} on" in caplog.text


def test_holes_in_the_ids() -> None:
    entries = read_vocabulary(wordpiece({"[UNK]": 0, "a": 2, "##b": 5}))
    assert [(e.token, e.category, e.is_reachable, e.origin) for e in entries] == [
        ("[UNK]", "special", True, "special"),
        ("", "undecodable", False, "unused"),
        ("a", "ok", True, "word"),
        ("", "undecodable", False, "unused"),
        ("", "undecodable", False, "unused"),
        ("##b", "unreachable_multi", True, "subword"),
    ]


def test_what_cannot_be_read() -> None:
    with pytest.raises(UsageError, match="0 rows"):
        read_vocabulary(wordpiece({"[UNK]": 0}), 0)
    with pytest.raises(CheckpointError, match="empty vocabulary"):
        read_vocabulary(wrapped(Tokenizer(models.BPE())))


def test_an_added_token_takes_over_its_row() -> None:
    tokenizer = wordpiece({"[UNK]": 0, "a": 1, "b": 2})
    tokenizer.add_tokens([AddedToken("<sep>", special=True), AddedToken("two words")])
    entries = read_vocabulary(tokenizer)
    assert [(e.token, e.category) for e in entries[3:]] == [("<sep>", "special"), ("two words", "ok")]


@pytest.mark.parametrize("fails", [False, True])
def test_truncation_and_padding_are_restored(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    tokenizer = wordpiece({"[UNK]": 0, "a": 1, "##b": 2, "the": 3, "abc": 4})
    plain = read_vocabulary(tokenizer)
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(1, stride=0, strategy="only_first", direction="left")
    backend.enable_padding(direction="left", pad_id=3, pad_type_id=1, pad_token="the", length=128)
    before = backend.truncation, backend.padding, backend.to_str()
    if fails:

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(vocabulary, "texts_reaching", stop)
        with pytest.raises(KeyboardInterrupt):
            read_vocabulary(tokenizer)
    else:
        assert read_vocabulary(tokenizer) == plain == read_vocabulary(tokenizer)
    assert (backend.truncation, backend.padding, backend.to_str()) == before


@settings(max_examples=60)
@given(st.lists(st.text("abcé日я.1 [##", min_size=1, max_size=4), unique=True, max_size=12), st.integers(1, 20))
def test_any_vocabulary(tokens: list[str], size: int) -> None:
    vocab = {token: n for n, token in enumerate(dict.fromkeys(["[UNK]", *tokens]))}
    tokenizer = wordpiece(vocab)
    entries = read_vocabulary(tokenizer, size)
    assert [entry.token_id for entry in entries] == list(range(size))
    assert entries == read_vocabulary(tokenizer)[:size] + entries[len(vocab) :]
    for entry in entries[: len(vocab)]:
        assert entry.category == slow_category(tokenizer, entry.token_id, kind="plain")
        assert entry.is_reachable or entry.category not in ("ok", "special")


def test_no_heavy_import() -> None:
    heavy = "{'transformers', 'torch', 'tokenizers', 'prefect', 'duckdb', 'great_expectations'}"
    code = f"import sys, embaudit.checkpoint.vocabulary; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
