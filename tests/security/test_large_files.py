"""Files of a stranger that are larger than they need be, or nested without end: named, and read no further."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from some_rows import mostly_slow

from embaudit.checkpoint.card import front_matter
from embaudit.checkpoint.files import read_object
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.corpora.scores.read import read_scores
from embaudit.questions.passport.passport import read_passport
from embaudit.questions.vectors.builder import read_fingerprints
from embaudit.remedies.screening.tokens import read_token_list
from embaudit.system.small_files import CARD_BYTES, MOST_BYTES
from embaudit.warehouse.gate.policy import load_policy
from embaudit.watch.watch_list import read_watch_list
from embaudit.words.errors import EmbauditError

READERS: dict[str, Callable[[Path], object]] = {
    "settings of a checkpoint": read_object,
    "a passport": read_passport,
    "a fingerprint": read_fingerprints,
    "a watch list": read_watch_list,
    "a policy": load_policy,
    "a list of tokens": read_token_list,
    "scores": lambda path: list(read_scores([path])),
}
DEEP = 100_000


@pytest.mark.parametrize("read", mostly_slow(list(READERS.values()), 2), ids=list(READERS))
def test_a_file_larger_than_any_such_file_is_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        # A terabyte that takes no room.
        file.truncate(1 << 40)
    with pytest.raises(EmbauditError, match=rf"{path}.*more than {MOST_BYTES >> 20} MiB"):
        read(path)


@pytest.mark.parametrize("read", list(READERS.values()), ids=list(READERS))
def test_lists_in_lists_are_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * DEEP + "]" * DEEP, encoding="utf-8")
    with pytest.raises(EmbauditError, match=str(path)):
        read(path)


def test_a_list_of_lists_in_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(f"a = {'[' * DEEP}{']' * DEEP}", encoding="utf-8")
    with pytest.raises(EmbauditError, match=f"{path} .*nested too deep"):
        load_policy(path)


@pytest.mark.parametrize("length", [1 << 62, sys.maxsize, 1 << 36, 100])
def test_a_header_of_weights_that_cannot_be_is_named(length: int, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + b"[" * DEEP)
    with pytest.raises(EmbauditError, match=f"{path} cannot be read as safetensors"):
        stored_tensors([path])


def test_of_a_card_without_end_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("---\nbase_model: owner/name\n---\n", encoding="utf-8")
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    assert front_matter(path).get("base_model") == "owner/name"
    assert CARD_BYTES < 1 << 40
