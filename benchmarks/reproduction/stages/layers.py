"""λ, contraction, r, C, spread, σ_a and cosine by layer: the first 100 lines, and 1 000 at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.reproduction import published
from benchmarks.reproduction.bench import Bench, rows_of
from benchmarks.reproduction.compared import Comparison, rounded_up
from benchmarks.reproduction.stages.socm import SOURCES
from embaudit.measures import MEASURES

NAMES = {
    "lambda_head_mean": "λ, mean over heads",
    "lambda_head_averaged_attention": "λ of the averaged attention",
    "contraction": "S(Z)/S(H), measured",
    "r": "r",
    "c": "C",
    "normalised_spread": "S(X)/‖μ(X)‖²",
    "sigma_a": "σ_a, mean over heads",
    "within_text_cosine": "mean cosine of a text's tokens",
}
HOLDS = ("holds_head_mean", "holds_head_averaged_attention", "holds_contraction")


def measure(bench: Bench) -> dict[str, Any]:
    return {"first_100": _by_layer(bench, 100, "first"), "drawn": _by_layer(bench, 1_000, "random")}


def _by_layer(bench: Bench, texts: int, draw: str) -> list[dict[str, Any]]:
    settings = {"corpora": ("wikipedia",), "texts": bench.most(texts), "draw": draw}
    run = bench.run({"wikipedia": str(bench.file(SOURCES["wikipedia"]))}, layers=settings)
    rows = rows_of(MEASURES["layers"].parts().measure(run), "layer_stat")
    kept = ["layer", "texts", *HOLDS, *(f"{name}{end}" for name in NAMES for end in ("", "_low", "_high"))]
    return [{name: row[name] for name in kept} for row in sorted(rows, key=lambda row: row["layer"])]


def compare(found: dict[str, Any]) -> Iterator[Comparison]:
    for name, what in NAMES.items():
        known, ours = published.LAYERS[name], [row[name] for row in found["first_100"]]
        farthest = max(abs(value - one) / one for one, value in zip(known, ours, strict=True))
        yield Comparison(
            f"{what}, by layer; first 100 lines",
            f"{_list(known)} [I]",
            _list(ours),
            f"{float(rounded_up(farthest)) * 100:.2g} % of each" if farthest else "exactly",
        )
    for name, what in NAMES.items():
        ends = [(row[f"{name}_low"], row[f"{name}_high"]) for row in found["drawn"]]
        half = [(high - low) / 2 for low, high in ends if low is not None]
        yield Comparison(
            f"{what}; {found['drawn'][0]['texts']:,} at random",
            "–",
            f"{_list([row[name] for row in found['drawn']])} (± {max(half):.3f} at most)" if half else "–",
            "nothing to compare",
        )


def _list(values: Any) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def said(found: dict[str, Any]) -> str:
    holds = {name: [row[name] for row in found["drawn"]] for name in HOLDS}
    mean, averaged = holds["holds_head_mean"], holds["holds_head_averaged_attention"]
    return (
        "The paper's figures are curves of other checkpoints. Its bound S(X)/‖μ(X)‖² ≤ C(1 + √λ)²r holds with the "
        f"measured contraction for {min(holds['holds_contraction']):.0%} of the texts, as it must; with λ of the mean "
        f"head for {min(mean):.0%} to {max(mean):.0%} by layer, with λ of the averaged attention for "
        f"{min(averaged):.0%} to {max(averaged):.0%}."
    )
