"""Prompts: what is declared or asked for stands before a text, exactly as sentence-transformers puts it there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiny_models import TEXTS, change_json, declare, dense, layer_norm, load, pooling, write_json

from embaudit.checkpoint import (
    AskedPrompts,
    Checkpoint,
    CheckpointRef,
    Encoder,
    LoadOptions,
    ResolvedCheckpoint,
    resolve,
)
from embaudit.checkpoint.card import describe_row
from embaudit.checkpoint.load import describe
from embaudit.checkpoint.modules import POOLING_MODES, SETTINGS
from embaudit.checkpoint.prompts import Prompts, TextKind, choose_prompts, prompt_tokens
from embaudit.measures.layers.layers import PooledBatch, measure_layers
from embaudit.measures.sticky.insertion import OPERATORS, make_draw
from embaudit.words.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    from real_tokenizers import LoadTokenizer

Copy = Callable[..., Path]
THREE = {"query": "the gold: ", "document": "an old town: ", "sts": "the river of "}
METHODS: dict[TextKind, str] = {"text": "encode", "query": "encode_query", "document": "encode_document"}


def with_prompts(folder: Path, prompts: dict[str, str | None], default: str | None = None) -> Path:
    write_json(folder / SETTINGS, {"prompts": prompts, "default_prompt_name": default})
    return folder


def require_the_same(folder: Path, texts: list[str] = TEXTS) -> None:
    """All three ways to encode give sentence-transformers' vectors."""
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="compares with sentence-transformers")
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    checkpoint = load(folder)
    for kind, method in METHODS.items():
        expected = getattr(model, method)(texts, batch_size=3, show_progress_bar=False)
        # A small budget makes several batches with padding in each.
        found = Encoder(checkpoint.reading(kind), tokens_per_batch=100).encode_texts(texts)
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=kind)


@pytest.mark.parametrize(
    ("prompts", "default"),
    [
        ({}, None),
        (THREE, None),
        (THREE, "sts"),
        ({**THREE, "query": None}, "query"),
        # Neither falls back to the default, and "passage" is never reached.
        ({"sts": "the river of ", "passage": "an old town: "}, "sts"),
        ({"passage": "an old town: ", "corpus": "gold"}, None),
        ({"glued": "gold"}, "glued"),  # without a space: its tokens change with the text
    ],
)
def test_each_way_to_encode(prompts: dict[str, str | None], default: str | None, plain: Copy) -> None:
    require_the_same(with_prompts(declare(plain(), pooling("mean")), prompts, default))


@pytest.mark.parametrize("includes_prompt", [True, False])
@pytest.mark.parametrize(
    "modules",
    [
        *([pooling(mode)] for mode in POOLING_MODES),
        [pooling("cls", "mean", "lasttoken"), ("Normalize", {})],
        [pooling("mean"), layer_norm(), dense(), ("Normalize", {})],
    ],
)
def test_poolings_and_modules_with_and_without_the_prompt(
    modules: list[Any], includes_prompt: bool, plain: Copy
) -> None:
    folder = with_prompts(declare(plain(), *modules), THREE, "sts")
    change_json(folder / "1_Pooling" / "config.json", include_prompt=includes_prompt)
    require_the_same(folder)


@pytest.mark.parametrize("family", ["roberta", "t5", "qwen2", "llama"])
def test_families_of_other_special_tokens_leave_the_prompt_out(family: str, plain: Copy) -> None:
    folder = with_prompts(declare(plain(family), pooling("mean")), THREE, "sts")
    change_json(folder / "1_Pooling" / "config.json", include_prompt=False)
    require_the_same(folder, [text for text in TEXTS if text])


def test_a_folder_without_modules_declares_no_prompt(plain: Copy) -> None:
    folder = with_prompts(plain(), THREE, "sts")
    assert not load(folder).recipe.prompts
    require_the_same(folder)


@pytest.mark.parametrize(
    ("asked", "applied"),
    [
        (AskedPrompts(), Prompts(text="S ", query="Q ", document="D ")),
        (AskedPrompts(text=""), Prompts()),
        (AskedPrompts(text="query"), Prompts("Q ", "Q ", "Q ")),
        (AskedPrompts(text="passage: ", query="query"), Prompts("passage: ", "Q ", "passage: ")),
        (AskedPrompts(query=""), Prompts(text="S ", query="", document="D ")),
        (AskedPrompts(document="own:"), Prompts(text="S ", query="Q ", document="own:")),
        (AskedPrompts(text="empty"), Prompts()),
    ],
)
def test_what_is_asked_for_against_what_is_declared(asked: AskedPrompts, applied: Prompts, tmp_path: Path) -> None:
    declared = {"query": "Q ", "document": "D ", "s": "S ", "empty": ""}
    found = choose_prompts({"prompts": declared, "default_prompt_name": "s"}, tmp_path / SETTINGS, asked)
    assert found == applied


