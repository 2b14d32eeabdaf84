"""What the steps of the sticky-token measure hand to each other: staged files and their columns.

Files with similarities (``scan``, ``validation``) stay between the steps; ``sticky_*`` are published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from embaudit.measures.sticky.pairs import SentencePair
from embaudit.warehouse.stage import opened, read_rows
from embaudit_tasks.results import Staged


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


def read_pairs(pairs: Staged, purpose: str) -> list[SentencePair]:
    return [
        SentencePair(row["first"], row["second"], row["similarity"])
        for row in read_rows([pairs.path])
        if row["purpose"] == purpose
    ]


def read_similarity(similarity: Staged) -> dict[str, float]:
    """u of the vocabulary in each of its readings."""
    return read_rows([similarity.path])[0]


def read_scan(rung: Sequence[Staged]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """(token ids ascending, draws, similarities (T, draws, anchors)) of one rung's files."""
    frames = [_read_frame(part) for part in rung]
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


def join_rungs(rungs: Sequence[Sequence[Staged]]) -> tuple[np.ndarray, list[int], np.ndarray]:
    """As ``read_scan``, of the tokens in the last rung, with their draws of all rungs."""
    ids, draws, after = read_scan(rungs[0])
    for rung in rungs[1:]:
        later_ids, later_draws, later = read_scan(rung)
        held = np.searchsorted(ids, later_ids)
        ids, draws, after = later_ids, draws + later_draws, np.concatenate([after[held], later], axis=1)
    return ids, draws, after


def read_validation(parts: Sequence[Staged]) -> tuple[np.ndarray, np.ndarray]:
    """(token ids ascending, similarities (T, P))."""
    frames = [_read_frame(part) for part in parts]
    ids = np.concatenate([frame["token_id"].to_numpy() for frame in frames]).astype(np.int64)
    after = np.concatenate([frame.drop(columns="token_id").to_numpy() for frame in frames])
    order = np.argsort(ids, kind="stable")
    return ids[order], after[order]


def _read_frame(part: Staged) -> pd.DataFrame:
    with opened(part.path) as source:
        return pq.read_table(source, partitioning=None).to_pandas()
