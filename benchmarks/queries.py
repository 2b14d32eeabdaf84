"""Every named query on a warehouse of 200 audits and 100 million SOCM pairs, made from one real audit."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured

AUDITS = 200
# Revisions of a checkpoint: each is audited once.
REVISIONS = 5
TEXTS = 1_001
ROUNDS = 3
MEASURES = "sticky,socm,layers,geometry,length"
# What one audit adds, with another id; and what one checkpoint does.
OF_CHECKPOINTS = ("checkpoint", "token")
NOT_COPIED = ("socm_pair",)
PAIRS = """
INSERT INTO socm_pair BY NAME
SELECT audit_id, 'wikipedia' AS corpus, first, second, d_mu, d_sigma, d_sigma * (1 - d_mu) AS socm FROM (
    SELECT audit_id, f.range::INTEGER AS first, s.range::INTEGER AS second, random() AS d_mu, random() AS d_sigma
    FROM audit, range($texts) f, range($texts) s WHERE f.range < s.range AND audit_id = $audit
)
"""


def run() -> Iterator[Measured]:
    # DuckDB is needed here only: the other benchmarks run without it.
    from embaudit.warehouse.query import named_queries

    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        command = [str(Path(sys.executable).parent / "embaudit"), "audit", "packaged:all-MiniLM-L6-v2"]
        arguments = [*command, "--set", "sticky.limit_tokens=2000", "--measures", MEASURES]
        subprocess.run(arguments, env={**os.environ, "EMBAUDIT_HOME": home}, check=True, capture_output=True)
        warehouse = Path(home) / "warehouse.duckdb"
        pairs = multiply(warehouse)
        built = time.perf_counter() - started
        seconds = {
            name: statistics.median(_seconds(warehouse, name) for _ in range(ROUNDS)) for name in named_queries()
        }
        size = warehouse.stat().st_size / 1e9
    slowest = sorted(seconds, key=lambda name: -seconds[name])
    yield Measured(
        f"{len(seconds)} named queries on {AUDITS} audits, {pairs / 1e6:,.0f} million SOCM pairs, {size:.1f} GB (made "
        f"in {built / 60:.0f} min; `queries`): slowest; median; how many take over 0.2 s",
        f"{', '.join(f'{name} {seconds[name]:.2f} s' for name in slowest[:3])}; "
        f"{statistics.median(seconds.values()):.2f} s; {sum(one > 0.2 for one in seconds.values())}",
        "≤ 2 s; ≤ 0.2 s",
    )


def multiply(warehouse: Path) -> int:
    """Make many audits of the one in a warehouse, five of each checkpoint, each with the pairs of 1,001 texts.

    Returns:
        how many pairs there are.
    """
    import duckdb

    with duckdb.connect(str(warehouse)) as connection:
        held = "SELECT table_name, list(column_name) FROM duckdb_columns() WHERE internal = false AND table_name IN "
        tables = connection.execute(f"{held} (SELECT table_name FROM duckdb_tables()) GROUP BY 1").fetchall()
        for table, columns in tables:
            if table in NOT_COPIED or not {"audit_id", "checkpoint_id"} & {*columns}:
                continue
            changed = []
            if "audit_id" in columns:
                changed.append("audit_id || '-' || copy AS audit_id")
            if "checkpoint_id" in columns:
                changed.append(f"checkpoint_id || '-' || copy // {REVISIONS} AS checkpoint_id")
            if table == "checkpoint":
                changed.append(f"source || '-' || copy // {REVISIONS} AS source")
            if table == "audit":
                changed += [f"{one} + to_days(copy::INTEGER) AS {one}" for one in ("started", "finished")]
            step = REVISIONS if table in OF_CHECKPOINTS else 1
            connection.execute(
                f'INSERT INTO "{table}" SELECT one.* REPLACE ({", ".join(changed)}) FROM "{table}" AS one, '
                f"(SELECT range AS copy FROM range(0, {AUDITS}, {step}))"
            )
        connection.execute("DELETE FROM socm_pair")
        for (audit,) in connection.execute(
            "SELECT audit_id FROM audit WHERE audit_id LIKE '%-%' ORDER BY 1"
        ).fetchall():
            connection.execute(PAIRS, {"texts": TEXTS, "audit": audit})
        found = connection.execute("SELECT count(*) FROM socm_pair").fetchone()
    assert found
    return int(found[0])


def _seconds(warehouse: Path, name: str) -> float:
    """As ``embaudit query`` asks: a connection of its own, and all rows."""
    from embaudit.warehouse.query import run_query

    started = time.perf_counter()
    run_query(warehouse, name)
    return time.perf_counter() - started
