"""How long a text may be, and which tokens the tokenizer puts around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_models import FAMILIES, POSITIONS, build, change_json, declare, load, pooling

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.tokenizer import NO_LIMIT, special_tokens_around
from embaudit.words.errors import CheckpointError, UsageError

Copy = Callable[..., Path]
LONG = "gold " * 700


@pytest.mark.parametrize(
    ("family", "positions"),
    [
        ("bert", POSITIONS),
        ("distilbert", POSITIONS),
        ("albert", POSITIONS),
        # Positions are numbered from padding_idx + 1 = 2: two of the 64 are never used.
        ("roberta", POSITIONS - 2),
        ("mpnet", POSITIONS - 2),
        ("qwen2", POSITIONS),
    ],
)
def test_without_any_declared_limit_the_positions_decide(family: str, positions: int, plain: Copy) -> None:
    checkpoint = load(plain(family))
    assert checkpoint.tokenizer.model_max_length > 10**9
    assert checkpoint.max_length == positions
    vectors = Encoder(checkpoint).encode_texts([LONG])  # the longest text that is cut must still run
    assert vectors.shape == (1, 32)
    assert len(Encoder(checkpoint).tokenize([LONG])[0]) == positions


def test_without_limit_or_positions_all_of_a_text_is_read(plain: Copy) -> None:
    checkpoint = load(plain("t5"))
    assert checkpoint.max_length == NO_LIMIT
    assert len(Encoder(checkpoint).tokenize([LONG])[0]) == 700 + 1


def test_a_declared_limit_beyond_computed_positions_is_kept(plain: Copy) -> None:
    folder = declare(plain("llama"), pooling("mean"), settings={"max_seq_length": 3 * POSITIONS})
    assert load(folder).max_length == 3 * POSITIONS


def test_the_tokenizers_limit_counts_where_no_other_is_declared(tmp_path: Path) -> None:
    assert load(build("bert", tmp_path / "model", limit=20)).max_length == 20


def test_the_declared_limit_wins_over_the_tokenizers(tmp_path: Path) -> None:
    folder = declare(build("bert", tmp_path / "model", limit=20), pooling("mean"), settings={"max_seq_length": 40})
    assert load(folder).max_length == 40


@pytest.mark.parametrize(("family", "limit"), [("bert", POSITIONS), ("roberta", POSITIONS - 2)])
def test_a_declared_limit_beyond_the_positions_is_cut(family: str, limit: int, plain: Copy) -> None:
    folder = declare(plain(family), pooling("mean"), settings={"max_seq_length": 512})
    assert load(folder).max_length == limit
    assert Encoder(load(folder)).encode_texts([LONG]).shape == (1, 32)


def test_a_limit_that_was_asked_for_is_never_cut_silently(plain: Copy) -> None:
    with pytest.raises(UsageError, match="62 positions") as caught:
        load(plain("roberta"), max_length=64)
    assert "62" in caught.value.next_step


@pytest.mark.parametrize("value", ["long", -1, 0, 3.5, True])
def test_a_declared_limit_that_is_no_number(value: object, bert: Path) -> None:
    change_json(bert / "sentence_bert_config.json", max_seq_length=value)
    with pytest.raises(CheckpointError, match="max_seq_length"):
        load(bert)


@pytest.mark.parametrize(
    ("family", "prefix", "suffix"),
    [
        ("bert", ("[CLS]",), ("[SEP]",)),
        ("roberta", ("<s>",), ("</s>",)),
        ("t5", (), ("</s>",)),
        ("qwen2", (), ()),
        ("llama", ("<s>",), ()),
    ],
)
def test_special_tokens_around_a_text(
    family: str, prefix: tuple[str, ...], suffix: tuple[str, ...], plain: Copy
) -> None:
    checkpoint = load(plain(family))
    assert tuple(checkpoint.tokenizer.convert_ids_to_tokens(checkpoint.prefix_ids)) == prefix
    assert tuple(checkpoint.tokenizer.convert_ids_to_tokens(checkpoint.suffix_ids)) == suffix
    assert checkpoint.content_limit == checkpoint.max_length - len(prefix) - len(suffix)


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_put_together_by_hand_are_the_tokenizers(family: str, plain: Copy) -> None:
    checkpoint = load(plain(family))
    text = "the old river of gold, 1923"
    assert Encoder(checkpoint).tokenize([text]) == [checkpoint.tokenizer(text)["input_ids"]]
    assert checkpoint.with_special_tokens(checkpoint.content_ids(text)) == checkpoint.tokenizer(text)["input_ids"]


@pytest.mark.parametrize("family", ["bert", "roberta", "t5", "llama", "qwen2"])
def test_a_long_text_is_cut_like_transformers_cuts_it(family: str, plain: Copy) -> None:
    checkpoint = load(plain(family), max_length=10)
    cut = load(plain(family, "other")).tokenizer(LONG, truncation=True, max_length=10)["input_ids"]
    assert Encoder(checkpoint).tokenize([LONG]) == [cut]


@pytest.mark.parametrize("name", ["roberta-base", "t5-small", "bert-base-uncased", "clip"])
def test_special_tokens_of_real_tokenizers(name: str, shared: Path) -> None:
    from transformers import AutoTokenizer, CLIPTokenizerFast

    folder = shared / "data" / "tokenizers" / name
    tokenizer = (CLIPTokenizerFast if name == "clip" else AutoTokenizer).from_pretrained(folder)
    expected = {
        "roberta-base": ((0,), (2,)),
        "t5-small": ((), (1,)),
        "bert-base-uncased": ((101,), (102,)),
        "clip": ((49406,), (49407,)),
    }
    assert special_tokens_around(tokenizer) == expected[name]


def test_special_tokens_that_cannot_be_told_apart(bert: Path) -> None:
    tokenizer = bert / "tokenizer.json"
    content = json.loads(tokenizer.read_text())
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [6], "tokens": ["[CLS]"]}},
    }
    tokenizer.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="cannot tell the special tokens apart"):
        load(bert)


def test_truncation_and_padding_built_into_the_tokenizer_are_switched_off(bert: Path) -> None:
    texts = ["gold", LONG]
    expected = Encoder(load(bert)).tokenize(texts)
    tokenizer = bert / "tokenizer.json"
    content = json.loads(tokenizer.read_text())
    content["truncation"] = {"direction": "Right", "max_length": 12, "strategy": "LongestFirst", "stride": 0}
    content["padding"] = {
        "strategy": {"Fixed": 12},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    tokenizer.write_text(json.dumps(content))
    checkpoint = load(bert)
    assert Encoder(checkpoint).tokenize(texts) == expected
    assert [len(ids) for ids in expected] == [3, 64]
    assert len(checkpoint.tokenizer(LONG, verbose=False)["input_ids"]) == 702
