"""Six million pairs of one audit: checked shard by shard and published in little memory."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

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
from embaudit.warehouse.publish import StagedTable, publish

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
    tmp_path: Path, process: Callable[..., subprocess.Popen[str]], record_property: Callable[[str, object], None]
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
