"""One frame of a table with every row broken in another way, and which expectations fail in which of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

import pandas as pd
from plausible import plausible_rows
from plausible_socm import TRACES

from embaudit.declared.table import DeclaredColumn
from embaudit.warehouse.expectations.check import check_frame
from embaudit.warehouse.expectations.suites import suite_of
from embaudit.warehouse.publish import ExpectationRow
from embaudit.warehouse.tables import TABLES

KINDS = {
    "expect_column_values_to_be_unique": "unique",
    "expect_compound_columns_to_be_unique": "unique",
    "expect_column_values_to_not_be_null": "null",
    "expect_column_values_to_be_between": "between",
    "expect_column_values_to_be_in_set": "in_set",
    "expect_column_pair_values_a_to_be_greater_than_b": "greater",
}
# Ranks among all rows of the table.
RANKS = {"sticky_score": ("pull_rank", "slope_rank"), "sticky_reference": ("score_rank",)}
# An expectation by its kind and its columns, as ``name_of`` has it.
Failure = str


GOOD = plausible_rows()


@dataclass(frozen=True)
class Broken:
    """A good row with some cells changed, and the expectations that fail in it."""

    row: int
    cells: Mapping[str, Any]
    fails: frozenset[Failure]
    # Of a row that is made from the declarations: other expectations about these columns may fail too, but this one.
    about: frozenset[str] = frozenset()
    holds: Failure = ""


def broken(row: int, *fails: Failure, **cells: Any) -> Broken:
    return Broken(row, cells, frozenset(fails))


def accepted(row: int, **cells: Any) -> Broken:
    """An unusual row in which nothing fails."""
    return broken(row, **cells)


def good(table: str) -> pd.DataFrame:
    return pd.DataFrame(GOOD[table])


def check(table: str, frame: pd.DataFrame, planned: int | None = None) -> list[ExpectationRow]:
    """The results of a table's suite; corpora named wikipedia-something have the texts of wikipedia."""
    return check_frame(table, completed(table, frame), planned)


