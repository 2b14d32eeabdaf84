"""Runs the suites on staged files, shard by shard, and reports which rows fail.

Caches check results of staged tables: the same bytes are not checked twice by the same code.

A result depends on the table's files, the planned rows, the files of other tables that its rules read, and the rules.
For the rules, all code of embaudit and of packages that bring measures, and the version of Great Expectations are
hashed, so that nobody has to remember to increment a version. Failures that block publishing are not cached.

Keeps track of the pairs of texts in a bulk table's shards.

Great Expectations' results as rows of ``expectation_result``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.declared.table import Lookup
from embaudit.measures import MEASURES
from embaudit.steps.staging.files import readable
from embaudit.steps.staging.stage import is_staged, read_rows, read_table, reading, staged_path, write_rows
from embaudit.system.installed import code_digest, content_key
from embaudit.warehouse.publish import ExpectationRow
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from great_expectations.datasource.fluent import PandasDatasource

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


SCHEMA = {"result": "string"}


def check_path(staging: str, table: str, paths: Sequence[str], others: Sequence[str], planned: int | None) -> str:
    """Where a table's results are cached.

    Args:
        others: files of other tables that its rules read.
    """
    key = content_key(rules=_rules(), table=table, files=_digests(paths), others=_digests(others), planned=planned)
    return staged_path(staging, "audit", key, "checks")


def recall(path: str) -> list[ExpectationRow] | None:
    """A table's cached results; None if there are none."""
    if not is_staged(path):
        return None
    return [ExpectationRow(**json.loads(row["result"])) for row in read_rows([path])]


def remember(path: str, results: Sequence[ExpectationRow]) -> None:
    """Cache results, if the table may be published."""
    if not any(row.blocks for row in results):
        write_rows(path, [{"result": json.dumps(asdict(row))} for row in results], SCHEMA)


def _digests(paths: Sequence[str]) -> list[str]:
    digests = []
    for path in paths:
        with reading(path), readable(path) as source:
            if isinstance(source, str):
                with Path(source).open("rb") as file:
                    digests.append(hashlib.file_digest(file, "sha256").hexdigest())
            else:
                digests.append(hashlib.file_digest(source, "sha256").hexdigest())
    return digests


@cache
def _rules() -> str:
    packages = dict.fromkeys(measure.package.split(".")[0] for measure in MEASURES.values())
    return f"{code_digest(*packages)} {version('great_expectations')}"


class PairsSeen:
    """A bitmap of pairs: twelve million keys would take too much memory.

    Args:
        keys: columns of the corpus and the two positions.
        texts: for each corpus a series by position, as in the table's lookup.
    """

    def __init__(self, keys: tuple[str, ...], texts: Mapping[str, pd.Series]) -> None:
        self._keys = keys
        self._texts = texts
        self._seen: dict[str, np.ndarray] = {}
        self._repeated = 0
        self._examples: list[dict[str, Any]] = []

    def add(self, frame: pd.DataFrame) -> None:
        """Count a shard's pairs; other expectations report rows without a key or outside the corpus."""
        import numpy as np

        if not set(self._keys) <= set(frame.columns):
            return
        group, *sides = self._keys
        for corpus, texts in self._texts.items():
            own = frame.loc[(frame[group] == corpus).to_numpy(), sides].dropna()
            if own.empty:  # a list of pairs may have too many texts for a map
                continue
            # Renumber positions: a random draw leaves gaps.
            first, second = (texts.index.get_indexer(own[side]) for side in sides)
            is_known = (first >= 0) & (second >= 0)
            own, size = own[is_known], len(texts)
            seen = self._seen.setdefault(corpus, np.zeros(size * size, dtype=bool))
            pairs = first[is_known] * size + second[is_known]
            repeated = seen[pairs]
            self._repeated += int(repeated.sum())
            examples = own[repeated].head(EXAMPLES_KEPT - len(self._examples))
            self._examples += [{group: corpus, **row} for row in examples.to_dict("records")]
            seen[pairs] = True

    def as_row(self, table: str) -> ExpectationRow:
        """The expectation that no pair occurs twice, over all shards."""
        return ExpectationRow(
            table_name=table,
            shard=ALL_SHARDS,
            expectation="expect_compound_columns_to_be_unique",
            column_name=", ".join(self._keys),
            kwargs={"column_list": list(self._keys)},
            severity="critical",
            success=self._repeated == 0,
            raised_exception=False,
            unexpected_count=self._repeated,
            examples=self._examples,
        )


FRAME = "frame"


