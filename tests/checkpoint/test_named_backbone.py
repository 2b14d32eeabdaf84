"""Which backbone a checkpoint names: model card before config, and what cannot be looked up is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embaudit.checkpoint.card import named_backbone
from embaudit.words.errors import CheckpointError, UsageError


def folder(path: Path, card: str | None = None, name: str | None = None) -> Path:
    if card is not None:
        (path / "README.md").write_text(card)
    if name is not None:
        (path / "config.json").write_text(json.dumps({"_name_or_path": name}))
    return path


@pytest.mark.parametrize(
    "front",
    ["base_model: microsoft/mpnet-base", 'base_model: "microsoft/mpnet-base"', "base_model:\n  - microsoft/mpnet-base"],
)
def test_the_model_card_names_it(tmp_path: Path, front: str) -> None:
    card = f"---\nlicense: mit\n{front}\ntags:\n- sentence-transformers\n---\n# A model\nbase_model: not/this\n"
    assert named_backbone(folder(tmp_path, card, "owner/other"), "owner/own") == "microsoft/mpnet-base"


def test_without_a_card_the_config_names_it(tmp_path: Path) -> None:
    assert named_backbone(folder(tmp_path, "# No front matter\n", "bert-base-uncased"), "x/y") == "bert-base-uncased"


@pytest.mark.parametrize("name", ["", "/home/someone/checkpoint", "./out", "checkpoint-500", "owner/own", "a/b/c"])
def test_names_that_cannot_be_looked_up_are_no_backbone(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="names no backbone") as caught:
        named_backbone(folder(tmp_path, None, name), "owner/own@0123")
    assert "--backbone owner/name" in caught.value.next_step


def test_a_merge_of_several_must_be_named_by_the_user(tmp_path: Path) -> None:
    card = "---\nbase_model:\n- a/one\n- b/two\n---\n"
    with pytest.raises(UsageError, match="several: a/one, b/two"):
        named_backbone(folder(tmp_path, card), "owner/own")


def test_a_broken_card_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"README\.md cannot be read"):
        named_backbone(folder(tmp_path, "---\nbase_model: [unclosed\n---\n"), "owner/own")


def test_the_packaged_checkpoint_names_its_own(request: pytest.FixtureRequest) -> None:
    minilm = request.getfixturevalue("minilm")
    assert named_backbone(minilm.resolved.folder, "packaged:all-MiniLM-L6-v2") == "nreimers/MiniLM-L6-H384-uncased"
