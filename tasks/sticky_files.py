"""What the steps of the sticky-token measure hand to each other: staged files and their columns.

Files with similarities (``scan``, ``validation``) stay between the steps; ``sticky_*`` are published.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embaudit_tasks.results import Staged

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from embaudit.measures.sticky.pairs import SentencePair

MEASURE = "sticky"


def stage(
    table: str,
    rows: Iterable[Any],
    schema: Mapping[str, str] | None,
    key: str,
    staging: str,
    *,
    started: float | None = None,
    encodes: int = 0,
    detail: dict[str, Any] | None = None,
) -> Staged:
    """Stage rows of this measure; ``started`` is the ``time.perf_counter`` of the work that made them."""
    from embaudit.warehouse.stage import staged_path, write_rows

    path = staged_path(staging, MEASURE, key, table)
    return Staged(
        table=table,
        path=str(path),
        rows=write_rows(path, rows, schema),
        seconds=0.0 if started is None else time.perf_counter() - started,
        encodes=encodes,
        detail=detail or {},
    )


def pair_rows(purpose: str, pairs: Iterable[SentencePair]) -> list[dict[str, Any]]:
    """Rows of ``sticky_pair``."""
    return [
        {
            "purpose": purpose,
            "position": position,
            "first": pair.first,
            "second": pair.second,
            "similarity": pair.similarity,
        }
        for position, pair in enumerate(pairs)
    ]


def read_pairs(path: str, purpose: str) -> list[SentencePair]:
    from embaudit.measures.sticky.pairs import SentencePair
    from embaudit.warehouse.stage import read_rows

    return [
        SentencePair(row["first"], row["second"], row["similarity"])
        for row in read_rows([path])
        if row["purpose"] == purpose
    ]


def read_similarity(path: str) -> dict[str, float]:
    from embaudit.warehouse.stage import read_rows

    return read_rows([path])[0]


def read_scan(paths: Sequence[str]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """(token ids ascending, draws, similarities (T, draws, anchors)) of one rung's files."""
    import numpy as np

    frames = [_read_frame(path) for path in paths]
    draws = sorted(int(draw) for draw in frames[0]["draw"].unique())
    anchors = [name for name in frames[0].columns if name.startswith("anchor_")]
    ids, parts = [], []
    for frame in frames:
        by_draw = frame.sort_values(["token_id", "draw"], kind="stable")
        ids.append(by_draw["token_id"].to_numpy()[:: len(draws)])
        parts.append(by_draw[anchors].to_numpy().reshape(-1, len(draws), len(anchors)))
    token_ids = np.concatenate(ids).astype(np.int64)
    order = np.argsort(token_ids, kind="stable")
    return token_ids[order], draws, np.concatenate(parts)[order]


def join_rungs(rungs: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """As ``read_scan``, of the tokens in the last rung, with their draws of all rungs."""
    import numpy as np

    ids, draws, after = read_scan(rungs[0])
    for paths in rungs[1:]:
        later_ids, later_draws, later = read_scan(paths)
        held = np.searchsorted(ids, later_ids)
        ids, draws, after = later_ids, draws + later_draws, np.concatenate([after[held], later], axis=1)
    return ids, draws, after


def read_validation(paths: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(token ids ascending, similarities (T, P))."""
    import numpy as np

    frames = [_read_frame(path) for path in paths]
    ids = np.concatenate([frame["token_id"].to_numpy() for frame in frames]).astype(np.int64)
    after = np.concatenate([frame.drop(columns="token_id").to_numpy() for frame in frames])
    order = np.argsort(ids, kind="stable")
    return ids[order], after[order]


def _read_frame(path: str) -> pd.DataFrame:
    import pyarrow.parquet as pq

    from embaudit.warehouse.stage import opened

    with opened(path) as source:
        return pq.read_table(source, partitioning=None).to_pandas()
