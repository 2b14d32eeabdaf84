"""What is said about tokenizers of the packaged checkpoint, whole and broken."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from integrity_copies import FolderChange, randomised, vocabulary_changed, with_tensors, with_tokenizer
from older import is_transformers_4
from some_rows import mostly_slow
from tiny_models import json_file

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding
from embaudit.measures.integrity.letter_case import accented, letter_findings, read_letters, words
from embaudit.measures.integrity.rows import read_rows
from embaudit.measures.integrity.tokens import token_findings
from embaudit.measures.integrity.vocabulary_fit import fit_findings, related_pairs, vocabulary_fit

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

JSON, CONFIG = "tokenizer.json", "tokenizer_config.json"


def shuffled(tokens: list[str]) -> list[str]:
    rest = tokens[1_000:]
    random.Random(0).shuffle(rest)
    return tokens[:1_000] + rest


def normalizer(**values: object) -> FolderChange:
    return json_file(JSON, lambda content: content["normalizer"].update(values))


def config(**values: object) -> FolderChange:
    return json_file(CONFIG, lambda content: content.update(values))


def word_joined(content: dict[str, Any]) -> None:
    """Every word becomes one of 26: its first letter."""
    content["normalizer"] = {
        "type": "Sequence",
        "normalizers": [
            content["normalizer"],
            {"type": "Replace", "pattern": {"Regex": r"(?<=\w)\w+"}, "content": ""},
        ],
    }


def template(*tokens: str) -> FolderChange:
    """What stands around a text: A is the text."""
    parts = [
        {"Sequence": {"id": "A", "type_id": 0}} if token == "A" else {"SpecialToken": {"id": token, "type_id": 0}}
        for token in tokens
    ]
    return json_file(JSON, lambda content: content["post_processor"].update(single=parts))


def part_shuffled(tokens: list[str]) -> list[str]:
    """A tenth of the words under each other's ids."""
    chosen = random.Random(0).sample(range(1_000, len(tokens)), len(tokens) // 10)
    found = list(tokens)
    for place, origin in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
        found[place] = tokens[origin]
    return found


def other_list(folder: Path) -> None:
    path = folder / "vocab.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.unlink()
    path.write_text("\n".join(lines[::-1]) + "\n", encoding="utf-8")


def without(pattern: str) -> Callable[[dict[str, Any]], None]:
    """Drop letters before anything else is done."""

    def change(content: dict[str, Any]) -> None:
        dropped = {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}
        content["normalizer"] = {"type": "Sequence", "normalizers": [dropped, content["normalizer"]]}

    return change


GENERIC = config(tokenizer_class="PreTrainedTokenizerFast")
NO_TEMPLATE = json_file(JSON, lambda content: content.update(post_processor=None))
BROKEN: dict[str, tuple[tuple[FolderChange, ...], dict[str, str]]] = {
    "as published": ((), {}),
    "another class": ((GENERIC,), {}),
    "lower-casing lost": (
        (normalizer(lowercase=False), config(do_lower_case=False)),
        {"lower_casing": "problem", "unread_scripts": "look"},
    ),
    "lower-casing lost in the class": (
        (config(do_lower_case=False),),
        {"lower_casing": "problem", "tokenizer_ids": "problem", "unread_scripts": "look"},
    ),
    "lower-casing lost in the file": ((normalizer(lowercase=False),), {"tokenizer_ids": "problem"}),
    "accents kept": (
        (normalizer(strip_accents=False), config(strip_accents=False)),
        {"accents": "look", "unread_scripts": "look"},
    ),
    "no special tokens": ((NO_TEMPLATE, GENERIC), {"special_tokens": "problem"}),
    # transformers 5 adds them by itself, and so gives other ids than the file; 4 does not.
    "no special tokens in the file": (
        (NO_TEMPLATE,),
        {"special_tokens" if is_transformers_4() else "tokenizer_ids": "problem"},
    ),
    "no end token": ((template("[CLS]", "A"), GENERIC), {"special_tokens": "look"}),
    "special tokens exchanged": ((template("[SEP]", "A", "[CLS]"), GENERIC), {"special_tokens": "look"}),
    "two start tokens": ((template("[CLS]", "[CLS]", "A", "[SEP]"), GENERIC), {"special_tokens": "look"}),
    "pieces not marked": (
        (json_file(JSON, lambda content: content["model"].update(continuing_subword_prefix="")), GENERIC),
        {"unused_pieces": "problem"},
    ),
    "texts not split into words": (
        (json_file(JSON, lambda content: content.update(pre_tokenizer=None)), GENERIC),
        {"unknown_words": "problem"},
    ),
    "letters outside ASCII dropped": (
        (GENERIC, json_file(JSON, without(r"[^\x00-\x7f]"))),
        {"unread_scripts": "look"},
    ),
    "digits dropped": ((GENERIC, json_file(JSON, without(r"\d"))), {"unread_scripts": "look"}),
    "another vocab.txt": ((GENERIC, other_list), {"tokenizer_ids": "look"}),
    "a tenth of the vocabulary shuffled": ((vocabulary_changed(part_shuffled),), {"vocabulary_fit": "look"}),
    "vocabulary shuffled": ((vocabulary_changed(shuffled),), {"vocabulary_fit": "problem"}),
    "an entry inserted": (
        (vocabulary_changed(lambda tokens: [*tokens[:20_000], "zzyzx", *tokens[20_000:-1]]),),
        {"vocabulary_fit": "problem"},
    ),
    "words cut": ((GENERIC, json_file(JSON, word_joined)), {"shared_ids": "problem", "unused_pieces": "problem"}),
}


def levels(checkpoint: Checkpoint) -> dict[str, str]:
    findings = [
        *letter_findings(checkpoint, read_letters(checkpoint)),
        *token_findings(checkpoint),
        *fit_findings(checkpoint, read_rows(checkpoint)),
    ]
    return {finding.name: finding.level for finding in findings if finding.level != "ok"}


# What others show in the same way.
QUICK = ("as published", "words cut")


@pytest.mark.parametrize("name", mostly_slow(BROKEN, QUICK))
def test_broken_tokenizers_are_named(minilm: Checkpoint, tmp_path: Path, name: str) -> None:
    changes, expected = BROKEN[name]
    assert levels(with_tokenizer(minilm, tmp_path, *changes)) == expected


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_pooling_of_the_first_token_needs_it(minilm: Checkpoint, tmp_path: Path, share: float) -> None:
    checkpoint = with_tokenizer(minilm, tmp_path, *((NO_TEMPLATE, GENERIC) if share else ()))
    checkpoint = replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=("cls",)))
    [finding] = token_findings(checkpoint)
    assert finding.level == ("problem" if share else "ok")
    assert ("the pooling reads the first token" in finding.sentence) == bool(share)


