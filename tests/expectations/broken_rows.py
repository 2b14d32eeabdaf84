"""One frame of a table with every row broken in another way, and which expectations fail in which of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from plausible import SCHEMAS, plausible_rows
from plausible_socm import TRACES

from embaudit.expectations.check import check_frame
from embaudit.tables import TABLES
from embaudit.warehouse.publish import ExpectationRow

KINDS = {
    "expect_column_values_to_be_unique": "unique",
    "expect_compound_columns_to_be_unique": "unique",
    "expect_column_values_to_not_be_null": "null",
    "expect_column_values_to_be_between": "between",
    "expect_column_values_to_be_in_set": "in_set",
    "expect_column_pair_values_a_to_be_greater_than_b": "greater",
}
# The key column that is changed so that many rows may be broken alike; where it has no name here, the corpus.
FRESH = {
    **dict.fromkeys(("checkpoint",), "checkpoint_id"),
    **dict.fromkeys(("corpus",), "corpus_id"),
    **dict.fromkeys(("text", "text_pair", "sticky_pair", "sticky_sentence"), "position"),
    **dict.fromkeys(("token", "sticky_score", "sticky_validation", "sticky_dose"), "token_id"),
    **dict.fromkeys(("sticky_shift", "sticky_reference"), "token_id"),
    **dict.fromkeys(("sticky_summary", "sticky_reference_summary"), "protocol"),
    **dict.fromkeys(("tempscale", "tempscale_choice"), "bin"),
    **dict.fromkeys(("audit_corpus", "finding"), "name"),
    **dict.fromkeys(("quality", "quality_layer"), "data_set"),
    "quality_reading": "reading",
    "weight": "tensor",
    "verdict": "kind",
    "sticky_attention": "layer",
    "sticky_severity": "severity",
    "sticky_shape": "space",
    "mitigation_loss": "remedy",
    "mitigation_token": "token_id",
    "placement": "role",
    "placement_token": "token_id",
    "sticky_enrichment": "value",
    "audit_backbone": "audit_id",
    "gate_result": "rule",
    "watched_revision": "parameters_key",
    "regression": "item",
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
    # Of a row that is made from the declarations: other expectations about these columns may fail too.
    about: frozenset[str] = field(default=frozenset())


def broken(row: int, *fails: Failure, **cells: Any) -> Broken:
    return Broken(row, cells, frozenset(fails))


def accepted(row: int, **cells: Any) -> Broken:
    """An unusual row in which nothing fails."""
    return broken(row, **cells)


def good(table: str) -> pd.DataFrame:
    return pd.DataFrame(GOOD[table])


def check(table: str, frame: pd.DataFrame, planned: int | None = None) -> list[ExpectationRow]:
    """The results of a table's suite; corpora named wikipedia-something have the texts of wikipedia."""
    corpora = {"wikipedia", *frame["corpus"]} if "corpus" in frame else set()
    traces = {name: pd.Series(TRACES) for name in corpora if str(name).startswith("wikipedia")}
    return check_frame(table, TABLES[table].derive(frame, traces), planned)


def failures(results: Iterable[ExpectationRow]) -> list[ExpectationRow]:
    return [row for row in results if not row.success]


def name_of(result: ExpectationRow) -> Failure:
    """Such as ``between tau``, ``greater high, low`` or ``warning null threshold``."""
    prefix = "warning " if result.severity == "warning" else ""
    return f"{prefix}{KINDS.get(result.expectation, result.expectation)} {result.column_name}".strip()


def generated(table: str) -> Iterator[Broken]:
    """A break of every null, range end, membership and order of two staged columns that is declared."""
    first = GOOD[table][0]
    columns = TABLES[table].columns.values()
    for column in TABLES[table].required:
        if column in SCHEMAS[table]:
            yield _of_column(table, f"null {column}", column, None)
    for one in columns:
        low, high = one.within
        for beyond in (None if low is None else low - 1, None if high is None else high + 1):
            if beyond is not None:
                yield _of_column(table, f"between {one.name}", one.name, beyond)
    for one in columns:
        if one.members:
            yield _of_column(table, f"in_set {one.name}", one.name, "stranger")
    for larger, smaller, _ in TABLES[table].comparisons:
        if {larger, smaller} <= set(SCHEMAS[table]):
            yield _of_column(table, f"greater {larger}, {smaller}", larger, first[smaller] - 1)


def _of_column(table: str, failure: Failure, column: str, value: Any) -> Broken:
    about = {column}
    for rule in TABLES[table].rules:
        if about & set(rule.columns):
            about.add(rule.name)
    return Broken(0, {column: value}, frozenset([failure]), frozenset(about))


def frame_of(table: str, rows: Sequence[Broken]) -> pd.DataFrame:
    """The good rows, then the broken ones with keys of their own, and at last the last good row once more."""
    records = GOOD[table]
    column = FRESH.get(table, "corpus")
    changed = []
    for number, one in enumerate([*rows, broken(len(records) - 1)], start=1):
        value = records[one.row][column]
        fresh = f"{value} {number}" if isinstance(value, str) else value + 1000 * number
        key = {column: fresh} if number <= len(rows) else {}
        rank = dict.fromkeys(RANKS.get(table, ()), len(records) + number)
        changed.append({**records[one.row], **key, **rank, **one.cells})
    return pd.DataFrame([*records, *changed])


def keys_of(table: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(None if pd.isna(row[key]) else row[key] for key in TABLES[table].keys)


def failing_rows(table: str, frame: pd.DataFrame, results: Iterable[ExpectationRow]) -> dict[Failure, Counter[Any]]:
    """The keys of the rows in which each expectation fails, all of them; with the values that the frame has there."""
    found = {}
    rows = {keys_of(table, row): row for row in frame.astype(object).where(frame.notna(), None).to_dict("records")}
    for result in failures(results):
        assert not result.raised_exception, result
        assert result.severity in ("critical", "warning")
        assert result.blocks is (result.severity == "critical"), result
        assert result.unexpected_count == len(result.examples), result
        for example in result.examples:
            row = rows[keys_of(table, example)]
            assert all(example[name] == row[name] for name in example if name in row), example
        assert name_of(result) not in found
        found[name_of(result)] = Counter(keys_of(table, example) for example in result.examples)
    return found
