"""One suite per published table, made from its declaration; keys must be unique and complete.

``critical`` expectations block publishing; a ``warning`` is recorded and shown. Column expectations pass on an empty
table, so every suite starts with a row count.

Speeds up Great Expectations: builds each expectation's configuration once per validation.

``Expectation.configuration`` is a property that serializes all fields. Version 1.24 reads it about a hundred times to
validate one expectation, and makes an expectation of the configuration again for each of its metrics. It also converts
to JSON types what has them, to name each of the metrics that it builds. Without this, checking the 83 tables of a small
audit takes 2.1 times as long (8.2 s of processor time instead of 3.8 s); the first of the three saves the most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock, get_ident
from typing import Any

import great_expectations.expectations as gxe
from great_expectations.core import id_dict
from great_expectations.expectations import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

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


_PLAIN = (str, int, bool, type(None))
_replacing = RLock()


@contextmanager
def configurations_built_once() -> Iterator[None]:
    """Cache configurations and their expectations; fields of neither must change within the block.

    Great Expectations is as it was after the block, and for other threads within it.
    """
    thread = get_ident()
    # Neither is hashable, so the key is the identity; holding the object keeps the identity from being reused.
    kept: dict[int, tuple[Any, Any]] = {}

    def once(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def kept_or_built(subject: Any) -> Any:
            if get_ident() != thread:
                return build(subject)
            if id(subject) not in kept:
                kept[id(subject)] = subject, build(subject)
            return kept[id(subject)][1]

        return kept_or_built

    def converted(convert: Callable[..., Any]) -> Callable[[Any], Any]:
        """Great Expectations tries twenty types on every value, on None all of them."""

        def unless_plain(data: Any) -> Any:
            is_plain = get_ident() == thread and all(type(value) in _PLAIN for value in data.values())
            return data if is_plain else convert(data=data)

        return unless_plain

    with _replacing, ExitStack() as restored:
        for owner, name, faster in (
            (Expectation, "configuration", lambda read: property(once(read.fget))),
            (ExpectationConfiguration, "to_domain_obj", once),
            (id_dict, "convert_to_json_serializable", converted),
        ):
            # A later version may not have one of them; then nothing of it is cached.
            if (as_it_is := vars(owner).get(name)) is not None:
                restored.callback(setattr, owner, name, as_it_is)
                setattr(owner, name, faster(as_it_is))
        yield