@pytest.mark.parametrize(("token", "level"), [("newword", "problem"), ("[NEW]", "look")])
def test_ids_beyond_the_rows(minilm: Checkpoint, tmp_path: Path, token: str, level: str) -> None:
    checkpoint = with_tokenizer(minilm, tmp_path)
    if level == "look":
        checkpoint.tokenizer.add_special_tokens({"additional_special_tokens": [token]})
    else:
        checkpoint.tokenizer.add_tokens([token])
    found: list[Finding] = token_findings(checkpoint)
    [beyond] = [finding for finding in found if finding.name == "ids_beyond_rows"]
    assert beyond.level == level
    assert "from 30522 on" in beyond.sentence
    assert token in beyond.sentence


@pytest.mark.parametrize(
    "name", mostly_slow(["bert-base-uncased", "bert-base-cased", "roberta-base", "gpt2", "t5-small", "clip"], 3)
)
def test_real_tokenizers_have_sound_words(
    minilm: Checkpoint, real_tokenizer: Callable[[str], PreTrainedTokenizerBase], name: str
) -> None:
    """Cased and uncased, WordPiece, BPE and SentencePiece: capitals and accents are as they are meant to be."""
    tokenizer = real_tokenizer(name)
    checkpoint = replace(with_rows(minilm, len(tokenizer)), tokenizer=tokenizer)
    [finding] = letter_findings(checkpoint, read_letters(checkpoint))
    # This copy of bert-base-cased's vocabulary was saved in another encoding: it has "Ã" and "©", and no "é".
    assert finding.level == ("look" if name == "bert-base-cased" else "ok")
    assert finding.name == ("accents" if name == "bert-base-cased" else "letter_case")


