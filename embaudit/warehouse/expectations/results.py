"""Great Expectations' results as rows of ``expectation_result``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embaudit.warehouse.publish import ExpectationRow
from embaudit.warehouse.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES_KEPT = 10
# The ``shard`` of an expectation over all of a table's files.
ALL_SHARDS = -1


def row_count(table: str, rows: int, planned: int) -> ExpectationRow:
    """The expectation that a table's files together have the planned number of rows."""
    return ExpectationRow(
        table_name=table,
        shard=ALL_SHARDS,
        expectation="expect_table_row_count_to_equal",
        column_name="",
        kwargs={"value": planned},
        severity="critical",
        success=rows == planned,
        raised_exception=False,
        observed=str(rows),
    )


def result_row(table: str, shard: int, result: Any, frame: pd.DataFrame) -> ExpectationRow:
    """A result with the keys of the first failing rows."""
    config = result.expectation_config
    kwargs = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
    columns = _columns_of(kwargs)
    raised = result.exception_info or {}
    # One exception is a flat record; several are keyed by metric.
    records = [raised] if "raised_exception" in raised else list(raised.values())
    messages = [str(record["exception_message"]) for record in records if record.get("raised_exception")]
    about_rows = not config.type.startswith("expect_table_")
    # Of what holds, no more is asked than that.
    known: dict[str, Any] = {"unexpected_count": 0} if about_rows else {"observed_value": len(frame)}
    found: Mapping[str, Any] = result.result or (known if result.success else {})
    observed = found.get("observed_value")
    return ExpectationRow(
        table_name=table,
        shard=shard,
        expectation=config.type,
        column_name=", ".join(columns),
        kwargs=kwargs,
        severity=str(getattr(config.severity, "value", config.severity)),
        success=bool(result.success),
        raised_exception=bool(messages),
        observed=messages[0] if messages else (None if observed is None else str(observed)),
        unexpected_count=found.get("unexpected_count"),
        examples=_examples(
            frame,
            found.get("partial_unexpected_index_list") or [],
            list(dict.fromkeys((*TABLES[table].keys, *columns))),
        ),
    )


def _columns_of(kwargs: Mapping[str, Any]) -> list[str]:
    """The columns an expectation refers to."""
    named = [kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs]
    return [*named, *kwargs.get("column_list", [])]


def _examples(frame: pd.DataFrame, index: Sequence[Any], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Keys and values of the failing rows; null for missing values."""
    if not index:
        return []
    rows = frame.loc[list(index[:EXAMPLES_KEPT]), [name for name in columns if name in frame.columns]]
    return list(rows.astype(object).where(rows.notna(), None).to_dict("records"))
