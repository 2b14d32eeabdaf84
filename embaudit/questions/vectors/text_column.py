"""Which column of texts was embedded, where several may have been, or none is called so: the function tells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.encode import encode_rows
from embaudit.questions.vectors.forms import form_of_index
from embaudit.stores.store import RowBatch, Store
from embaudit.words.errors import EmbauditError

# Rows that each column is tried on, and columns that are; of a function that may cost money, fewer rows.
ROWS, COLUMNS, PAID_ROWS = 24, 8, 6
# A column is the one if so many rows, or all there are, are the function's by it, and more than by any other.
FEWEST = 2


def text_column(store: Store, function: EmbeddingFunction, names: Sequence[str] = ()) -> str | None:
    """The column by whose texts most of a few rows are the function's; None if there is none.

    Args:
        store: whose text column is unknown.
        names: of the columns that may be meant; by default, all that hold texts.
    """
    if not names and not store.fields:
        return None
    asked = list(names or store.fields)
    batch = next(iter(store.batches(asked)), None)
    if batch is None or not batch.vectors:
        return None
    texts = _texts(batch, asked)[:COLUMNS]
    places, vectors = max(batch.vectors.values(), key=lambda own: len(own[0]))
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    for name in texts:
        own = [place for place, row in enumerate(places) if isinstance(batch.fields[name][int(row)], str)]
        most = ROWS if function.checkpoint is not None else PAID_ROWS
        own = [own[int(one)] for one in np.linspace(0, len(own) - 1, min(most, len(own)))]
        tried = tuple(str(batch.fields[name][int(places[place])]) for place in own)
        found[name] = _own(function, tried, vectors[own]), tried
    best = max(found, key=lambda name: found[name][0], default=None)
    if best is None or found[best][0] < min(FEWEST, len(found[best][1])) or not found[best][0]:
        return None
    count, tried = found[best]
    alike = [name for name, (own, others) in found.items() if name != best and own == count and others != tried]
    return None if alike else best


def _texts(batch: RowBatch, names: Sequence[str]) -> list[str]:
    """Those that hold texts of several words in most rows that have any, the longest first."""
    length = {}
    for name in names:
        own = [one for one in batch.fields.get(name, ()) if isinstance(one, str) and one.strip()]
        if own and sum(" " in one.strip() for one in own) * 2 >= len(own):
            length[name] = float(np.mean([len(one) for one in own]))
    return sorted(length, key=lambda name: -length[name])


def _own(function: EmbeddingFunction, texts: Sequence[str], stored: np.ndarray) -> int:
    """How many of these rows have the function's vector."""
    if not texts:
        return 0
    try:
        ours = encode_rows(function, texts)
    except EmbauditError:
        return 0
    form = form_of_index(ours, stored)
    if form is None:
        return 0
    distances = form.distance(ours, stored)
    return int((distances <= form.tolerance(distances)).sum())
