"""Runs the suites on staged files, shard by shard, and says which rows fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embaudit.expectations.suites import TOLERANCE, suite_of
from embaudit.sticky.scores import severity
from embaudit.warehouse.publish import ExpectationRow, StagedTable
from embaudit.warehouse.tables import TABLES

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES_KEPT = 10


def check_tables(staged: Sequence[StagedTable], planned_rows: Mapping[str, int]) -> list[ExpectationRow]:
    """Check every staged table.

    Args:
        planned_rows: rows that the plan demands of a table over all its shards; a table that is not named may
            have any number from one up.
    """
    import pyarrow.parquet as pq

    traces = _traces(staged)
    results: list[ExpectationRow] = []
    for table in staged:
        rows = 0
        for shard, path in enumerate(table.paths):
            frame = pq.read_table(path).to_pandas()
            rows += len(frame)
            planned = planned_rows.get(table.table) if len(table.paths) == 1 else None
            results += check_frame(table.table, derived(table.table, frame, traces), planned, shard)
            del frame
        if len(table.paths) > 1 and table.table in planned_rows:
            # Shards are checked one by one; that none is missing or doubled shows in the sum.
            results.append(_row_count(table.table, rows, planned_rows[table.table]))
    return results


def check_frame(
    table: str, frame: pd.DataFrame, planned_rows: int | None, shard: int = 0
) -> list[ExpectationRow]:
    """Run a table's suite on one frame."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    keys = TABLES[table].keys
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("staged").add_dataframe_asset(table)
    batch = asset.add_batch_definition_whole_dataframe("shard").get_batch(
        batch_parameters={"dataframe": frame}
    )
    suite = gx.ExpectationSuite(table, expectations=suite_of(table, keys, planned_rows))
    outcome = batch.validate(
        suite,
        result_format={
            "result_format": "SUMMARY",
            "partial_unexpected_count": EXAMPLES_KEPT,
            "unexpected_index_column_names": [key for key in keys if key in frame.columns],
        },
    )
    return [_as_row(table, shard, result) for result in outcome.results]


def derived(table: str, frame: pd.DataFrame, traces: Mapping[str, pd.Series]) -> pd.DataFrame:
    """The frame with the columns that some expectations compare: bounds, and statements that must be true."""
    import numpy as np

    if table == "corpus":
        parts = frame[["kept", "duplicate", "blank", "broken", "undecodable"]].sum(axis=1)
        return frame.assign(counts_add_up=frame["read"] == parts)
    if table == "sticky_score":
        complete = np.arange(1, len(frame) + 1)
        by_rank = frame[["pull_rank", "slope_rank"]].apply(lambda ranks: np.sort(ranks.to_numpy()))
        ok = (by_rank["pull_rank"].to_numpy() == complete) & (by_rank["slope_rank"].to_numpy() == complete)
        return frame.assign(ranks_are_complete=ok)
    if table == "sticky_validation":
        beyond = (
            frame["value"]
            .gt(frame["threshold"])
            .where(frame["protocol"] == "definition", frame["value"].lt(frame["threshold"]))
        )
        expected = np.select(
            [frame["role"] == "control", frame["threshold"].isna(), beyond],
            ["", "no_threshold", "sticky"],
            "not_sticky",
        )
        return frame.assign(
            verdict_agrees_with_threshold=frame["verdict"].fillna("") == expected,
            severity_agrees_with_loss=frame["severity"] == frame["loss"].map(severity),
        )
    if table == "socm_pair":
        parts = []
        for corpus, rows in frame.groupby("corpus", observed=True):
            first, second = (rows[name].map(traces[str(corpus)]) for name in ("first", "second"))
            parts.append(
                rows.assign(
                    d_sigma_lower_bound=np.square(np.sqrt(first) - np.sqrt(second)) / 4 - TOLERANCE,
                    d_sigma_upper_bound=(first + second) / 4 + TOLERANCE,
                    d_sigma_and_tolerance=rows["d_sigma"] + TOLERANCE,
                )
            )
        import pandas as pd

        return pd.concat(parts) if parts else frame
    return frame


def _traces(staged: Sequence[StagedTable]) -> dict[str, pd.Series]:
    """tr Σ of each text by position, for each corpus: the bounds of d_Σ hang on it."""
    import pyarrow.parquet as pq

    found: dict[str, Any] = {}
    for table in staged:
        if table.table == "socm_text":
            for path in table.paths:
                frame = pq.read_table(path, columns=["corpus", "position", "trace_sigma"]).to_pandas()
                for corpus, rows in frame.groupby("corpus", observed=True):
                    found[str(corpus)] = rows.set_index("position")["trace_sigma"]
    return found


def _row_count(table: str, rows: int, planned: int) -> ExpectationRow:
    return ExpectationRow(
        table_name=table,
        shard=-1,  # all shards together
        expectation="expect_table_row_count_to_equal",
        column_name="",
        kwargs={"value": planned},
        severity="critical",
        success=rows == planned,
        raised_exception=False,
        observed=str(rows),
    )


def _as_row(table: str, shard: int, result: Any) -> ExpectationRow:
    config = result.expectation_config
    kwargs = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
    column = kwargs.get("column") or ", ".join(kwargs.get("column_list", [])) or kwargs.get("column_A", "")
    raised = result.exception_info or {}
    # One exception is a flat record; several come keyed by metric.
    records = [raised] if "raised_exception" in raised else list(raised.values())
    messages = [str(record["exception_message"]) for record in records if record.get("raised_exception")]
    observed = result.result.get("observed_value")
    return ExpectationRow(
        table_name=table,
        shard=shard,
        expectation=config.type,
        column_name=column,
        kwargs=kwargs,
        severity=str(getattr(config.severity, "value", config.severity)),
        success=bool(result.success),
        raised_exception=bool(messages),
        observed=messages[0] if messages else (None if observed is None else str(observed)),
        unexpected_count=result.result.get("unexpected_count"),
        examples=[
            {key: getattr(value, "item", lambda value=value: value)() for key, value in row.items()}
            for row in (result.result.get("partial_unexpected_index_list") or [])[:EXAMPLES_KEPT]
        ],
    )
