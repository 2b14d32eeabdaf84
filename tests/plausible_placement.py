"""Rows of the placement tables: three strategies of two severe tokens and ten ordinary ones."""

from __future__ import annotations

from typing import Any

# strategy: loss of severe tokens, of ordinary ones, copies, place, encodes.
STRATEGIES: dict[str, tuple[float, float, float, float, int]] = {
    "suffix": (0.48, 0.02, 8.0, 1.0, 1),
    "greedy": (0.65, 0.2, 7.5, 0.6, 120),
    "rotation": (0.5, 0.0, 8.0, 0.5, 1),
}
TOKENS = {4: "龸", 5: "糹"}


def placement_rows() -> dict[str, list[dict[str, Any]]]:
    """Both tables."""
    unit = STRATEGIES["rotation"]
    return {
        "placement": [
            {
                **{"strategy": strategy, "role": role, **_loss(own[at], own[at] - unit[at], strategy, role)},
                **{"copies": own[2], "place": own[3], "loss_seen": own[at] + 0.02},
                **{"tokens": tokens, "draws": 12, "budget": 8, "encodes": own[4]},
            }
            for strategy, own in STRATEGIES.items()
            for at, (role, tokens) in enumerate((("severe", 2), ("ordinary", 10)))
        ],
        "placement_token": [
            {
                **{"strategy": strategy, **_loss(own[0], own[0] - unit[0], strategy, "severe")},
                **{"copies": own[2], "place": own[3], "token_id": token_id, "token": token},
                "example": f"a river {token}",
            }
            for strategy, own in STRATEGIES.items()
            for token_id, token in TOKENS.items()
        ],
    }


def _loss(loss: float, change: float, strategy: str, role: str) -> dict[str, float | None]:
    is_unit = strategy == "rotation"
    ends = (None, None) if is_unit and role == "ordinary" else (loss - 0.05, loss + 0.05)
    changes = (None, None, None) if is_unit else (change, change - 0.01, change + 0.01)
    return {
        **dict(zip(("loss", "loss_low", "loss_high"), (loss, *ends), strict=True)),
        **dict(zip(("change", "change_low", "change_high"), changes, strict=True)),
    }
