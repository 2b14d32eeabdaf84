from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from some_rows import mostly_slow
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import PreTrainedTokenizerFast

from embaudit.checkpoint.vocabulary import TokenEntry, read_vocabulary
from embaudit.checkpoint.vocabulary.reachability import Target, completions, texts_reaching
from embaudit.checkpoint.vocabulary.script import WordMarks, token_bytes

# The real vocabularies are loaded by one worker, once.
pytestmark = pytest.mark.xdist_group("vocabularies")

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    Load = Callable[[str], PreTrainedTokenizerBase]
    Read = Callable[[str], list[TokenEntry]]

NOT_ASCII = st.characters(min_codepoint=0x80, codec="utf-8")
# Bytes that occur in no UTF-8 text.
NEVER = {0xC0, 0xC1, *range(0xF5, 0x100)}


def unreached(entries: list[TokenEntry]) -> list[TokenEntry]:
    return [entry for entry in entries if not entry.is_reachable]


@pytest.mark.parametrize(
    ("name", "count"),
    mostly_slow(
        [
            ("minilm", 29_191),
            ("gpt2", 50_244),
            pytest.param("roberta-base", 50_248, marks=pytest.mark.slow),
            ("t5-small", 32_098),
            pytest.param("albert", 29_994, marks=pytest.mark.slow),
            pytest.param("clip", 49_257, marks=pytest.mark.slow),
        ],
        1,
    ),
)
def test_reachable_ids_of_real_vocabularies(real_vocabulary: Read, name: str, count: int) -> None:
    assert sum(entry.is_reachable for entry in real_vocabulary(name)) == count


@pytest.mark.slow
def test_each_reachable_piece_comes_out_of_a_real_text(real_tokenizer: Load, real_vocabulary: Read) -> None:
    """5 492 of BERT's 5 828 ``##`` pieces, each shown in the tokens of one text."""
    tokenizer = real_tokenizer("minilm")
    multi = [entry for entry in real_vocabulary("minilm") if entry.category == "unreachable_multi"]
    pieces = [entry for entry in multi if entry.token.startswith("##")]
    assert [entry.token for entry in multi if entry not in pieces] == ["..."]  # encodes to three full stops
    assert len(pieces) == 5_828
    encode = partial(tokenizer, add_special_tokens=False, truncation=False, padding=False)
    assert sum(entry.is_reachable for entry in pieces) == 5_492
    targets = {entry.token_id: Target(entry.text.removeprefix("##")) for entry in pieces}
    texts = texts_reaching(targets, lambda some: [list(ids) for ids in encode(some)["input_ids"]] if some else [])
    assert texts.keys() == {entry.token_id for entry in pieces if entry.is_reachable}
    for token_id, ids in zip(texts, encode(list(texts.values()))["input_ids"], strict=True):
        assert token_id in ids


def test_bert_leaves_out_what_its_rules_split_off(real_tokenizer: Load, real_vocabulary: Read) -> None:
    """The other 336 and "...": Han and punctuation characters are words of their own and join no piece."""
    backend = real_tokenizer("minilm").backend_tokenizer
    found = unreached(real_vocabulary("minilm"))
    left = [entry for entry in found if entry.category == "unreachable_multi"]
    assert len(left) == 337
    for entry in left:
        surface = entry.token.removeprefix("##")
        normal = backend.normalizer.normalize_str(f"x{surface}")
        words = [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normal)]
        assert words != [f"x{surface}"], entry
    markers = [entry for entry in found if entry not in left]
    assert all(entry.category == "unreachable_special" for entry in markers)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", pytest.param("roberta-base", marks=pytest.mark.slow)])
def test_byte_level_bpe_leaves_out_only_impossible_bytes(real_vocabulary: Read, name: str) -> None:
    marks = WordMarks(start="Ġ", is_byte_level=True)
    left = [entry.token for entry in unreached(real_vocabulary(name)) if entry.origin != "unused"]
    assert {token_bytes(token, marks) for token in left} == {bytes([byte]) for byte in NEVER}


