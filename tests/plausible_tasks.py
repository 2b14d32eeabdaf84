"""Rows of what tokens, remedies, placements and temperatures do to tasks and texts."""

from __future__ import annotations

from typing import Any

from declared_rows import Table, row_of, rows_of

# Of the clean task; then of one token of each arm, in half and in all of the documents.
CLEAN = 0.75
ARMS = {"ordinary": {"half": 0.745, "all": 0.748}, "retention": {"half": 0.684, "all": 0.727}}
ARM_TOKENS = {"ordinary": (5, "river"), "retention": (4, "龸")}
DOCUMENTS = 1183
SEVERE_TOKENS = {4: "龸", 5: "糹"}
# clean, poisoned, clean texts that it changes, loss.
REMEDIES: dict[str, tuple[float, float, int, float]] = {
    "strip": (0.75, 0.745, 3, -0.1),
    "unk": (0.749, 0.74, 3, -0.05),
    "whitening": (0.70, 0.69, 1_200, 0.6),
    "none": (0.75, 0.70, 0, 0.5),
}
# Loss of severe tokens, of ordinary ones, copies, place, encodes.
STRATEGIES: dict[str, tuple[float, float, float, float, int]] = {
    "suffix": (0.48, 0.02, 8.0, 1.0, 1),
    "greedy": (0.65, 0.2, 7.5, 0.6, 120),
    "rotation": (0.5, 0.0, 8.0, 0.5, 1),
}
# What no column is null in comes first: tests turn the first row around.
BINS = ((1, 0, 100), (0, None, None))
SCORES = {"score_before": 0.5, "score_after": 0.55, "difference": 0.55 - 0.5}


