"""A warehouse as the first version of the program left it, for tests that bring one up to today's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import duckdb
import pytest
from plausible import audit_record, plausible_rows, stage_all

from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.migrate import known_migrations, known_views, migrate
from embaudit.warehouse.tables import TABLES

# What 001 has no place for.
NEW_TABLES = {name for name in TABLES if f"CREATE TABLE {name} (" not in known_migrations()[0].sql}
OLD_VIEWS = ("latest_audit", "sticky_token", "leaderboard")


def first_version_warehouse(path: Path, staging: Path) -> Path:
    """Migration 001 alone, and the rows of two audits, in as far as there was a place for them."""
    path.parent.mkdir(exist_ok=True)
    with duckdb.connect(str(path)) as connection:
        with first_program():
            migrate(connection, path)
        for audit_id, checkpoint, minutes in (("old1", "c1", 0), ("old2", "c2", 1)):
            record = asdict(audit_record(audit_id, checkpoint, minutes=minutes))
            values = [json.dumps(value) if isinstance(value, dict) else value for value in record.values()]
            places = ", ".join("?" for _ in values)
            connection.execute(f"INSERT INTO audit ({', '.join(record)}) VALUES ({places})", values)
            for staged in stage_all(staging / audit_id, plausible_rows(checkpoint, f"model/{checkpoint}")):
                if staged.table in NEW_TABLES:
                    continue
                own = {column for (column, *_) in connection.execute(f"DESCRIBE {staged.table}").fetchall()}
                columns = [column for column in plausible_rows()[staged.table][0] if column in own]
                scope = "? AS audit_id, " if TABLES[staged.table].scope == "audit" else ""
                verb = "INSERT" if TABLES[staged.table].is_bulk else "INSERT OR IGNORE"
                connection.execute(
                    f"{verb} INTO {staged.table} BY NAME SELECT {scope}{', '.join(columns)} FROM read_parquet(?)",
                    [*([audit_id] if scope else []), *staged.paths],
                )
    return path


@contextmanager
def first_program() -> Iterator[None]:
    """What the program knew before migration 002."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "known_migrations", lambda: known_migrations()[:1])
        views = [sql for sql in known_views() if view_name(sql) in OLD_VIEWS]
        patch.setattr(migrations, "known_views", lambda: views)
        yield


def view_name(sql: str) -> str:
    found = re.search(r"VIEW (\w+)", sql)
    assert found
    return found[1]
