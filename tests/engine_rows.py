"""Rows that the tests of each engine put into it, two of which are deleted; and whether a store gives the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from embaudit.stores.store import Store

ROWS, D = 300, 6
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
TEXTS, TITLES = ([f"{what} {row}" for row in range(ROWS)] for what in ("text", "title"))
IDS = [f"row-{row:03}" for row in range(ROWS)]
GONE = (3, 250)
DELETED = [IDS[row] for row in GONE]
KEPT = [row for row in range(ROWS) if row not in GONE]


def check_rows(store: Store, ids: Sequence[object] = (), title: str = "metadata.title", *, atol: float = 1e-6) -> None:
    """Every row that was not deleted, in order, with its text, id and title."""
    vectors, texts, names, titles = [], [], [], []
    for batch in store.batches([title]):
        ((_, own),) = batch.vectors.values()
        vectors.append(own)
        texts += batch.texts or []
        names += batch.ids or []
        titles += batch.fields[title]
    np.testing.assert_allclose(np.concatenate(vectors), VECTORS[KEPT], rtol=0, atol=atol)
    assert names == list(ids or [IDS[row] for row in KEPT])
    assert texts == [TEXTS[row] for row in KEPT]
    assert titles == [TITLES[row] for row in KEPT]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its content and time."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
