"""A column that is not there is an exception and not a verdict; and every column that a suite names is there."""

from __future__ import annotations

import pandas as pd
import pytest
from broken_rows import check, failures, good
from plausible import SCHEMAS
from plausible_socm import TRACES

from embaudit.expectations.check import DERIVED_FROM, derived
from embaudit.expectations.rules import ABOVE, AT_LEAST, MEMBERS, MUST_HOLD, RANGES, REQUIRED
from embaudit.expectations.suites import WARNINGS
from embaudit.warehouse.tables import TABLES


def is_all_tables(table: str) -> object:
    """Three tables in ``make test``, the others in ``make test-all``."""
    return pytest.param(table, marks=[] if table in ("text", "corpus", "socm_pair") else pytest.mark.slow)


@pytest.mark.parametrize("table", map(is_all_tables, TABLES))
def test_a_missing_column_is_an_exception_and_not_a_verdict(table: str) -> None:
    column = (*REQUIRED[table], *TABLES[table].keys)[0]
    failed = failures(check(table, good(table).drop(columns=column)))
    own = [row for row in failed if column in row.column_name]
    assert own
    assert all(row.raised_exception and row.blocks for row in own if row.severity == "critical")
    assert all(column in (row.observed or "") for row in own)
    assert all(row.examples == [] for row in own)


@pytest.mark.parametrize("table", DERIVED_FROM)
def test_nothing_is_derived_where_a_column_is_missing(table: str) -> None:
    for column in DERIVED_FROM[table]:
        frame = good(table).drop(columns=column)
        assert derived(table, frame, {"wikipedia": pd.Series(TRACES)}) is frame


@pytest.mark.parametrize("table", TABLES)
def test_suites_name_only_columns_that_are_staged_or_derived(table: str) -> None:
    frame = derived(table, good(table), {"wikipedia": pd.Series(TRACES)})
    compared = [column for pairs in (AT_LEAST, ABOVE) for pair in pairs.get(table, ()) for column in pair]
    named = {*REQUIRED[table], *RANGES.get(table, {}), *MEMBERS.get(table, {}), *MUST_HOLD.get(table, ()), *compared}
    assert named <= set(frame.columns)
    assert set(good(table).columns) == set(SCHEMAS[table])


def test_only_two_suites_have_warnings() -> None:
    assert set(WARNINGS) == {"sticky_summary", "socm_summary"}
