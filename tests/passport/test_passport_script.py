"""The script of docs/passport.md, which needs numpy and nothing of ours."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, LoadOptions
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import write_passport

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "passport.md"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {alias.name for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Import) for alias in node.names}
    assert names <= {"numpy", *sys.stdlib_module_names}
    assert len(block.splitlines()) <= 45
    found: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), found)
    return found


@pytest.fixture(scope="module")
def packaged(minilm: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "passport.json"
    write_passport(make_passport(CheckpointFunction(minilm), LoadOptions()), path)
    return path


@pytest.fixture(scope="module")
def model(minilm: Checkpoint) -> Any:
    transformers = pytest.importorskip("sentence_transformers")
    return transformers.SentenceTransformer(str(minilm.resolved.folder), device="cpu")


@pytest.fixture(scope="module")
def good(packaged: Path, model: Any) -> np.ndarray:
    return np.asarray(model.encode([one["text"] for one in canaries(packaged)], show_progress_bar=False))


@pytest.mark.slow
def test_sentence_transformers_passes(script: dict[str, Any], packaged: Path, good: np.ndarray) -> None:
    script["require_same"](packaged, lambda texts: good)


def test_a_broken_one_ends_the_program_and_names_the_kinds(script: dict[str, Any], packaged: Path, model: Any) -> None:
    def shorter(texts: list[str]) -> np.ndarray:
        limit, model.max_seq_length = model.max_seq_length, 128
        try:
            return np.asarray(model.encode(texts, show_progress_bar=False))
        finally:
            model.max_seq_length = limit

    with pytest.raises(
        SystemExit,
        match=r"Not the function of .*passport\.json: (lengths|at the limit|beyond the limit| \([\d.e+]+×\)|, )+$",
    ):
        script["require_same"](packaged, shorter)


def test_vectors_that_are_wrong_are_named(script: dict[str, Any], packaged: Path, good: np.ndarray) -> None:
    kinds = [one["kind"] for one in canaries(packaged)]
    changes: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
        "NaN": (lambda rows: np.where(np.array(kinds)[:, None] == "emoji", np.nan, rows), "emoji"),
        "zeros": (lambda rows: rows * (np.array(kinds)[:, None] != "digits"), "digits"),
    }
    for change, kind in changes.values():
        found = script["differing"](packaged, lambda texts, change=change: change(good))
        assert list(found) == [kind]
        assert np.isnan(found[kind])
    assert set(script["differing"](packaged, lambda texts: good * 2)) == set(kinds)
    with pytest.raises(SystemExit, match="encode gives"):
        script["differing"](packaged, lambda texts: good[:, :192])
    half = good.astype(np.float16)
    half[:, 0] += 0.01
    assert set(script["differing"](packaged, lambda texts: half))
    assert script["differing"](packaged, lambda texts: half, "half_precision") == {}


def test_an_edited_file_is_refused(script: dict[str, Any], packaged: Path, tmp_path: Path) -> None:
    edited = tmp_path / "edited.json"
    edited.write_text(packaged.read_text(encoding="utf-8").replace("The river is long.", "The river is wide."))
    with pytest.raises(SystemExit, match="was changed"):
        script["differing"](edited, lambda texts: np.zeros((len(texts), 384)))


def canaries(path: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["canaries"]
    return found
