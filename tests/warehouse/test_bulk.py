"""Six million pairs of one audit: checked shard by shard and published in little memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from made_up_migrations import FIRST, SECOND
from own_processes import Start

from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.migrate import known_migrations
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import keys_of, primary_keys, without_keys

# BULK_TEXTS=5001 is what benchmarks/README.md shows.
TEXTS = int(os.environ.get("BULK_TEXTS", "3601"))
PAIRS = TEXTS * (TEXTS - 1) // 2
# What the programs themselves take, and 124 bytes a pair: five numbers and a name, and nothing twice.
MOST = 0.45 * 1024**3 + PAIRS * 124

STAGE = """
import sys
from pathlib import Path
import numpy as np
from plausible import SCHEMAS, plausible_rows, stage_all
from embaudit.steps.staging.stage import staged_path, write_columns

folder, texts, per_shard = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
random = np.random.default_rng(0)
trace = random.uniform(0.5, 3.0, texts)
rows = plausible_rows()
rows["socm_text"] = [
    {**rows["socm_text"][0], "position": i, "trace_sigma": float(value), "exceeds_trace_bound": bool(value > 2)}
    for i, value in enumerate(trace)
]
rows["socm_summary"][0] |= {"texts": texts, "pairs": texts * (texts - 1) // 2}
del rows["socm_pair"], rows["socm_listed_pair"]
stage_all(folder, rows)
first, second = np.triu_indices(texts, 1)
for shard, start in enumerate(range(0, len(first), per_shard)):
    i, j = first[start : start + per_shard], second[start : start + per_shard]
    low, high = (np.sqrt(trace[i]) - np.sqrt(trace[j])) ** 2 / 4, (trace[i] + trace[j]) / 4
    d_mu, d_sigma = random.random(len(i)), low + (high - low) * random.random(len(i))
    block = {"corpus": ["wikipedia"] * len(i), "first": i, "second": j, "d_mu": d_mu, "d_sigma": d_sigma}
    path = folder / f"socm_pair-{shard:05d}.parquet"
    write_columns(path, [{**block, "socm": (1 - d_mu) * d_sigma}], SCHEMAS["socm_pair"])
"""
CHECK_AND_PUBLISH = """
import json, sys, time
from itertools import groupby
from pathlib import Path
from plausible import audit_record, measure_runs
from embaudit.warehouse.expectations.check import check_tables
from embaudit.system.processors import peak_memory
from embaudit.warehouse.publish import publish
from embaudit.warehouse.write import StagedTable

folder, warehouse, pairs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
by_table = groupby(sorted(folder.glob("*.parquet")), key=lambda path: path.name.rsplit("-", 1)[0])
staged = [StagedTable(table, tuple(map(str, paths))) for table, paths in by_table]
facts = {}
started = time.monotonic()
checks = check_tables(staged, {"socm_pair": pairs})
facts["check_seconds"], facts["check_peak"] = time.monotonic() - started, peak_memory()
facts["failed"] = [f"{row.table_name} {row.shard} {row.expectation}" for row in checks if not row.success]
for name in ("first", "again"):
    started = time.monotonic()
    facts["rows"] = publish(warehouse, 0, audit_record(), measure_runs(), checks, staged)["socm_pair"]
    facts[f"publish_{name}_seconds"] = time.monotonic() - started
facts["peak"] = peak_memory()
facts["shards"] = max(len(table.paths) for table in staged)
print(json.dumps(facts))
"""


@pytest.mark.slow
def test_six_million_pairs_are_never_in_memory_together(
    tmp_path: Path, process: Start, record_property: Callable[[str, object], None]
) -> None:
    staging, warehouse = tmp_path / "staging", tmp_path / "warehouse.duckdb"
    stager = process(STAGE, staging, TEXTS, 250_000)
    assert stager.wait() == 0, stager.stderr.read() if stager.stderr else ""
    output, errors = process(CHECK_AND_PUBLISH, staging, warehouse, PAIRS).communicate()
    assert output, errors
    facts = json.loads(output.splitlines()[-1])
    for name, value in facts.items():
        record_property(name, value)
    print(json.dumps(facts, indent=1))
    assert facts["shards"] >= 25
    assert facts["failed"] == []
    assert facts["rows"] == PAIRS
    assert facts["peak"] < MOST
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        found = connection.execute("SELECT count(*), count(DISTINCT first * 10_000 + second) FROM socm_pair").fetchall()
    assert found == [(PAIRS, PAIRS)]


# ---- tables without keys, for a DuckLake: the same statements, and the keys that they declare ----


def test_the_schema_without_keys_is_the_same_but_for_them() -> None:
    """What a later migration may do is among it: another table, another column."""
    keyed, keyless = duckdb.connect(), duckdb.connect()
    for sql in (*(table.ddl for table in TABLES.values()), *(one.sql for one in (*known_migrations(), FIRST, SECOND))):
        keyed.execute(sql)
        keyless.execute(without_keys(sql))

    def columns(connection: duckdb.DuckDBPyConnection) -> list[Any]:
        return connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() ORDER BY ALL"
        ).fetchall()

    assert columns(keyless) == columns(keyed)
    constraints = "SELECT 1 FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
    assert keyless.execute(constraints).fetchall() == []


def test_the_keys_that_are_read_off_the_text_are_duckdbs() -> None:
    connection = duckdb.connect()
    for sql in (*(table.ddl for table in TABLES.values()), *(one.sql for one in known_migrations())):
        connection.execute(sql)
    connection.execute(migrations.RECORD_TABLE)
    found = connection.execute(
        "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
    ).fetchall()
    expected = {name: tuple(columns) for name, columns in found}
    assert {**primary_keys(), **keys_of([migrations.RECORD_TABLE])} == expected
