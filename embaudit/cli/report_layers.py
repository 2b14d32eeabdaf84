"""The layers of an audit on the page: one row a layer, and a line on what Theorem 1 makes of them."""

from __future__ import annotations

from typing import Any

from rich.table import Table

COLUMNS = {
    "λ (head mean)": "lambda_head_mean",
    "λ (averaged A)": "lambda_head_averaged_attention",
    "S(Z)/S(H)": "contraction",
    "r": "r",
    "C": "c",
    "S(X)/‖μ‖²": "normalised_spread",
    "cosine": "within_text_cosine",
    "σ_a": "sigma_a",
}
# A deep model is shown by layers at even steps; all of them are a query away.
LAYERS_SHOWN = 12


def print_layers(console: Any, rows: list[dict[str, Any]]) -> None:
    """Print ``layer_stat`` rows, corpus by corpus."""
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        layers = [row for row in rows if row["corpus"] == corpus]
        first = layers[0]
        left_out = f", {first['undefined']} of one token left out" if first["undefined"] else ""
        table = Table(
            title=f"Concentration by layer, {corpus}: {first['texts']:,} texts of {first['tokens_mean']:.0f} tokens"
            f"{left_out}; {first['norm_placement']}-norm",
            title_justify="left",
        )
        table.add_column("layer", no_wrap=True)
        for name in COLUMNS:
            table.add_column(name, no_wrap=True, justify="right")
        for row in _evenly(layers):
            values = (row[column] for column in COLUMNS.values())
            table.add_row(str(row["layer"]), *("" if value is None else f"{value:.3f}" for value in values))
        console.print(table)
        if len(layers) > LAYERS_SHOWN:
            console.print(f"{LAYERS_SHOWN} of {len(layers)} layers; all: embaudit query layers", highlight=False)


def _evenly(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(layers) <= LAYERS_SHOWN:
        return layers
    step = (len(layers) - 1) / (LAYERS_SHOWN - 1)
    return [layers[round(place * step)] for place in range(LAYERS_SHOWN)]
