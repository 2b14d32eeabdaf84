"""A column that is not there is an exception and not a verdict; and every column that a suite names is there."""

from __future__ import annotations

import pandas as pd
import pytest
from broken_rows import check, failures, good
from plausible import SCHEMAS
from plausible_socm import TRACES
from some_rows import mostly_slow

from embaudit.warehouse.expectations.suites import suite_of
from embaudit.warehouse.tables import TABLES


@pytest.mark.parametrize("table", mostly_slow(TABLES, ("text", "corpus", "socm_pair")))
def test_a_missing_column_is_an_exception_and_not_a_verdict(table: str) -> None:
    column = next(name for name, one in TABLES[table].columns.items() if not one.is_nullable)
    failed = failures(check(table, good(table).drop(columns=column)))
    own = [row for row in failed if column in row.column_name]
    assert own
    assert all(row.raised_exception and row.blocks for row in own if row.severity == "critical")
    assert all(column in (row.observed or "") for row in own)
    assert all(row.examples == [] for row in own)


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.rules])
def test_a_rule_is_left_out_where_one_of_its_columns_is_missing(table: str) -> None:
    traces = {"wikipedia": pd.Series(TRACES)}
    whole = TABLES[table].derive(good(table), traces)
    for column in {name for rule in TABLES[table].rules for name in rule.columns} & set(SCHEMAS[table]):
        left_out = {column}
        for rule in TABLES[table].rules:
            if left_out & set(rule.columns):
                left_out.add(rule.name)
        found = TABLES[table].derive(good(table).drop(columns=column), traces)
        pd.testing.assert_frame_equal(found, whole.drop(columns=list(left_out)))


@pytest.mark.parametrize("table", TABLES)
def test_suites_name_only_columns_that_are_staged_or_derived(table: str) -> None:
    frame = TABLES[table].derive(good(table), {"wikipedia": pd.Series(TRACES)})
    for expectation in suite_of(TABLES[table], 1):
        kwargs = expectation.configuration.kwargs
        named = [kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs]
        assert {*named, *kwargs.get("column_list", [])} <= set(frame.columns)
    assert set(good(table).columns) == set(SCHEMAS[table])


def test_only_two_suites_have_warnings() -> None:
    warned = {name for name, table in TABLES.items() if any(one.warn for one in table.columns.values())}
    assert warned == {"sticky_summary", "socm_summary"}
