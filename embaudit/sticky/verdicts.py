"""Effects and thresholds put together: the rows of ``sticky_validation`` and ``sticky_summary``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from embaudit.sticky.validation import Effect, Threshold, validation_value


def validation_rows(
    token_ids: np.ndarray,
    is_control: np.ndarray,
    effects: Sequence[Effect],
    thresholds: Sequence[Threshold],
    points: int,
    basis: str,
) -> list[dict[str, Any]]:
    """One row a token and protocol; controls have no verdict."""
    return [
        {
            "token_id": int(token_id),
            "protocol": threshold.protocol,
            "role": "control" if control else "candidate",
            "points": points,
            **asdict(effect),
            "value": validation_value(threshold.protocol, effect),
            "threshold": threshold.value,
            "verdict": None if control else threshold.verdict(effect),
            "basis": basis,
        }
        for token_id, control, effect in zip(token_ids, is_control, effects, strict=True)
        for threshold in thresholds
    ]


def summary_rows(
    verdicts: Sequence[Mapping[str, Any]],
    thresholds: Sequence[Threshold],
    shared: Mapping[str, Any],
    reliability: Mapping[str, float | None],
) -> list[dict[str, Any]]:
    """One row a protocol.

    Args:
        shared: the columns that do not depend on the protocol.
        reliability: split-half correlation of the scan, by protocol.
    """
    rows = []
    for threshold in thresholds:
        own = [row for row in verdicts if row["protocol"] == threshold.protocol]
        rows.append(
            {
                **shared,
                "protocol": threshold.protocol,
                "rungs": json.dumps(shared["rungs"]),
                "reliability": reliability[threshold.protocol],
                "candidates": threshold.candidates,
                "control_median": float(np.median([row["value"] for row in own if row["role"] == "control"])),
                "threshold": threshold.value,
                "sticky": sum(row["verdict"] == "sticky" for row in own),
            }
        )
    return rows
