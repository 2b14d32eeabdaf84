"""Tables of cases: some rows are tried with every change, the others by CI or before a release (``make test-slow``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def mostly_slow(rows: Iterable[Any], quick: Collection[Any] | int) -> list[Any]:
    """All rows, for ``parametrize``; those that are not quick are marked as slow.

    Args:
        rows: of one parameter, or a tuple for each of several.
        quick: rows, or how many of the first.
    """
    rows = list(rows)
    first = rows[:quick] if isinstance(quick, int) else quick
    assert isinstance(quick, int) or set(quick) <= set(rows), f"no rows: {set(quick) - set(rows)}"
    if isinstance(quick, int):
        return [*first, *map(_slow, rows[quick:])]
    return [row if row in first else _slow(row) for row in rows]


def _slow(row: Any) -> ParameterSet:
    if isinstance(row, ParameterSet):
        return row._replace(marks=[*row.marks, pytest.mark.slow])
    return pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)