def with_rows(checkpoint: Checkpoint, rows: int) -> Checkpoint:
    import copy

    model = copy.copy(checkpoint.model)
    table = torch.nn.Embedding(rows, 2)
    model.get_input_embeddings = lambda: table
    return replace(checkpoint, model=model)


def test_a_cased_vocabulary_that_is_lower_cased(
    minilm: Checkpoint, real_tokenizer: Callable[[str], PreTrainedTokenizerBase]
) -> None:
    import copy

    from tokenizers.normalizers import Lowercase, Sequence

    tokenizer = copy.deepcopy(real_tokenizer("bert-base-cased"))
    backend = tokenizer.backend_tokenizer
    backend.normalizer = Sequence([Lowercase(), backend.normalizer])
    checkpoint = replace(with_rows(minilm, len(tokenizer)), tokenizer=tokenizer)
    [finding] = letter_findings(checkpoint, read_letters(checkpoint))
    assert (finding.name, finding.level) == ("lower_casing", "look")


def test_words_are_ordinary() -> None:
    assert len(words()) > 1_000
    assert {"three", "people", "sitting"} <= set(words())
    assert all(word.islower() and word.isascii() and len(word) >= 3 for word in words())
    assert accented("river") == "ríver"
    assert accented("sky") == "sky"


def test_fit_is_the_share_of_comparisons_won(minilm: Checkpoint) -> None:
    """Against a slow reference on few pairs: every related pair against every other one's partner."""
    E = minilm.model.get_input_embeddings().weight.detach()
    vocabulary = {token: number for token, number in minilm.tokenizer.get_vocab().items() if number < 6_000}
    pairs = related_pairs(vocabulary, 6_000)
    fit = vocabulary_fit(E[:6_000], vocabulary)
    assert fit is not None
    assert fit.pairs == len(pairs) >= 100
    rows = E[:6_000].double().numpy()
    rows = rows - rows.mean(0)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    related = [float(unit[a] @ unit[b]) for a, b in pairs]
    unrelated = [float(unit[pairs[n][0]] @ unit[pairs[(n - 7) % len(pairs)][1]]) for n in range(len(pairs))]
    won = sum((x > y) + 0.5 * (x == y) for x in related for y in unrelated) / len(pairs) ** 2
    assert fit.auc == pytest.approx(won, abs=1e-3)
    assert fit.auc > 0.9


def test_other_vocabularies_do_not_fit(
    minilm: Checkpoint, real_tokenizer: Callable[[str], PreTrainedTokenizerBase]
) -> None:
    E = minilm.model.get_input_embeddings().weight.detach()
    for name in ("bert-base-cased", "roberta-base", "gpt2", "t5-small"):
        fit = vocabulary_fit(E, real_tokenizer(name).get_vocab())
        assert fit is not None
        assert fit.auc < 0.6
    own = vocabulary_fit(E, real_tokenizer("bert-base-uncased").get_vocab())
    assert own is not None
    assert own.auc > 0.95


def test_nothing_is_said_where_nothing_can_be_told(minilm: Checkpoint) -> None:
    random_rows = with_tensors(minilm, randomised("word_embeddings", 0.05))
    [finding] = fit_findings(random_rows, read_rows(random_rows))
    assert finding.level == "not measured"
    E = minilm.model.get_input_embeddings().weight.detach()
    assert vocabulary_fit(E, {"river": 5, "rivers": 6}) is None
