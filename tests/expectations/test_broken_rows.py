"""Every expectation of every table is seen to fail, in the rows that are broken for it and in no other.

Great Expectations takes a second for a table. What it is to find is evaluated here in plain pandas too, for every
table; and that both find the same is looked at for tables that have a suite's kinds of expectations between them, and
for all tables in the slow tests.
"""

from __future__ import annotations

import json
from collections import Counter

import pandas as pd
import pytest
from broken_rows import (
    check,
    completed,
    failing_rows,
    frame_of,
    fresh_column,
    generated,
    keys_of,
    name_of,
    plainly_failing,
)
from broken_rules import BY_HAND
from some_rows import mostly_slow

from embaudit.warehouse.tables import TABLES

# Rules across rows, which a frame of rows broken one by one cannot keep: test_rules_across_rows.py has them.
ACROSS = {"sticky_shift": {"in_set pairs_are_the_same"}}
# Between them: every kind of expectation and of table.
SEVERAL = ("finding", "socm_pair", "sticky_summary")


def broken_frame(table: str) -> pd.DataFrame:
    return frame_of(table, [*BY_HAND.get(table, ()), *generated(table)])


@pytest.mark.parametrize("table", TABLES)
def test_what_is_broken_fails_and_nothing_else(table: str) -> None:
    rows = [*BY_HAND.get(table, ()), *generated(table)]
    frame = broken_frame(table)
    first = len(frame) - len(rows) - 1
    found = plainly_failing(table, completed(table, frame))
    failing = {name: keys for name, keys in found.items() if keys}
    for failure in ACROSS.get(table, ()):
        del failing[failure]

    expected: dict[str, Counter[object]] = {}
    twice = keys_of(table, frame.iloc[-1].to_dict())
    expected[f"unique {', '.join(TABLES[table].keys)}"] = Counter([twice, twice])
    # Where every key has few members, the many rows of this test are strangers.
    fresh = fresh_column(table)
    has_members = bool(TABLES[table].columns[fresh].members)
    for index, row in enumerate(rows, start=first):
        key = keys_of(table, frame.iloc[index].to_dict())
        fails = set(row.fails)
        if has_members and fresh not in row.cells:
            fails.add(f"in_set {fresh}")
        # A cell that is broken by a declaration may fail what else is said about it.
        also = {name for name, keys in failing.items() if key in keys and row.about & set(columns_of(name))}
        fails |= also - {row.holds}
        for failure in fails:
            expected.setdefault(failure, Counter())[key] += 1
    assert failing == expected
    assert set(failing) == set(found) - ACROSS.get(table, set()), "expectations that nothing here breaks"


@pytest.mark.parametrize("table", mostly_slow(TABLES, SEVERAL))
def test_great_expectations_finds_the_same_rows(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embaudit.warehouse.expectations.check.EXAMPLES_KEPT", 1000)
    frame = broken_frame(table)
    results = check(table, frame, planned=len(frame))
    expected = plainly_failing(table, completed(table, frame))
    assert {name_of(result) for result in results if "row_count" not in result.expectation} == set(expected)
    assert failing_rows(table, frame, results) == {name: keys for name, keys in expected.items() if keys}
    for result in results:
        kept = [result.kwargs, result.examples if "unique" in result.expectation else []]
        assert json.loads(json.dumps(kept, default=int)) == kept
        assert "batch_id" not in result.kwargs


def columns_of(failure: str) -> list[str]:
    return failure.removeprefix("warning ").partition(" ")[2].split(", ")
