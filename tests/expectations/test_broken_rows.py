"""Every expectation of every table is seen to fail, in the rows that are broken for it and in no other."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from broken_rows import check, failing_rows, frame_of, fresh_column, generated, keys_of, name_of
from broken_rules import BY_HAND

from embaudit.tables import TABLES

# Rules across rows, which a frame of rows broken one by one cannot keep: test_rules_across_rows.py has them.
ACROSS = {"sticky_shift": {"in_set pairs_are_the_same"}}


@pytest.mark.parametrize("table", TABLES)
def test_what_is_broken_fails_and_nothing_else(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("check", "results"):
        monkeypatch.setattr(f"embaudit.expectations.{module}.EXAMPLES_KEPT", 1000)
    rows = [*BY_HAND.get(table, ()), *generated(table)]
    frame = frame_of(table, rows)
    first = len(frame) - len(rows) - 1
    results = check(table, frame, planned=len(frame))
    failing = failing_rows(table, frame, results)
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
    named = {name_of(result) for result in results if "row_count" not in result.expectation}
    assert set(failing) == named - ACROSS.get(table, set()), "expectations that nothing here breaks"
    for result in results:
        kept = [result.kwargs, result.examples if "unique" in result.expectation else []]
        assert json.loads(json.dumps(kept, default=int)) == kept
        assert "batch_id" not in result.kwargs


def columns_of(failure: str) -> list[str]:
    return failure.removeprefix("warning ").partition(" ")[2].split(", ")
