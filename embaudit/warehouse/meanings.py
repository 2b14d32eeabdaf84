"""What the tables, views and columns of a warehouse mean: each is said once.

Row classes say it of published tables, and the first comment of its file of a view. ``meanings.toml`` has the rest:
tables that migrations make, and columns that a view computes. A view's other columns mean what they mean where it reads
them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from itertools import takewhile

from embaudit.warehouse.tables import TABLES

READS = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")


@cache
def written() -> str:
    """The file with what no declaration says."""
    return files("embaudit_sql").joinpath("meanings.toml").read_text(encoding="utf-8")


def meaning_of_view(sql: str) -> str:
    """The comment before its statement."""
    lines = takewhile(lambda line: line.startswith("--"), sql.splitlines())
    return " ".join(line.removeprefix("--").strip() for line in lines)


def meanings_of_tables() -> dict[str, str]:
    """By table, declared or made by a migration."""
    return {name: table.meaning for name, table in TABLES.items()} | tomllib.loads(written())["tables"]


def meanings_of_columns(views: Mapping[str, str], stored: Mapping[str, Collection[str]]) -> dict[str, dict[str, str]]:
    """By table or view and column, of those that a warehouse has.

    Args:
        views: their statements by name, each after those that it reads.
        stored: the columns of every table and view.
    """
    said = tomllib.loads(written())["columns"]
    found: dict[str, dict[str, str]] = {}
    for name in meanings_of_tables():
        declared = {column.name: column.comment for column in TABLES[name].columns.values()} if name in TABLES else {}
        # It is the same id in every table.
        means = {"audit_id": said["audit"]["audit_id"], **declared, **said.get(name, {})}
        found[name] = {column: means[column] for column in stored.get(name, ()) if column in means}
    for name, sql in views.items():
        means = said.get(name, {})
        for other in READS.findall(sql):
            means = found.get(other, {}) | means
        found[name] = {column: means[column] for column in stored.get(name, ()) if column in means}
    return found
