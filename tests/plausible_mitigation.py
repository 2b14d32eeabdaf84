"""Rows of the mitigation tables: one task, three remedies and none."""

from __future__ import annotations

from typing import Any

# remedy: clean, poisoned, clean texts that it changes, loss.
REMEDIES: dict[str, tuple[float, float, int, float]] = {
    "strip": (0.75, 0.745, 3, -0.1),
    "unk": (0.749, 0.74, 3, -0.05),
    "whitening": (0.70, 0.69, 1_200, 0.6),
    "none": (0.75, 0.70, 0, 0.5),
}
TOKENS = {4: "龸", 5: "糹"}


def mitigation_rows() -> dict[str, list[dict[str, Any]]]:
    """The three tables."""
    clean, poisoned, _, loss = REMEDIES["none"]
    return {
        "mitigation": [
            {
                **{"corpus": "retrieval", "corpus_id": "w1", "metric": "ndcg_10", "remedy": remedy},
                **{"clean": own[0], **_change("clean_change", own[0] - clean, remedy)},
                **{"poisoned": own[1], **_change("poisoned_change", own[1] - poisoned, remedy)},
                **{"tokens": 2, "items": 30, "units": 28, "texts": 1_200, "touched": own[2]},
            }
            for remedy, own in REMEDIES.items()
        ],
        "mitigation_loss": [
            {
                **{"remedy": remedy, **_loss(own[3], own[3] - loss, remedy), "severe": 40, "tokens": 2},
                **{"draws": 16, "copies": 8, "fitted_on": 1_200 if remedy == "whitening" else None},
                **{"vocabulary": 200, "lossy": 4, "lossy_share": 0.02},
                **{"lossy_share_low": 0.005, "lossy_share_high": 0.05},
            }
            for remedy, own in REMEDIES.items()
        ],
        "mitigation_token": [
            {"remedy": remedy, "token_id": token_id, "token": token, **_loss(own[3], own[3] - loss, remedy)}
            for remedy, own in REMEDIES.items()
            for token_id, token in TOKENS.items()
        ],
    }


def _change(name: str, value: float, remedy: str) -> dict[str, float | None]:
    if remedy == "none":
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: value, f"{name}_low": value - 0.01, f"{name}_high": value + 0.01}


def _loss(loss: float, change: float, remedy: str) -> dict[str, float | None]:
    return {"loss": loss, "loss_low": loss - 0.05, "loss_high": loss + 0.05, **_change("change", change, remedy)}
