"""Warehouses as earlier versions of the program left them: frozen files that today's code has no part in.

``tests/old_versions/vNNN.json.gz`` has every table's statement and rows, as DuckDB printed them then. ``freeze`` makes
the file of a version that has none yet: `python tests/frozen.py`, before the next migration is written. What is there
is never made again.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

FOLDER = Path(__file__).parent / "old_versions"
VERSIONS = sorted(int(path.name[1:4]) for path in FOLDER.glob("v*.json.gz"))
# Rows of tables that an audit does not stage.
OTHER_ROWS = (
    "INSERT INTO downstream_score VALUES ('owner/other', '', 'Task', 'test', 'default', 0.5, NULL, 'file', "
    "'2026-11-21 12:00:00+00')",
    "INSERT INTO audit_backbone VALUES ('old2', 'old1')",
    "INSERT INTO watched_revision VALUES ('owner/other', 'abc', 'k1', '{\"profile\": \"quick\"}', 'c2', 'audited', "
    "NULL, 'old2', '2026-11-21 12:00:00+00', '2026-11-21 13:00:00+00')",
    "INSERT INTO regression VALUES ('old2', 'old1', 'socm', 'wikipedia', 'socm_mean', 0.5, 0.4, 0.1, 0.25, 'higher', "
    "0.01, true)",
    "INSERT INTO gate_result VALUES ('old2', 'ours', 'h1', '', 'socm', 'limit', 'socm', 'wikipedia', 'socm_mean', 0.5, "
    "NULL, 0.6, NULL, NULL, '', 'passed', false, '', '2026-11-21 12:00:00+00')",
    "INSERT INTO pruning VALUES ('old1', 'socm_pair', 6, 'finished more than 90 days ago', '2026-11-21 12:00:00+00')",
)


def load(version: int, connection: duckdb.DuckDBPyConnection, *, keyless: bool = False) -> dict[str, Any]:
    """Lay a frozen version in an empty database; returns what the file holds.

    Args:
        keyless: as a DuckLake takes it.
    """
    from embaudit.warehouse.keys import without_keys

    frozen = json.loads(gzip.decompress((FOLDER / f"v{version:03}.json.gz").read_bytes()))
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in frozen["tables"].items():
        connection.execute(without_keys(table["statement"]) if keyless else table["statement"])
        kinds = [kind for _, kind, *_ in connection.execute(f"DESCRIBE {name}").fetchall()]
        columns = [list(column) for column in zip(*table["rows"], strict=True)]
        if columns:
            cast = ", ".join(f"unnest(?::VARCHAR[])::{kind}" for kind in kinds)
            connection.execute(f"INSERT INTO {name} SELECT {cast}", columns)
    for view in frozen["views"]:
        connection.execute(view)
    return frozen


def rows_of(connection: duckdb.DuckDBPyConnection, name: str, columns: list[str]) -> list[list[str | None]]:
    """A table's rows as text, in an order of their own."""
    texts = ", ".join(f'"{column}"::VARCHAR' for column in columns)
    return [list(row) for row in connection.execute(f"SELECT {texts} FROM {name} ORDER BY ALL").fetchall()]


def freeze(version: int) -> None:
    """Write a version's file, from this program's migrations and the rows that tests take for plausible."""
    from embaudit.warehouse.migrate import RECORD_TABLE, known_migrations, known_views

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(RECORD_TABLE)
        for migration in known_migrations()[:version]:
            connection.execute(migration.sql)
            connection.execute(
                "INSERT INTO schema_migration VALUES (?, ?, ?, '2026-11-21 11:00:00+00')",
                [migration.version, migration.name, migration.sha256],
            )
        _fill(connection, Path(folder))
        views = [view for view in known_views() if _binds(connection, view)]
        tables = {}
        for name, statement in connection.execute("SELECT table_name, sql FROM duckdb_tables() ORDER BY 1").fetchall():
            columns = [column for column, *_ in connection.execute(f"DESCRIBE {name}").fetchall()]
            tables[name] = {"statement": statement, "columns": columns, "rows": rows_of(connection, name, columns)}
    empty = [name for name, table in tables.items() if not table["rows"]]
    if empty:
        raise SystemExit(f"version {version}: no rows for {', '.join(empty)}; give them some in OTHER_ROWS")
    frozen = json.dumps({"version": version, "tables": tables, "views": views}, ensure_ascii=False, sort_keys=True)
    (FOLDER / f"v{version:03}.json.gz").write_bytes(gzip.compress(frozen.encode(), 9, mtime=0))


def _fill(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all

    from embaudit.warehouse.tables import TABLES
    from embaudit.warehouse.write import replace_rows

    known = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for audit_id, checkpoint, minutes in (("old1", "c1", 0), ("old2", "c2", 1)):
        replace_rows(connection, "audit", [asdict(audit_record(audit_id, checkpoint, minutes=minutes))])
        replace_rows(connection, "measure_run", [{"audit_id": audit_id, **asdict(run)} for run in measure_runs()])
        replace_rows(connection, "expectation_result", [{"audit_id": audit_id, **asdict(expectation())}])
        for staged in stage_all(folder / audit_id, plausible_rows(checkpoint, f"model/{checkpoint}")):
            if staged.table not in known:
                continue
            own = {column for (column, *_) in connection.execute(f"DESCRIBE {staged.table}").fetchall()}
            columns = [f'"{column}"' for column in plausible_rows()[staged.table][0] if column in own]
            scope = "? AS audit_id, " if TABLES[staged.table].scope == "audit" else ""
            verb = "INSERT" if TABLES[staged.table].is_bulk else "INSERT OR IGNORE"
            connection.execute(
                f"{verb} INTO {staged.table} BY NAME SELECT {scope}{', '.join(columns)} FROM read_parquet(?)",
                [*([audit_id] if scope else []), *staged.paths],
            )
    for statement in OTHER_ROWS:
        if statement.split(" ", 3)[2] in known:
            connection.execute(statement)


def _binds(connection: duckdb.DuckDBPyConnection, view: str) -> bool:
    try:
        connection.execute(view)
    except duckdb.Error:
        return False
    return True


if __name__ == "__main__":
    from embaudit.warehouse.migrate import known_migrations

    FOLDER.mkdir(exist_ok=True)
    for missing in sorted({one.version for one in known_migrations()} - set(VERSIONS)):
        freeze(missing)
        sys.stdout.write(f"froze version {missing}\n")
