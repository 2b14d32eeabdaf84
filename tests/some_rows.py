"""Tables of cases: some rows are tried with every change, the others before a release (``make test-slow``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(names: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """All names, for ``parametrize``; those that are not quick are marked as slow."""
    names = list(names)
    assert set(quick) <= set(names), f"no rows: {set(quick) - set(names)}"
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]
