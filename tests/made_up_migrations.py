"""Two migrations that no program ever had: what they are applied to is a warehouse of an older embaudit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from embaudit.warehouse import migrate as migrations
from embaudit.warehouse.migrate import Migration, known_migrations, known_views

NEWEST = known_migrations()[-1].version
FIRST = Migration(
    NEWEST + 1,
    "made_up_column",
    "-- A column for a table that holds rows.\nALTER TABLE IF EXISTS sticky_summary ADD COLUMN made_up DOUBLE;",
)
SECOND = Migration(
    NEWEST + 2,
    "made_up_table",
    "CREATE TABLE made_up (\n    a INTEGER NOT NULL,\n    b VARCHAR NOT NULL,\n    PRIMARY KEY (a, b)\n);\n"
    "ALTER TABLE IF EXISTS sticky_validation ADD COLUMN made_up BOOLEAN;",
)
BROKEN = Migration(SECOND.version, SECOND.name, f"{SECOND.sql}\nSELECT * FROM no_such_table;")
# The first's text stays as it is while its table gets a column.
VIEWS = {
    "made_up_summary": "CREATE OR REPLACE VIEW made_up_summary AS SELECT * FROM sticky_summary;",
    "made_up_rows": "CREATE OR REPLACE VIEW made_up_rows AS SELECT a FROM made_up;",
}


@contextmanager
def a_program_with(*made_up: Migration, views: tuple[str, ...] = ()) -> Iterator[None]:
    """What a program knows that has these migrations and views besides today's."""
    known = [*known_migrations(), *made_up]
    seen = {**known_views(), **{name: VIEWS[name] for name in views}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "known_migrations", lambda: known)
        patch.setattr(migrations, "known_views", lambda: seen)
        yield


def the_next_program() -> AbstractContextManager[None]:
    return a_program_with(FIRST, SECOND, views=tuple(VIEWS))