@pytest.mark.parametrize(
    ("prompts", "asked", "said", "next_step"),
    [
        ({"query": "Q "}, AskedPrompts(text="qeury"), "declares query", "Did you mean query"),
        ({}, AskedPrompts(query="passage"), "declares none", "--query-prompt 'passage: '"),
    ],
)
def test_a_word_that_is_no_declared_name_is_taken_for_a_mistyped_one(
    prompts: dict[str, str], asked: AskedPrompts, said: str, next_step: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        choose_prompts({"prompts": prompts}, tmp_path / SETTINGS, asked)
    assert next_step in caught.value.next_step


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"prompts": {"query": "Q "}, "default_prompt_name": "sts"}, "makes 'sts' the default prompt.*query"),
        ({"prompts": ["query: "]}, "prompts should be an object"),
        ({"prompts": {"query": 1}}, "prompts should be an object"),
    ],
)
def test_settings_that_declare_nonsense(settings: dict[str, Any], said: str, plain: Copy) -> None:
    folder = declare(plain(), pooling("mean"))
    write_json(folder / SETTINGS, settings)
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_a_prompt_that_leaves_no_room(plain: Copy) -> None:
    folder = with_prompts(declare(plain(), pooling("mean")), {"query": "gold " * 46})
    with pytest.raises(CheckpointError, match=r"for a query takes 46 tokens.* 48 tokens") as caught:
        load(folder)
    assert "--max-length" in caught.value.next_step
    assert load(folder, prompts=AskedPrompts(text="")).content_limit == 46


# ---- identity ----


def test_what_prompts_make_of_the_id(plain: Copy) -> None:
    folder = declare(plain(), pooling("mean"))

    def id_of(**asked: Any) -> str:
        return describe(resolve(str(folder)), LoadOptions(**asked))[1].checkpoint_id

    bare = id_of()
    for settings in (
        {},
        {"prompts": {}},
        {"prompts": {"query": "", "sts": "never used "}, "default_prompt_name": None},
    ):
        write_json(folder / SETTINGS, settings)
        assert id_of() == bare
    change_json(folder / "1_Pooling" / "config.json", include_prompt=False)
    assert id_of() == bare, "there is no prompt to leave out"

    left_out = id_of(prompts=AskedPrompts(text="a: "))
    change_json(folder / "1_Pooling" / "config.json", include_prompt=True)
    ids = {bare, left_out, id_of(prompts=AskedPrompts(text="a: ")), id_of(prompts=AskedPrompts(query="a: "))}
    with_prompts(folder, {"some": "a: "}, "some")
    ids |= {id_of(), id_of(prompts=AskedPrompts(text="b: "))}
    assert len(ids) == 6
    assert id_of(prompts=AskedPrompts(text="")) == bare
    assert id_of(prompts=AskedPrompts(text="some")) == id_of(prompts=AskedPrompts(text="a: ")), "names do not count"


def test_without_prompts_the_hash_is_that_of_before_there_were_any(plain: Copy) -> None:
    """What it was made of, so that checkpoints keep their ids, and audits what was computed for them."""
    folder = with_prompts(declare(plain(), pooling("mean"), ("Normalize", {})), {"query": ""})
    pipeline = {
        "pooling": ["mean"],
        "modules": [{"kind": "Normalize", "config": {}}],
        "max_length": 48,
        "is_lowercased": False,
        "truncate_dim": None,
    }
    expected = hashlib.sha256(json.dumps(pipeline, sort_keys=True).encode()).hexdigest()
    assert load(folder).identity.modules_sha256 == expected


def test_instructors_are_known_by_name(plain: Copy) -> None:
    """As in sentence-transformers: their files do not say it."""
    folder = declare(plain(), pooling("mean"))
    resolved = ResolvedCheckpoint(CheckpointRef("hub", "hkunlp/instructor-base"), folder, "0" * 40)
    assert not describe(resolved, LoadOptions())[0].pools_prompt
    other = replace(resolved, ref=CheckpointRef("hub", "hkunlp/other"))
    assert describe(other, LoadOptions())[0].pools_prompt


