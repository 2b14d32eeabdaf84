"""One suite per published table, made from its declaration; keys must be unique and complete.

``critical`` expectations block publishing; a ``warning`` is recorded and shown. Column expectations pass on an empty
table, so every suite starts with a row count.
"""

from __future__ import annotations

from collections.abc import Iterator

import great_expectations.expectations as gxe
from great_expectations.expectations import Expectation

from embaudit.declared.table import ANY, DeclaredColumn, DeclaredTable


def suite_of(table: DeclaredTable, planned_rows: int | None) -> list[Expectation]:
    """The expectations of a table, for a frame completed by ``DeclaredTable.derive``.

    Args:
        planned_rows: planned number of rows; None if unknown.
    """
    return [_count(planned_rows), *_completeness(table), *_values(table), *_comparisons(table), *_warnings(table)]


def _count(planned_rows: int | None) -> Expectation:
    if planned_rows is None:
        return gxe.ExpectTableRowCountToBeBetween(min_value=1)
    # A plan of 0 rows cannot be satisfied: an empty table would pass every column expectation.
    return gxe.ExpectTableRowCountToEqual(value=max(planned_rows, 1))


def _completeness(table: DeclaredTable) -> Iterator[Expectation]:
    if len(table.keys) == 1:
        yield gxe.ExpectColumnValuesToBeUnique(column=table.keys[0])
    else:
        yield gxe.ExpectCompoundColumnsToBeUnique(column_list=list(table.keys))
    for name in table.required:
        yield gxe.ExpectColumnValuesToNotBeNull(column=name)


def _values(table: DeclaredTable) -> Iterator[Expectation]:
    for one in table.columns.values():
        if one.within != ANY:
            low, high = one.within
            yield gxe.ExpectColumnValuesToBeBetween(column=one.name, min_value=low, max_value=high)
        if one.members:
            yield gxe.ExpectColumnValuesToBeInSet(column=one.name, value_set=list(one.members))
    for rule in table.statements:
        yield gxe.ExpectColumnValuesToBeInSet(column=rule.name, value_set=[True])


def _comparisons(table: DeclaredTable) -> Iterator[Expectation]:
    for larger, smaller, may_be_equal in table.comparisons:
        yield gxe.ExpectColumnPairValuesAToBeGreaterThanB(
            column_A=larger, column_B=smaller, or_equal=may_be_equal, ignore_row_if="either_value_is_missing"
        )


def _warnings(table: DeclaredTable) -> Iterator[Expectation]:
    for one in table.columns.values():
        if one.warn:
            yield _warning(one)


def _warning(column: DeclaredColumn) -> Expectation:
    warn = column.warn
    assert warn is not None
    if warn.null:
        return gxe.ExpectColumnValuesToNotBeNull(column=column.name, severity="warning")
    if warn.false:
        return gxe.ExpectColumnValuesToBeInSet(column=column.name, value_set=[True], severity="warning")
    return gxe.ExpectColumnValuesToBeBetween(
        column=column.name, min_value=warn.below, max_value=warn.above, severity="warning"
    )