def completed(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """With the columns that rules make."""
    corpora = {"wikipedia", *frame["corpus"]} if "corpus" in frame else set()
    traces = {name: pd.Series(TRACES) for name in corpora if str(name).startswith("wikipedia")}
    return TABLES[table].derive(frame, traces)


def failures(results: Iterable[ExpectationRow]) -> list[ExpectationRow]:
    return [row for row in results if not row.success]


def name_of(result: ExpectationRow) -> Failure:
    """Such as ``between tau``, ``greater high, low`` or ``warning null threshold``."""
    prefix = "warning " if result.severity == "warning" else ""
    return f"{prefix}{KINDS.get(result.expectation, result.expectation)} {result.column_name}".strip()


def plainly_failing(table: str, frame: pd.DataFrame) -> dict[Failure, Counter[Any]]:
    """The keys of the rows of a completed frame in which each expectation of a table's suite fails, without its engine.

    As the engine, a comparison with a missing value does not fail.
    """
    keys = [keys_of(table, row) for row in frame.astype(object).where(frame.notna(), None).to_dict("records")]
    failing: dict[Failure, Counter[Any]] = {}
    for expectation in suite_of(TABLES[table], None):
        config = expectation.configuration
        if config.type not in KINDS:
            continue
        columns, fails = _fails(KINDS[config.type], config.kwargs, frame)
        prefix = "warning " if str(getattr(config.severity, "value", config.severity)) == "warning" else ""
        name = f"{prefix}{KINDS[config.type]} {', '.join(columns)}"
        assert name not in failing
        failing[name] = Counter(key for key, fails_here in zip(keys, fails, strict=True) if fails_here)
    return failing


def _fails(kind: str, given: Mapping[str, Any], frame: pd.DataFrame) -> tuple[list[str], pd.Series]:
    if kind == "unique":
        columns = given.get("column_list") or [given["column"]]
        return columns, frame.duplicated(columns, keep=False)
    if kind == "greater":
        larger, smaller = frame[given["column_A"]], frame[given["column_B"]]
        missing = larger.isna() | smaller.isna()
        holds = larger >= smaller if given.get("or_equal") else larger > smaller
        return [given["column_A"], given["column_B"]], ~missing & ~holds.fillna(False).astype(bool)
    values = frame[given["column"]]
    if kind == "null":
        return [given["column"]], values.isna()
    if kind == "in_set":
        return [given["column"]], values.notna() & ~values.isin(given["value_set"])
    low, high = given.get("min_value"), given.get("max_value")
    below = values < low if low is not None else values.isna()
    above = values > high if high is not None else values.isna()
    return [given["column"]], values.notna() & (below | above)


def generated(table: str) -> Iterator[Broken]:
    """What is declared of single columns and of pairs of them, broken by as little as can be; and what just holds."""
    declared, first = TABLES[table], GOOD[table][0]
    # At the end of its range a key, or a rank among all rows, would be another row's.
    are_of_one_row = {fresh_column(table), *RANKS.get(table, ())}
    for column in declared.required:
        if column in declared.columns:
            yield _of_column(table, column, None, breaks=f"null {column}")
    for name, column in declared.columns.items():
        if column.members:
            yield _of_column(table, name, "stranger", breaks=f"in_set {name}")
        ranges = {"between": column.within}
        if column.warn:
            ranges["warning between"] = (column.warn.below, column.warn.above)
            if column.warn.null:
                yield _of_column(table, name, None, breaks=f"warning null {name}")
            if column.warn.false:
                yield _of_column(table, name, False, breaks=f"warning in_set {name}")
        for kind, ends in ranges.items():
            for end, outwards in zip(ends, (-inf, inf), strict=True):
                if end is not None:
                    yield _of_column(table, name, _next(column, end, outwards), breaks=f"{kind} {name}")
                    if name not in are_of_one_row:
                        yield _of_column(table, name, end, holds=f"{kind} {name}")
    for larger, smaller, may_be_equal in declared.comparisons:
        if {larger, smaller} <= set(declared.columns):
            failure, least = f"greater {larger}, {smaller}", first[smaller]
            if may_be_equal:
                yield _of_column(table, larger, least, holds=failure)
                least = _next(declared.columns[larger], least, -inf)
            yield _of_column(table, larger, least, breaks=failure)


def _next(column: DeclaredColumn, value: float, towards: float) -> float:
    """The number that is next to a value among those that the column may hold."""
    if column.type == "float64":
        return nextafter(value, towards)
    return value + (1 if towards > 0 else -1)


def _of_column(table: str, column: str, value: Any, breaks: Failure = "", holds: Failure = "") -> Broken:
    about = {column}
    for rule in TABLES[table].rules:
        if about & set(rule.columns):
            about.add(rule.name)
    return Broken(0, {column: value}, frozenset([breaks] if breaks else []), frozenset(about), holds)


def fresh_column(table: str) -> str:
    """The key column that is changed so that many rows may be broken alike: the first that may be anything."""
    keys, columns = TABLES[table].keys, TABLES[table].columns
    # Without an effect the temperature is 1, by a rule.
    return "bin" if table == "tempscale" else next((key for key in keys if not columns[key].members), keys[-1])


def frame_of(table: str, rows: Sequence[Broken]) -> pd.DataFrame:
    """The good rows, then the broken ones with keys of their own, and at last the last good row once more."""
    records = GOOD[table]
    column = fresh_column(table)
    changed = []
    for number, row in enumerate([*rows, broken(len(records) - 1)], start=1):
        value = records[row.row][column]
        fresh = f"{value} {number}" if isinstance(value, str) else value + 1000 * number
        key = {column: fresh} if number <= len(rows) else {}
        rank = dict.fromkeys(RANKS.get(table, ()), len(records) + number)
        changed.append({**records[row.row], **key, **rank, **row.cells})
    return pd.DataFrame([*records, *changed])


def keys_of(table: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(None if pd.isna(row[key]) else row[key] for key in TABLES[table].keys)


def failing_rows(table: str, frame: pd.DataFrame, results: Iterable[ExpectationRow]) -> dict[Failure, Counter[Any]]:
    """The keys of the rows in which each expectation fails, all of them; with the values that the frame has there."""
    failing = {}
    rows = {keys_of(table, row): row for row in frame.astype(object).where(frame.notna(), None).to_dict("records")}
    for result in failures(results):
        assert not result.raised_exception, result
        assert result.severity in ("critical", "warning")
        assert result.blocks is (result.severity == "critical"), result
        assert result.unexpected_count == len(result.examples), result
        for example in result.examples:
            row = rows[keys_of(table, example)]
            assert all(example[name] == row[name] for name in example if name in row), example
        assert name_of(result) not in failing
        failing[name_of(result)] = Counter(keys_of(table, example) for example in result.examples)
    return failing