def impact_rows() -> dict[str, Table]:
    """The worst token by retention comes first, in all of the documents."""
    cells = [(arm, share) for share in ("all", "half") for arm in ("retention", "ordinary")]
    clean = {"arm": "clean", "poisoned": "none", "score": CLEAN, "change": None, "beyond": None}
    sizes = {"corpus": "retrieval", "items": 30, "units": 28, "texts": DOCUMENTS}
    held = {"half": DOCUMENTS // 2, "all": DOCUMENTS}
    touched = {"tokens": 1, "copies": 15.9, "shortened": 100}
    untouched = {"tokens": 0, "held": 0, "copies": 0.0, "shortened": 0}
    return {
        "impact": [
            *(row_of("impact", **_effect(*cell), **sizes, **touched, held=held[cell[1]]) for cell in cells),
            row_of("impact", **clean, **sizes, **untouched),
        ],
        "impact_data_set": [
            row_of(
                "impact_data_set",
                **_effect(*cell),
                **{"data_set": name, "corpus": "sts", "metric": "spearman", "items": 30, "units": 28},
            )
            for name in ("sts12-sts", "biosses-sts")
            for cell in cells
        ],
        "impact_token": [
            row_of("impact_token", **_effect(arm, share), corpus="retrieval", token_id=token_id, token=token)
            for arm, share in cells
            for token_id, token in (ARM_TOKENS[arm],)
        ],
        "impact_query": rows_of(
            "impact_query",
            "arm poisoned query ndcg_10 mrr_10 recall_10",
            *(
                (arm, share, query, gain, gain, float(gain > 0))
                for arm, share, first in (*((*cell, 0.5) for cell in cells), ("clean", "none", 1.0))
                for query, gain in (("what does it do?", first), ("and what does that?", 0.0))
            ),
            corpus="retrieval",
        ),
    }


def _effect(arm: str, share: str) -> dict[str, Any]:
    score = ARMS[arm][share]
    change, beyond = score - CLEAN, None if arm == "ordinary" else score - ARMS["ordinary"][share]
    return {
        **{"arm": arm, "poisoned": share, "score": score, "change": change, "beyond": beyond},
        # The interval of the worst token excludes 0.
        **{"change_low": change - 0.02, "change_high": change + 0.02},
        **{
            f"beyond_{end}": None if beyond is None else beyond + side for end, side in (("low", -0.02), ("high", 0.02))
        },
    }


def mitigation_rows() -> dict[str, Table]:
    """One task, three remedies and none."""
    clean, poisoned, _, _ = REMEDIES["none"]
    return {
        "mitigation": [
            row_of(
                "mitigation",
                **{"corpus": "retrieval", "remedy": remedy, "clean": own[0], "poisoned": own[1], "touched": own[2]},
                **_around("clean_change", None if remedy == "none" else own[0] - clean),
                **_around("poisoned_change", None if remedy == "none" else own[1] - poisoned),
                **{"tokens": 2, "items": 30, "units": 28, "texts": 1_200},
            )
            for remedy, own in REMEDIES.items()
        ],
        "mitigation_loss": [
            row_of(
                "mitigation_loss",
                **_remedy(remedy),
                **{"severe": 40, "tokens": 2, "draws": 16, "copies": 8},
                **{"fitted_on": 1_200 if remedy == "whitening" else None, "vocabulary": 200, "lossy": 4},
                **{"lossy_share": 0.02, "lossy_share_low": 0.005, "lossy_share_high": 0.05},
            )
            for remedy in REMEDIES
        ],
        "mitigation_token": [
            row_of("mitigation_token", **_remedy(remedy), token_id=token_id, token=token)
            for remedy in REMEDIES
            for token_id, token in SEVERE_TOKENS.items()
        ],
    }


def _remedy(remedy: str) -> dict[str, Any]:
    loss = REMEDIES[remedy][3]
    change = None if remedy == "none" else loss - REMEDIES["none"][3]
    return {"remedy": remedy, "loss": loss, **_around("change", change)}


def _around(name: str, value: float | None) -> dict[str, float | None]:
    """A difference from the same texts is known better than a value."""
    low, high = (None, None) if value is None else (value - 0.01, value + 0.01)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def placement_rows() -> dict[str, Table]:
    """Three strategies of two severe tokens and ten ordinary ones."""
    return {
        "placement": [
            row_of(
                "placement",
                **_strategy(strategy, at),
                **{"role": role, "tokens": tokens, "loss_seen": own[at] + 0.02},
                **{"draws": 12, "budget": 8, "encodes": own[4]},
            )
            for strategy, own in STRATEGIES.items()
            for at, (role, tokens) in enumerate((("severe", 2), ("ordinary", 10)))
        ],
        "placement_token": [
            row_of(
                "placement_token",
                **_strategy(strategy, 0),
                **{"token_id": token_id, "token": token, "example": f"a river {token}"},
            )
            for strategy in STRATEGIES
            for token_id, token in SEVERE_TOKENS.items()
        ],
    }


def _strategy(strategy: str, at: int) -> dict[str, Any]:
    """Of severe tokens or of ordinary ones; rotation is what others are compared with, and ordinary ones its unit."""
    own, is_unit = STRATEGIES[strategy], strategy == "rotation"
    return {
        **{"strategy": strategy, "copies": own[2], "place": own[3], "loss": own[at]},
        **(dict.fromkeys(("loss_low", "loss_high")) if is_unit and at else {}),
        **_around("change", None if is_unit else own[at] - STRATEGIES["rotation"][at]),
    }


def tempscale_rows() -> dict[str, Table]:
    """One task, two bins, a yes and a no."""
    task = {"corpus": "retrieval", "task": "retrieval", "items": 30, "units": 20, "max_tokens": 256}
    temperatures = [
        (arm, tau, split) for arm, tau in (("temperature", 0.8), ("none", 1.0)) for split in ("report", "choose")
    ]
    others = [(arm, 1.0, "report") for arm in ("chunk_average", "whitening", "centring")]
    return {
        "tempscale": [
            row_of(
                "tempscale",
                **{"arm": arm, "tau": tau, "split": split, "bin": number, "bin_low": low, "bin_high": high, **task},
                **{"score": 0.5 if arm == "none" else 0.55, "difference": None if arm == "none" else 0.55 - 0.5},
                **({"low": 0.01, "high": 0.09} if arm != "none" and split == "report" else {"low": None, "high": None}),
            )
            for number, low, high in BINS
            for arm, tau, split in (*temperatures, *others)
        ],
        "tempscale_choice": rows_of(
            "tempscale_choice",
            "bin bin_low bin_high recommendation low reason",
            (*BINS[0], "no", -0.01, "the interval of the difference does not lie above 0"),
            (*BINS[1], "yes", 0.01, "the interval of the difference lies above 0"),
            **{"tau": 0.8, "high": 0.09, **SCORES, **task},
        ),
        "tempscale_search": rows_of(
            "tempscale_search",
            "part recommendation beyond_low",
            ("layer", "yes", 0.01),
            ("head", "no", -0.01),
            **{"tau": 0.8, "taus": "0.8,0.9", "trials": 9, "score_before": 0.5, "score_single": 0.55},
            **{"score_after": 0.6, "difference": 0.6 - 0.5, "low": 0.02, "high": 0.2},
            **{"beyond": 0.6 - 0.55, "beyond_high": 0.15, **task},
        ),
    }
