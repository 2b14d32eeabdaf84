"""Every command takes every carrier, on either side: the table of docs/functions.md."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from judged_collections import write_collection
from some_rows import mostly_slow

import embaudit
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.opened import open_function
from embaudit.questions.passport.passport import Passport

# Three carriers of the tiny checkpoint, and a static model that is another function.
KINDS = {"folder": "checkpoint", "endpoint": "endpoint", "object": "function", "static": "pipeline"}
ONES = ("price", "river", "moon", "town", "king")
TEXTS = [
    f"the {one} of the {two} is {three}" for one in ONES for two in ("bird", "year", "sea") for three in ("old", "red")
]
# Each carrier on each side, in a ring, in `make test`; the other pairs with the slow tests.
RING = dict(zip(KINDS, [*list(KINDS)[1:], *list(KINDS)[:1]], strict=True))
PAIRS = [
    pytest.param(one, two, marks=() if RING[one] == two else pytest.mark.slow)
    for one, two in itertools.product(KINDS, KINDS)
]


def is_same(one: str, two: str) -> bool:
    return (one == "static") == (two == "static")


@pytest.fixture(scope="module")
def given(tiny_checkpoint: Path, tiny: Checkpoint, saved_pipelines: dict[str, Path]) -> Iterator[dict[str, Any]]:
    """What is given for each carrier."""

    def encode(texts: list[str]) -> np.ndarray:
        return CheckpointFunction(tiny).encode(texts).vectors

    with serving(Served(encode)) as address:
        yield {
            "folder": str(tiny_checkpoint),
            "endpoint": address,
            "object": encode,
            "static": str(saved_pipelines["static"]),
        }


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A few pairs and queries."""
    place = tmp_path_factory.mktemp("material")
    rows = [f"{one},{TEXTS[(number * 7) % 30]},{number % 2}" for number, one in enumerate(TEXTS)]
    (place / "pairs.csv").write_text("\n".join(["sentence1,sentence2,score", *rows]))
    return {"pairs": [place / "pairs.csv"], "data": [collection(place / "data")]}


def collection(place: Path) -> Path:
    """Queries for the first ten texts."""
    return write_collection(place, TEXTS, [" ".join(text.split()[1::2]) for text in TEXTS[:10]])


@pytest.fixture(scope="module")
def passports(given: dict[str, Any]) -> dict[str, Passport]:
    return {name: embaudit.passport(one) for name, one in given.items()}


@pytest.fixture(scope="module")
def indexes(given: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What each has stored."""
    place = tmp_path_factory.mktemp("indexes")
    for name, one in given.items():
        with open_function(one, LoadOptions(device="cpu")) as function:
            rows = function.encode(TEXTS, "document").vectors.astype(np.float32)
        pq.write_table(pa.table({"text": TEXTS, "vector": rows.tolist()}), place / f"{name}.parquet")
    return {name: place / f"{name}.parquet" for name in given}


@pytest.mark.parametrize("name", mostly_slow(KINDS, 2))
def test_check_takes_each(given: dict[str, Any], material: dict[str, Any], name: str) -> None:
    report = embaudit.check(given[name], **material)
    assert report.kind == KINDS[name]
    assert report.figures["data"]


@pytest.mark.parametrize(("one", "two"), mostly_slow(PAIRS, 2))
def test_parity_takes_each_pair(given: dict[str, Any], material: dict[str, Any], one: str, two: str) -> None:
    report = embaudit.parity(given[one], given[two], with_explanation=False, **material)
    assert report.verdict == ("the same function" if is_same(one, two) else "another function"), report.line


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_verify_holds_each_against_the_passport_of_each(
    given: dict[str, Any], passports: dict[str, Passport], one: str, two: str
) -> None:
    report = embaudit.verify(passports[one], given[two])
    assert report.verdict == ("the same function" if is_same(one, two) else "another function"), report.line


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_vectors_holds_the_index_of_each_against_each(
    given: dict[str, Any], indexes: dict[str, Path], one: str, two: str
) -> None:
    report = embaudit.vectors(indexes[one], given[two], with_explanation=False)
    assert report.verdict == ("wholly its own" if is_same(one, two) else "not wholly its own"), report.line


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_switch_takes_each_pair(given: dict[str, Any], material: dict[str, Any], one: str, two: str) -> None:
    report = embaudit.switch(given[one], given[two], **material)
    assert (report.verdict == "same index") == is_same(one, two), report.line


def test_vectors_says_which_of_several_built_rows(
    given: dict[str, Any], indexes: dict[str, Path], tmp_path: Path
) -> None:
    """A static model, and an object whose name another has too, may have built rows."""
    parts = [pq.read_table(indexes["folder"]).slice(0, 20), pq.read_table(indexes["object"]).slice(20)]
    noise = np.random.default_rng(0).normal(size=(len(parts[1]), 32)).astype(np.float32)
    parts[1] = parts[1].set_column(1, "vector", pa.array(noise.tolist()))
    pq.write_table(pa.concat_tables(parts), tmp_path / "mixed.parquet")
    found = dict(zip(parts[1]["text"].to_pylist(), noise, strict=True))

    def one(texts: list[str]) -> np.ndarray:
        return np.zeros((len(texts), 32)) + np.arange(32)

    def other(texts: list[str]) -> np.ndarray:
        return np.array([found.get(text, noise[0]) for text in texts])

    other.__qualname__ = one.__qualname__ = "embed"
    report = embaudit.vectors(tmp_path / "mixed.parquet", given["folder"], also=[given["static"], one, other])
    assert report.verdict == "not wholly its own"
    assert "10 of them are those of embed (2)" in report.line
