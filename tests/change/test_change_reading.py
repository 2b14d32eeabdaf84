"""How a text is read beside the base: tokens, declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from change_copies import (
    FolderChange,
    compared,
    copy_of,
    json_file,
    permuted,
    tokenizer_changed,
    with_more_tokens,
)
from some_rows import mostly_slow
from tiny_models import declare, dense, load, pooling

from embaudit.measures.integrity.letter_case import words
from embaudit.questions.change.declared import compare_declared, declared_findings
from embaudit.questions.change.tokens import compare_tokens, token_findings


def case_kept(content: dict[str, Any]) -> None:
    content["normalizer"]["lowercase"] = False


def replaced(content: dict[str, Any]) -> None:
    """A new word in the place of a rare token."""
    vocabulary = content["model"]["vocab"]
    vocabulary["zebra"] = vocabulary.pop("&")


TOKENS: dict[str, tuple[tuple[FolderChange, ...], str, str]] = {
    "the same": ((), "ok", "the same tokens as by the base."),
    "case kept": ((tokenizer_changed(case_kept),), "look", "as other tokens than the base"),
    "permuted with its rows": ((permuted(with_rows=True),), "ok", "the same tokens as by the base."),
    "permuted without them": ((permuted(with_rows=False),), "problem", "still those of other tokens"),
    "a word added": ((with_more_tokens("zebra"),), "ok", "1 were added (zebra)"),
    "a word in place of another": ((tokenizer_changed(replaced),), "look", "1 were added (zebra)"),
}


@pytest.mark.parametrize("name", mostly_slow(TOKENS, 3))
def test_what_is_said_of_each_tokenizer(name: str, base: Path, tmp_path: Path) -> None:
    changes, level, said = TOKENS[name]
    one, two = load(copy_of(base, tmp_path / "tuned", *changes)), load(base)
    (finding,) = token_findings(compare_tokens(one, two))
    assert (finding.name, finding.level) == ("same_tokens", level)
    assert said in finding.sentence


def test_shares_are_those_of_a_loop_over_words(base: Path, tmp_path: Path) -> None:
    one, two = load(copy_of(base, tmp_path / "tuned", tokenizer_changed(case_kept))), load(base)
    differing = 0
    for word in words():
        read = [
            [side.tokenizer.convert_ids_to_tokens(number) for number in side.own_ids([word.upper()])[0]]
            for side in (one, two)
        ]
        differing += read[0] != read[1]
    found = compare_tokens(one, two)
    assert found.other["upper"] == differing / len(words())
    assert found.other["small"] == 0.0


def with_prompts(folder: Path) -> None:
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "find: "}, "similarity_fn_name": "dot"}', encoding="utf-8"
    )


DECLARED: dict[str, tuple[FolderChange, list[str], str]] = {
    "nothing": (lambda folder: None, [], "ok"),
    "pooling": (
        lambda folder: declare(folder, pooling("cls"), ("Normalize", {})),
        ["pooling cls (base: mean)"],
        "look",
    ),
    "Normalize lost": (
        lambda folder: declare(folder, pooling("mean")),
        ["modules after pooling none (base: Normalize)"],
        "look",
    ),
    "Dense": (
        lambda folder: declare(folder, pooling("mean"), dense(), ("Normalize", {})),
        ["Dense (32 to 16) → Normalize (base: Normalize)", "dimensions 16 (base: 32)"],
        "look",
    ),
    "prompts": (
        with_prompts,
        ["prompt of queries 'find: ' (base: none)", "similarity dot (base: cosine)"],
        "look",
    ),
    "shorter": (
        json_file("sentence_bert_config.json", max_seq_length=16),
        ["limit for texts 16 tokens (base: 48 tokens)"],
        "look",
    ),
    "longer": (
        json_file("sentence_bert_config.json", max_seq_length=60),
        ["limit for texts 60 tokens (base: 48 tokens)"],
        "ok",
    ),
}


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_said_of_each_declaration(name: str, base: Path, tmp_path: Path) -> None:
    change, said, level = DECLARED[name]
    one, two = load(copy_of(base, tmp_path / "tuned", change)), load(base)
    (finding,) = declared_findings(compare_declared(one, two), two)
    assert (finding.name, finding.level) == ("same_reading", level)
    for part in said:
        assert part in finding.sentence


def test_a_base_that_declares_nothing_contradicts_nothing(base: Path, tmp_path: Path) -> None:
    plain = copy_of(base, tmp_path / "plain", lambda folder: (folder / "modules.json").unlink())
    tuned = copy_of(base, tmp_path / "tuned", lambda folder: declare(folder, pooling("cls")))
    (finding,) = declared_findings(compare_declared(load(tuned), load(plain)), load(plain))
    assert finding.level == "ok"
    assert "declares nothing itself" in finding.sentence


def test_equal_weights_that_are_read_otherwise(base: Path, tmp_path: Path) -> None:
    """Nothing was tuned, and vectors differ all the same: both are said."""
    tuned = copy_of(base, tmp_path / "tuned", lambda folder: declare(folder, pooling("cls"), ("Normalize", {})))
    findings = {finding.name: finding for finding in compared(tuned, base).findings}
    assert findings["nothing_changed"].level == "problem"
    assert findings["same_reading"].level == "look"
    assert findings["vectors_moved"].value is not None
    assert findings["vectors_moved"].value > 1e-3
    assert "lost_on_sample" in findings
