"""Chooses the tokens to insert into texts: the worst found by each protocol, and ordinary ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from embaudit.declared.finding import Rows
from embaudit.measures.sticky.plan import choose_controls

ArmName = Literal["ordinary", "retention", "definition", "reference", "given"]
ORDINARY: ArmName = "ordinary"
Row = Mapping[str, Any]


def found_arms(rows: Rows, tokens_per_arm: int) -> dict[ArmName, list[int]]:
    """The worst reachable candidates of each protocol of an audit, worst first.

    ``reference`` is included if the audit ran the published protocol, too.
    """
    reachable = {row["token_id"] for row in rows("token") if row["is_reachable"]}
    candidates = [row for row in rows("sticky_validation") if row["role"] == "candidate"]
    # Only a protocol's own candidates have a q-value.
    own = {
        protocol: [row for row in candidates if row["protocol"] == protocol and row["q_value"] is not None]
        for protocol in ("retention", "definition")
    }
    published = [row for row in rows("sticky_reference") if row["value"] is not None]
    worst_first: dict[ArmName, list[int]] = {
        "retention": _worst(own["retention"], lambda row: row["loss"]),
        "definition": _worst(own["definition"], lambda row: row["pull"]),
        "reference": _worst(published, lambda row: row["value"]),
    }
    arms = {
        arm: [token for token in tokens if token in reachable][:tokens_per_arm] for arm, tokens in worst_first.items()
    }
    return {arm: tokens for arm, tokens in arms.items() if tokens}


def with_ordinary(
    arms: Mapping[ArmName, list[int]], vocabulary: Sequence[Row], tokens_per_arm: int, seed: int
) -> dict[ArmName, list[int]]:
    """The arms, preceded by an arm of ordinary tokens, none of which is in another arm.

    Raises:
        MeasureError: if the vocabulary has no ordinary token.
    """
    taken = np.array(sorted({token for tokens in arms.values() for token in tokens}), dtype=np.int64)
    return {ORDINARY: choose_controls(vocabulary, taken, tokens_per_arm, seed).tolist(), **arms}


def _worst(rows: Sequence[Row], badness: Callable[[Row], float]) -> list[int]:
    return [row["token_id"] for row in sorted(rows, key=lambda row: (-badness(row), row["token_id"]))]