def test_the_row_says_what_is_applied(plain: Copy) -> None:
    names = ("prompt", "query_prompt", "document_prompt", "pools_prompt")
    folder = declare(plain(), pooling("mean"))
    assert [describe_row(load(folder))[name] for name in names] == [None] * 4
    with_prompts(folder, {"query": "the gold: ", "sts": "a "}, "sts")
    assert [describe_row(load(folder))[name] for name in names] == ["a ", "the gold: ", None, True]


# ---- where the text's own tokens are ----


@pytest.fixture(scope="module")
def prompted(family_folder: Callable[[str], Path]) -> Checkpoint:
    return load(family_folder("bert"), prompts=AskedPrompts(text="the old town: "), max_length=16)


def test_limits_count_a_texts_own_tokens(prompted: Checkpoint) -> None:
    assert prompted.tokenizer.convert_ids_to_tokens(prompted.prompt.ids) == ["the", "old", "town", ":"]
    assert prompted.content_limit == 16 - 4 - 2
    encoder = Encoder(prompted)
    assert encoder.own_ids(["gold " * 30]) == [prompted.tokenizer("gold " * 30, add_special_tokens=False)["input_ids"]]
    assert encoder.tokenize(["gold " * 30, "the king"], 2) == [
        prompted.with_special_tokens(prompted.content_ids(text, 2)) for text in ("gold " * 30, "the king")
    ]
    assert encoder.count_truncated(["gold " * 10, "gold " * 11]) == 1
    assert [len(ids) for ids in encoder.tokenize(["gold " * 30])] == [16]


@pytest.mark.parametrize("operator", OPERATORS)
def test_copies_are_inserted_behind_the_prompt(operator: Any, prompted: Checkpoint) -> None:
    draw = make_draw(prompted, "gold " * 30, operator, 3, 0)
    row = draw.insert(np.array([prompted.vocabulary_size - 1]))[0].tolist()
    head = [*prompted.prefix_ids, *prompted.prompt.ids]
    assert len(row) == 16
    assert row[: len(head)] == head == list(draw.baseline[: len(head)])
    assert row.count(prompted.vocabulary_size - 1) == 3
    if operator == "prefix":
        assert row[len(head)] == prompted.vocabulary_size - 1


@pytest.mark.parametrize("name", ["bert-base-uncased", "roberta-base", "t5-small", "gpt2"])
@pytest.mark.parametrize("prompt", ["query: ", "Instruct: find it\nQuery:", "search_document: "])
def test_a_texts_own_tokens_behind_a_prompt(
    name: str, prompt: str, prompted: Checkpoint, real_tokenizer: LoadTokenizer
) -> None:
    """A space at the prompt's end is the text's in most tokenizers; signs that merge are taken apart."""
    tokenizer = real_tokenizer(name)
    tokens = prompt_tokens(prompt, tokenizer, {}, is_pooled=True)
    checkpoint = replace(prompted, tokenizer=tokenizer, prompts={"text": tokens})
    texts = ["river", "1923", "the king.", " spaced", '"quoted"', "(a) b"]
    merged = []
    for text, whole, own in zip(texts, checkpoint.prompted_ids(texts), checkpoint.own_ids(texts), strict=True):
        assert tokenizer.decode(own).replace(" ", "") == text.replace(" ", "")
        if [*tokens.ids, *own] != whole:
            merged.append(text)
            assert own == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert merged == (texts[4:] if name in ("roberta-base", "gpt2") and prompt.endswith(":") else [])


def test_what_is_pooled_is_what_measures_read(plain: Copy) -> None:
    """Clouds, their ids and the pooled row of the layers leave a prompt out where pooling does."""
    folder = with_prompts(declare(plain(), pooling("mean")), THREE, "sts")
    change_json(folder / "1_Pooling" / "config.json", include_prompt=False)
    encoder = Encoder(load(folder))
    texts = [text for text in TEXTS if text]
    vectors, ids = encoder.encode_texts(texts), encoder.pooled_ids(texts)
    for index, X in encoder.token_embeddings(texts):
        assert len(X) == len(ids[index])
        np.testing.assert_allclose(X.mean(axis=0), vectors[index], atol=1e-5)
    # [CLS] and the prompt's three words are left out.
    assert ids[2] == load(folder).tokenizer("gold")["input_ids"][1:]
    (gold,) = [X.astype(np.float64) for _, X in encoder.token_embeddings(["gold"])]
    (pooled,) = [batch for batch in measure_layers(encoder, ["gold"]) if isinstance(batch, PooledBatch)]
    assert pooled.values["mean_norm_x"] == pytest.approx(np.linalg.norm(gold.mean(axis=0)), rel=1e-5)