@pytest.mark.slow
def test_clip_leaves_out_only_what_its_rules_take_away(real_vocabulary: Read) -> None:
    assert next(entry.text for entry in real_vocabulary("clip") if entry.token == "the</w>") == "the"
    marks = WordMarks(end="</w>", is_byte_level=True)
    for entry in unreached(real_vocabulary("clip")):
        raw = token_bytes(entry.token, marks)
        assert raw is not None
        closes = entry.token.endswith("</w>")
        is_impossible = bool(NEVER & set(raw))
        is_cut_short = closes and raw[-1] >= 0xC0  # a word cannot end inside a character
        is_lone_digit = not closes and raw.isdigit()  # every digit is a word of its own
        is_upper = raw.isupper()
        assert is_impossible or is_cut_short or is_lone_digit or is_upper or raw.isspace(), entry


@pytest.mark.parametrize(("name", "count"), [("t5-small", 2), pytest.param("albert", 6, marks=pytest.mark.slow)])
def test_unigram_leaves_out_only_what_a_better_split_beats(
    real_tokenizer: Load, real_vocabulary: Read, name: str, count: int
) -> None:
    model = json.loads(real_tokenizer(name).backend_tokenizer.to_str())["model"]
    scores = {piece: score for piece, score in model["vocab"]}  # noqa: C416
    left = unreached(real_vocabulary(name))
    assert len(left) == count
    for entry in left:
        best = [0.0] + [-1e9] * len(entry.token)
        for end in range(1, len(entry.token) + 1):
            for start in range(end):
                piece = entry.token[start:end]
                if piece != entry.token and piece in scores:
                    best[end] = max(best[end], best[start] + scores[piece])
        assert best[-1] >= scores[entry.token], entry


@given(st.text(NOT_ASCII, min_size=1, max_size=3), st.data())
def test_completions_hold_the_bytes(text: str, data: st.DataObject) -> None:
    """Any cut out of a text can be completed, and every completion is a text with these bytes."""
    whole = text.encode()
    start = data.draw(st.integers(0, len(whole) - 1))
    raw = whole[start : data.draw(st.integers(start + 1, len(whole)))]
    found = completions(raw, 50)
    assert 0 < len(found) <= 50
    assert all(raw in completed.encode() for completed in found)


@pytest.mark.parametrize("byte", sorted(NEVER))
def test_impossible_bytes_have_no_completion(byte: int) -> None:
    assert completions(bytes([byte]), 50) == []


def test_an_id_out_of_reach_is_left_out() -> None:
    """A tokenizer that knows two letters and gives the second only behind the first."""

    def encode(texts: list[str]) -> list[list[int]]:
        return [[1, 2] if text.startswith("x") and text.endswith("b") else [0] for text in texts]

    assert texts_reaching({2: Target("b"), 3: Target("c")}, encode) == {2: "xb"}
    assert texts_reaching({}, encode) == {}


@given(
    st.lists(st.text("abc", min_size=1, max_size=3), unique=True, max_size=5),
    st.lists(st.text("abc", min_size=1, max_size=2), unique=True, max_size=5),
)
@settings(max_examples=50)
def test_reached_means_reached(words: list[str], pieces: list[str]) -> None:
    """Against every text of up to five letters: nothing is called reachable that they do not give."""
    tokens = dict.fromkeys(["[UNK]", *words, *(f"##{piece}" for piece in pieces)])
    backend = Tokenizer(WordPiece(vocab={token: n for n, token in enumerate(tokens)}, unk_token="[UNK]"))
    backend.pre_tokenizer = BertPreTokenizer()  # or the text "##a" would be the piece itself
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
    texts = ["".join(letters) for size in range(1, 6) for letters in product("abc", repeat=size)]
    given_by_some = {i for row in backend.encode_batch(texts) for i in row.ids}
    reached = {entry.token_id for entry in read_vocabulary(tokenizer) if entry.is_reachable} - {0}
    assert reached <= given_by_some
    alone = {token_id for word in words if (token_id := backend.token_to_id(word)) in given_by_some}
    assert alone <= reached
