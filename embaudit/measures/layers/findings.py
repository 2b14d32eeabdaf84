"""What the tables of layers show: a finding, and the section of a page.

How alike the token states are that pooling averages, and where in the network tokens are pulled together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Rows, Rule, interval
from embaudit.measures.layers import LayerSettings

TOKENS_ALIKE = Rule(
    "tokens_alike",
    "`pooled_stat.within_text_cosine`",
    look=0.95,
    reason="for unit vectors, the mean then keeps {look} of their squared length: it says little that a single token "
    "does not",
)


def findings(rows: Rows, settings: LayerSettings) -> Iterator[Finding]:
    """One, from the audit's tables; none if no text has two tokens."""
    pooled = [row for row in rows("pooled_stat") if row["within_text_cosine"] is not None]
    if not pooled:
        return
    worst = max(pooled, key=lambda row: (row["within_text_cosine"], row["corpus"]))
    value = worst["within_text_cosine"]
    low, high = worst["within_text_cosine_low"], worst["within_text_cosine_high"]
    yield TOKENS_ALIKE.finding(
        TOKENS_ALIKE.level(value),
        f"The token vectors that are pooled into a text's embedding have a mean cosine of {value:.2f}"
        f"{interval(low, high)} with each other ({worst['corpus']}"
        f"{_after_first(rows('layer_stat'), worst['corpus'])}).",
        "All tokens of a text end up nearly alike: its embedding says little more than any one of them.",
        "embaudit query layers",
        *(value, low, high),
    )


def _after_first(layers: list[dict[str, Any]], corpus: str) -> str:
    """The same after the first layer, for comparison; empty if undefined there."""
    own = [row["within_text_cosine"] for row in layers if row["corpus"] == corpus and row["layer"] == 0]
    return "".join(f"; {value:.2f} after the first layer" for value in own if value is not None)


FACTS = {
    "layers": "SELECT * FROM layer_stat WHERE audit_id = ? ORDER BY corpus DESC, layer",
    "pooled": "SELECT * FROM pooled_stat WHERE audit_id = ? ORDER BY corpus DESC",
    # Empty if the backbone's audit is in another warehouse.
    "backbone_layers": (
        "SELECT layer_stat.* FROM audit_backbone AS link "
        "JOIN layer_stat ON layer_stat.audit_id = link.backbone_audit_id "
        "WHERE link.audit_id = ? ORDER BY backbone_audit_id, corpus DESC, layer"
    ),
}

# Without intervals, which the chart shows.
COLUMNS = {
    "layer": Column("layer", "d"),
    "lambda_head_mean": Column("λ (head mean)", ".3f", ""),
    "lambda_head_averaged_attention": Column("λ (averaged A)", ".3f", ""),
    "contraction": Column("S(Z)/S(H)", ".3f", ""),
    "r": Column("r", ".3f", ""),
    "c": Column("C", ".3f", ""),
    "normalised_spread": Column("S(X)/‖μ‖²", ".3f", ""),
    "within_text_cosine": Column("cosine", ".3f", ""),
    "sigma_a": Column("σ_a", ".3f", ""),
}
LAYERS_SHOWN = 12
# One panel each.
CURVES = {
    "within_text_cosine": "cosine within a text",
    "normalised_spread": "spread S(X)/‖μ‖²",
    "contraction": "contraction S(Z)/S(H)",
    "lambda_head_mean": "λ, mean over heads",
    "r": "r = S(H)/‖μ(Y)‖²",
    "sigma_a": "σ_a of the attention",
}
BESIDE = 3


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    by_corpus: dict[str, list[dict[str, Any]]] = {}
    for row in facts["layers"]:
        by_corpus.setdefault(row["corpus"], []).append(row)
    pooled = {row["corpus"]: row for row in facts["pooled"]}
    return Section("Layers", list(_parts(by_corpus, pooled, facts["backbone_layers"]))) if by_corpus else None


def _parts(
    by_corpus: dict[str, list[dict[str, Any]]], pooled: dict[str, dict[str, Any]], backbone: list[dict[str, Any]]
) -> Iterator[Part]:
    yield curve_chart(by_corpus, backbone)
    for corpus, rows in by_corpus.items():
        first = rows[0]
        left_out = f", {first['undefined']} of at most one token left out" if first["undefined"] else ""
        yield Table.of(
            COLUMNS,
            [*rows, *_pooled_row(pooled.get(corpus))],
            f"Concentration by layer, {corpus}: {first['texts']:,} texts of {first['tokens_mean']:.0f} tokens"
            f"{left_out}; {first['norm_placement']}-norm",
            brief=LAYERS_SHOWN,
            is_even=True,
            more="embaudit query layers",
        )


def _pooled_row(pooled: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The row of the pooled states, if they differ from the last layer's output."""
    return [{**dict.fromkeys(COLUMNS), **pooled, "layer": "pooled"}] if pooled and pooled["has_final_norm"] else []


def curve_chart(by_corpus: dict[str, list[dict[str, Any]]], backbone: list[dict[str, Any]]) -> Chart:
    """A panel per figure; figures that are null in all layers are left out."""
    rows = [row for of_corpus in by_corpus.values() for row in of_corpus]
    panels = [
        _panel(name, title, rows, [row for row in backbone if row["corpus"] in by_corpus])
        for name, title in CURVES.items()
        if any(row[name] is not None for row in rows)
    ]
    return Chart(
        "Layer by layer",
        "From left to right through the network, one line per corpus, with 95 % intervals. The cosine within a text "
        "is how alike its tokens are, the spread how far they are from their mean: where the first rises and the "
        "second falls, tokens are pulled together, and mean pooling loses little. Contraction and λ are the share of "
        "the spread that a layer's attention keeps (below 1: it contracts); r is the spread that bypasses attention "
        "through the residual connection." + (" Dashed: the backbone." if backbone else ""),
        [panels[start : start + BESIDE] for start in range(0, len(panels), BESIDE)],
        more="embaudit query layers",
    )


def _panel(name: str, title: str, rows: list[dict[str, Any]], backbone: list[dict[str, Any]]) -> Panel:
    bands = [
        Mark(row["layer"], row[f"{name}_low"], y2=row[f"{name}_high"], series=row["corpus"])
        for row in rows
        if row.get(f"{name}_low") is not None and row.get(f"{name}_high") is not None
    ]
    last = max(row["layer"] for row in rows)
    return Panel(
        [
            Layer("area", bands, is_data=False),
            Layer("line", _curve(backbone, name, "backbone, "), is_dashed=True),
            Layer("line", _curve(rows, name)),
        ],
        Axis("layer", "d", (0, last)),
        Axis(title="", format=".2f"),
        title,
        height=150,
    )


def _curve(rows: list[dict[str, Any]], name: str, whose: str = "") -> list[Mark]:
    return [
        Mark(
            *(row["layer"], row[name]),
            series=row["corpus"],
            label=f"{whose}{row['corpus']}, layer {row['layer']}: {row[name]:.3f}",
        )
        for row in rows
        if row[name] is not None
    ]
