"""Every expectation of every table is seen to fail, in the rows that are broken for it and in no other."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from broken_numbers import NUMBERS
from broken_records import RECORDS
from broken_rows import Broken, check, failing_rows, frame_of, generated, keys_of, name_of
from broken_sticky import STICKY

from embaudit.tables import TABLES

BY_HAND: dict[str, list[Broken]] = {**STICKY, **NUMBERS, **RECORDS}
# Rules across rows, which a frame of rows broken one by one cannot keep: test_rules_across_rows.py has them.
ACROSS = {"sticky_shift": {"in_set pairs_are_the_same"}}
# The summaries have one key, whose members are few: the many rows of this test are strangers.
STRANGERS = {
    **dict.fromkeys(("sticky_summary", "sticky_reference_summary"), "in_set protocol"),
    "sticky_severity": "in_set severity",
    "sticky_shape": "in_set space",
    "mitigation_loss": "in_set remedy",
    "placement": "in_set role",
    "verdict": "in_set kind",
}


@pytest.mark.parametrize("table", TABLES)
def test_what_is_broken_fails_and_nothing_else(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("check", "results"):
        monkeypatch.setattr(f"embaudit.expectations.{module}.EXAMPLES_KEPT", 1000)
    rows = [*BY_HAND.get(table, ()), *generated(table)]
    frame = frame_of(table, rows)
    first = len(frame) - len(rows) - 1
    results = check(table, frame, planned=len(frame))
    found = failing_rows(table, frame, results)
    for failure in ACROSS.get(table, ()):
        del found[failure]

    expected: dict[str, Counter[object]] = {}
    twice = keys_of(table, frame.iloc[-1].to_dict())
    expected[f"unique {', '.join(TABLES[table].keys)}"] = Counter([twice, twice])
    for index, one in enumerate(rows, start=first):
        key = keys_of(table, frame.iloc[index].to_dict())
        fails = set(one.fails)
        if table in STRANGERS and STRANGERS[table].split()[1] not in one.cells:
            fails.add(STRANGERS[table])
        # A cell that is broken by a declaration may fail what else is said about it.
        fails |= {name for name, keys in found.items() if key in keys and one.about & set(columns_of(name))}
        for failure in fails:
            expected.setdefault(failure, Counter())[key] += 1
    assert found == expected
    named = {name_of(result) for result in results if "row_count" not in result.expectation}
    assert set(found) == named - ACROSS.get(table, set()), "expectations that nothing here breaks"
    for result in results:
        kept = [result.kwargs, result.examples if "unique" in result.expectation else []]
        assert json.loads(json.dumps(kept, default=int)) == kept
        assert "batch_id" not in result.kwargs


def columns_of(failure: str) -> list[str]:
    return failure.removeprefix("warning ").partition(" ")[2].split(", ")