def check_tables(
    staged: Sequence[StagedTable], planned_rows: Mapping[str, int], remembered_in: str | None = None
) -> list[ExpectationRow]:
    """Check every staged table, with one shard in memory at a time.

    Args:
        planned_rows: planned number of rows of a table over all its shards; other tables may have any number from one
            up. Unknown table names are ignored.
        remembered_in: the staging folder where results are cached; None checks everything.

    Raises:
        StorageError: if a staged file is missing or broken.
    """
    source = cache(frames_source)
    prepared = cache(lambda lookup: lookup.prepare(_read_all(staged, lookup)))
    results: list[ExpectationRow] = []
    for table in staged:
        planned = planned_rows.get(table.table)
        path = None
        if remembered_in is not None:
            looked_up = _lookup_files(staged, TABLES[table.table].lookup)
            path = check_path(remembered_in, table.table, table.paths, looked_up, planned)
        rows = recall(path) if path else None
        if rows is None:
            rows = _check_table(table, planned, prepared, source())
            if path:
                remember(path, rows)
        results += rows
    present = {table.table for table in staged}
    for name, planned in planned_rows.items():
        if name in TABLES and name not in present and planned > 0:
            results.append(row_count(name, 0, planned))
    return results


def _check_table(
    staged: StagedTable, planned: int | None, prepared: Callable[[Lookup], Any], source: PandasDatasource
) -> list[ExpectationRow]:
    table = TABLES[staged.table]
    looked_up = prepared(table.lookup) if table.lookup else None
    results: list[ExpectationRow] = []
    rows = 0
    is_sharded = len(staged.paths) > 1
    seen = PairsSeen(table.keys, looked_up or {}) if table.is_bulk and is_sharded else None
    for shard, path in enumerate(staged.paths):
        frame = _read_frame(table.name, path)
        rows += len(frame)
        checked = table.derive(frame, looked_up)
        results += check_frame(table.name, checked, None if is_sharded else planned, shard, source)
        if seen:
            seen.add(frame)
        del frame, checked
    if is_sharded and planned is not None:
        # Shards are checked one by one; the total row count shows missing shards, the keys show duplicate ones.
        results.append(row_count(table.name, rows, planned))
    if seen:
        results.append(seen.as_row(table.name))
    return results


def check_frame(
    table: str, frame: pd.DataFrame, planned_rows: int | None, shard: int = 0, source: PandasDatasource | None = None
) -> list[ExpectationRow]:
    """Run a table's suite on one frame completed by ``DeclaredTable.derive``; its index must be unique.

    Args:
        source: from ``frames_source``, to check several frames with one.
    """
    import great_expectations as gx

    from embaudit.warehouse.expectations.suites import configurations_built_once, suite_of

    source = source or frames_source()
    batch = source.get_asset(FRAME).get_batch_definition(FRAME).get_batch(batch_parameters={"dataframe": frame})
    suite = gx.ExpectationSuite(table, expectations=suite_of(TABLES[table], planned_rows))
    with configurations_built_once():
        asked = batch.validate(suite, result_format="BOOLEAN_ONLY")
        results = {_identity(result): result for result in asked.results}
        failed = [result.expectation_config.to_domain_obj() for result in results.values() if not result.success]
        if failed:
            # Failing rows, and how many there are, are requested only for expectations that fail: requesting them
            # everywhere takes 3 times as long. They are returned by index and their keys looked up here: with key
            # columns, Great Expectations 1.24 takes 45 s for one expectation that fails in all of 500 000 rows.
            with_rows = {"result_format": "SUMMARY", "partial_unexpected_count": EXAMPLES_KEPT}
            again = batch.validate(gx.ExpectationSuite(table, expectations=failed), result_format=with_rows)
            results |= {_identity(result): result for result in again.results}
    return [result_row(table, shard, result, frame) for result in results.values()]


def _identity(result: Any) -> tuple[str, str]:
    config = result.expectation_config
    return config.type, str(sorted(config.kwargs.items()))


def frames_source() -> PandasDatasource:
    """A Great Expectations source for frames, whatever their table. It keeps the last one for as long as it lives."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_pandas("staged")
    source.add_dataframe_asset(FRAME).add_batch_definition_whole_dataframe(FRAME)
    return source


def _read_frame(table: str, path: str) -> pd.DataFrame:
    # The corpus of a bulk table is one name half a million times: a category takes one byte per row.
    return read_table(path, read_dictionary=["corpus"] if TABLES[table].is_bulk else None).to_pandas()


def _lookup_files(staged: Sequence[StagedTable], lookup: Lookup | None) -> list[str]:
    """The files that a lookup reads."""
    return [path for table in staged if lookup and table.table == lookup.table for path in table.paths]


def _read_all(staged: Sequence[StagedTable], lookup: Lookup) -> pd.DataFrame:
    """The rows from which a lookup is prepared; a file that lacks a column fails its own table's suite."""
    import pandas as pd

    columns = list(lookup.columns)
    frames = [_read_frame(lookup.table, path) for path in _lookup_files(staged, lookup)]
    usable = [frame[columns] for frame in frames if set(columns) <= set(frame.columns)]
    return pd.concat(usable) if usable else pd.DataFrame(columns=columns)
