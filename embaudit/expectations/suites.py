"""One suite a published table, made of its rules; keys must be unique and complete.

``critical`` expectations block publishing; a ``warning`` is recorded and shown. Column expectations pass on an
empty table, so ``check`` pairs every suite with a row count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from embaudit.expectations.rules import ABOVE, ACCURATE, AT_LEAST, MEMBERS, MUST_HOLD, RANGES, REQUIRED

if TYPE_CHECKING:
    from great_expectations.expectations import Expectation


def suite_of(table: str, keys: tuple[str, ...], planned_rows: int | None) -> list[Expectation]:
    """The expectations of a table.

    Args:
        keys: columns that identify a row.
        planned_rows: how many rows the plan says there must be; None where the plan cannot know.
    """
    import great_expectations.expectations as gxe

    # A plan of no rows is a plan that cannot be met: an empty table passes every column expectation.
    suite: list[Expectation] = [
        gxe.ExpectTableRowCountToBeBetween(min_value=1)
        if planned_rows is None
        else gxe.ExpectTableRowCountToEqual(value=max(planned_rows, 1))
    ]
    if len(keys) == 1:
        suite.append(gxe.ExpectColumnValuesToBeUnique(column=keys[0]))
    else:
        suite.append(gxe.ExpectCompoundColumnsToBeUnique(column_list=list(keys)))
    for column in dict.fromkeys((*keys, *REQUIRED[table])):
        suite.append(gxe.ExpectColumnValuesToNotBeNull(column=column))
    for column, (low, high) in RANGES.get(table, {}).items():
        suite.append(gxe.ExpectColumnValuesToBeBetween(column=column, min_value=low, max_value=high))
    for column, members in MEMBERS.get(table, {}).items():
        suite.append(gxe.ExpectColumnValuesToBeInSet(column=column, value_set=list(members)))
    for pairs, may_be_equal in ((AT_LEAST.get(table, ()), True), (ABOVE.get(table, ()), False)):
        for larger, smaller in pairs:
            suite.append(
                gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                    column_A=larger,
                    column_B=smaller,
                    or_equal=may_be_equal,
                    ignore_row_if="either_value_is_missing",
                )
            )
    for column in MUST_HOLD.get(table, ()):
        suite.append(gxe.ExpectColumnValuesToBeInSet(column=column, value_set=[True]))
    return suite + WARNINGS.get(table, list)()


def _sticky_warnings() -> list[Expectation]:
    import great_expectations.expectations as gxe

    # A threshold needs forty candidates; without one every verdict is no_threshold, and that should be seen.
    return [
        gxe.ExpectColumnValuesToNotBeNull(column="threshold", severity="warning"),
        gxe.ExpectColumnValuesToBeBetween(column="validation_pairs", min_value=30, severity="warning"),
    ]


def _socm_warnings() -> list[Expectation]:
    import great_expectations.expectations as gxe

    # tr Σ > 2 lets SOCM leave [0, 1]; a corpus where that is the rule is worth a look.
    return [
        gxe.ExpectColumnValuesToBeBetween(column="share_trace_above_bound", max_value=0.95, severity="warning"),
        gxe.ExpectColumnValuesToBeInSet(column="pooling_is_mean", value_set=[True], severity="warning"),
        gxe.ExpectColumnValuesToBeBetween(column="accuracy", max_value=ACCURATE, severity="warning"),
    ]


WARNINGS: dict[str, Callable[[], list[Expectation]]] = {
    "sticky_summary": _sticky_warnings,
    "socm_summary": _socm_warnings,
}
