"""Every state that a report of stored vectors can have is told in every form, and what is said is true in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_rows import mostly_slow
from told_in_full import assert_told

from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.vectors.every_row import ForeignRows
from embaudit.questions.vectors.findings import findings_against
from embaudit.questions.vectors.report import StoredReport, look_at
from embaudit.stores.store import RowBatch, Store

sys.path.append(str(Path(__file__).resolve().parent))
from test_stored_alone import cloud, index_of

MANY = cloud(700)


def without_vectors(rows: int) -> Store:
    def batches() -> Iterator[RowBatch]:
        if rows:
            yield RowBatch(0, rows, {}, [f"text {n}" for n in range(rows)])

    return Store("index", {"vector": "v", "text": "text"}, "float32", batches, rows)


def mixed() -> Store:
    def batches() -> Iterator[RowBatch]:
        yield RowBatch(0, 9, {32: (np.arange(8), MANY[:8]), 16: (np.arange(8, 9), MANY[:1, :16])}, None)

    return Store("index", {}, "float32", batches, 9)


def edited(places: Any, value: Any, rows: int = 700, texts: list[str] | None = None) -> Store:
    some = MANY[:rows].copy()
    some[places] = value
    return index_of(some, texts)


def repeated(order: list[int]) -> Store:
    return index_of(MANY[order], [f"text {row} of a store that holds it again" for row in order])


COPIES = {
    "in blocks": [*range(4)] * 8,
    "in a block": [*range(30)] * 2,
    "of one text": [0, 0],
    "in a row": [row for row in range(12) for _ in range(3)],
    "in another order": np.random.default_rng(1).permutation(np.repeat(np.arange(30), 3)).tolist(),
    "here and there": [*range(90), 3, 50, 3],
    "of one row": [*range(50), 7],
}
ALONE: dict[str, Callable[[], Store]] = {
    **{f"copies {name}": lambda order=order: repeated(order) for name, order in COPIES.items()},
    "copies but for case": lambda: index_of(
        MANY[:40], [f"text {row // 2}".upper()[: 4 + row % 2 * 9] for row in range(40)]
    ),
    "texts of nothing": lambda: index_of(MANY[:30], ["", "  ", *(f"text {row}" for row in range(28))]),
    "a text of nothing": lambda: index_of(MANY[:3], ["", "text 1", "text 2"]),
    "a header": lambda: index_of(
        MANY[[0, *range(30)]], [f"{row == 0} {'what a long text says ' * 9}{max(row - 1, 0)}" for row in range(31)]
    ),
    "overlapping chunks": lambda: index_of(
        MANY[:12], [" ".join(f"word{n}" for n in range(60))[start : start + 90] for start in range(0, 360, 30)]
    ),
    "one row but for case": lambda: index_of(MANY[:3], ["A text", "a  text", "another"]),
    **{f"{rows} rows": lambda rows=rows: index_of(MANY[:rows]) for rows in (1, 2, 3, 12, 700)},
    **{f"{rows} rows with texts": lambda rows=rows: index_of(MANY[:rows], ["a"] * rows) for rows in (1, 2, 700)},
    "no rows": lambda: without_vectors(0),
    "one row without a vector": lambda: without_vectors(1),
    "rows without vectors": lambda: without_vectors(5),
    "two dimensions": mixed,
    "one NaN": lambda: edited(0, np.nan),
    "all NaN": lambda: edited(slice(None), np.nan, 5),
    "one zero": lambda: edited(0, 0),
    "all zeros": lambda: edited(slice(None), 0, 5),
    "all one vector": lambda: edited(slice(None), MANY[0], 40),
    "one vector of many texts": lambda: edited(slice(9), MANY[0], 700, [f"t {n}" for n in range(700)]),
    "one constant dimension": lambda: edited((slice(None), 3), 0.5),
    "bytes": lambda: index_of((MANY * 100).astype(np.int8)),
    "one dimension": lambda: index_of(MANY[:, :1]),
    "one longer row": lambda: edited(0, MANY[0] * 90),
    "notes": lambda: replace(index_of(MANY), notes=("It is read as it lies.",)),
    "no columns": lambda: replace(index_of(MANY), columns={}),
}


@pytest.mark.parametrize("name", ALONE)
def test_an_index_alone_is_told(name: str) -> None:
    assert_told(look_at(ALONE[name]()))


def test_why_nothing_could_be_told_of_an_index_alone_is_said() -> None:
    assert look_at(without_vectors(0)).line == "Nothing could be told: the index is empty: it has no rows."
    assert look_at(without_vectors(5)).line == "Nothing could be told: none of 5 rows has a vector."


@pytest.fixture(scope="module")
def function(tiny_index: Any) -> CheckpointFunction:
    return CheckpointFunction(tiny_index.load())


class Silent(CheckpointFunction):
    """Gives no text a vector."""

    def encode(self, *given: Any, **more: Any) -> Any:
        found = super().encode(*given, **more)
        return replace(found, vectors=np.full_like(found.vectors, np.nan))


def against(
    tiny_index: Any, function: CheckpointFunction, vectors: np.ndarray, texts: list[str] | None
) -> StoredReport:
    def load(name: str) -> CheckpointFunction:
        return function

    return look_at(index_of(vectors, texts), function, load=load, rows=60)


def some(tiny_index: Any, rows: int = 60, foreign: int = 0) -> np.ndarray:
    found = tiny_index.vectors[:rows].copy()
    found[:foreign] = tiny_index.others[:foreign]
    return found


AGAINST: dict[str, Callable[[Any], tuple[np.ndarray, bool]]] = {
    "one row of its own": lambda one: (some(one, 1), True),
    "all of its own": lambda one: (some(one), True),
    "one foreign row": lambda one: (some(one, 60, 1), True),
    "one row, foreign": lambda one: (some(one, 1, 1), True),
    "all foreign": lambda one: (some(one, 60, 60), True),
    "no texts": lambda one: (some(one), False),
    "cut vectors": lambda one: (some(one)[:, :16], True),
    "cut vectors without texts": lambda one: (some(one)[:, :16], False),
    "longer vectors": lambda one: (np.pad(some(one), ((0, 0), (0, 8))), True),
    "longer vectors without texts": lambda one: (np.pad(some(one), ((0, 0), (0, 8))), False),
    "another length": lambda one: (3 * some(one), True),
    "half precision": lambda one: (some(one).astype(np.float16), True),
    "bytes": lambda one: (np.rint(127 * some(one)).astype(np.int8), True),
    "zeros": lambda one: (0 * some(one, 3), True),
}


@pytest.mark.parametrize("name", mostly_slow(AGAINST, AGAINST.keys() - {"one foreign row", "one row, foreign"}))
def test_an_index_against_a_checkpoint_is_told(name: str, tiny_index: Any, function: CheckpointFunction) -> None:
    vectors, has_texts = AGAINST[name](tiny_index)
    assert_told(against(tiny_index, function, vectors, tiny_index.texts[: len(vectors)] if has_texts else None))


def test_a_function_without_a_vector_is_the_reason_why_nothing_is_told(
    tiny_index: Any, function: CheckpointFunction
) -> None:
    report = against(tiny_index, Silent(function.checkpoint), some(tiny_index), tiny_index.texts[:60])
    assert_told(report)
    assert report.verdict == "could not be told"
    assert any("gives none of" in one.sentence for one in report.findings if one.level == "not measured")


@pytest.fixture(scope="module")
def foreign(tiny_index: Any, function: CheckpointFunction) -> StoredReport:
    return against(tiny_index, function, some(tiny_index, 60, 9), tiny_index.texts[:60])


ROW = (7, None, 0.4, "a text")
EVERY: dict[str, ForeignRows] = {
    "none of one": ForeignRows(1, 0, (), None, 1, True),
    "none of none": ForeignRows(0, 0, (), None, 0, True),
    "one of one": ForeignRows(1, 1, (ROW,), None, 1, True),
    "some": ForeignRows(60, 2, (ROW, (9, "id", 0.3, "")), Path("t.csv"), 60, True),
    "stopped before anything": ForeignRows(0, 0, (), None, 0, False),
    "stopped, none found": ForeignRows(10, 0, (), None, 10, False),
    "stopped, one found": ForeignRows(10, 1, (ROW,), None, 10, False),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_row_is_told(name: str, foreign: StoredReport) -> None:
    found = EVERY[name]
    assert_told(replace(foreign, every_row=found, findings=(*found.findings(), *foreign.findings)))


def test_of_no_row_nothing_is_said_to_be_right() -> None:
    assert [one.level for one in EVERY["none of none"].findings()] == ["not measured"]


def test_what_could_not_be_explained_is_told(foreign: StoredReport) -> None:
    assert foreign.against is not None
    bare = replace(foreign.against, reasons=())
    assert_told(replace(foreign, against=bare, findings=tuple(findings_against(foreign.alone, bare))))


@pytest.mark.parametrize("some", [MANY[:1], MANY[:7], MANY[:, :1]], ids=["one row", "few rows", "one dimension"])
def test_few_numbers_are_not_taken_for_those_of_bytes(some: np.ndarray) -> None:
    """That so few numbers have no more than 256 values is no precision."""
    assert look_at(index_of(some)).alone.precision == "float32's"


def test_an_index_without_a_vector_says_so_once() -> None:
    assert [one.name for one in look_at(without_vectors(5)).findings] == ["no_vectors"]
    rows = look_at(without_vectors(0)).page().sections[0].parts[0].rows  # type: ignore[union-attr]
    assert all(value for _, value, _ in rows)


def said(tiny_index: Any, function: CheckpointFunction, name: str) -> str:
    vectors, _ = AGAINST[name](tiny_index)
    found = against(tiny_index, function, vectors, tiny_index.texts[: len(vectors)]).findings
    return " ".join(f"{one.sentence} {one.meaning}" for one in found)


# Of texts that there are, of a cosine that there is not, of vectors that are cut and not rounded, of one row.
TRUE = [
    ("zeros", "has no texts", False),
    ("longer vectors", "1 − cosine", False),
    ("cut vectors", "lower precision", False),
    ("one row of its own", "The one row with a text has", True),
    ("another length", "3 times as long", True),
    pytest.param("one foreign row", "1 of them is explained by nothing", True, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "words", "is_said"), TRUE)
def test_what_is_said_of_an_index_is_true_of_it(
    name: str, words: str, is_said: bool, tiny_index: Any, function: CheckpointFunction
) -> None:
    assert (words in said(tiny_index, function, name)) == is_said
