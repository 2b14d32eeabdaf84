"""Layers on a page: where in the network tokens are pulled together, and what Theorem 1 makes of each layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.page.model import Chart, Column, Part, Section, Table

# What the section is made of: rows by name, of one audit.
FACTS = {
    "layers": "SELECT * FROM layer_stat WHERE audit_id = ? ORDER BY corpus DESC, layer",
}

COLUMNS = {
    "layer": Column("layer", "d"),
    "lambda_head_mean": Column("λ (head mean)", ".3f"),
    "lambda_head_averaged_attention": Column("λ (averaged A)", ".3f"),
    "contraction": Column("S(Z)/S(H)", ".3f"),
    "r": Column("r", ".3f"),
    "c": Column("C", ".3f"),
    "normalised_spread": Column("S(X)/‖μ‖²", ".3f"),
    "within_text_cosine": Column("cosine", ".3f"),
    "sigma_a": Column("σ_a", ".3f"),
}
LAYERS_SHOWN = 12


def section(facts: dict[str, Any]) -> Section | None:
    """None without the measure."""
    by_corpus: dict[str, list[dict[str, Any]]] = {}
    for row in facts["layers"]:
        by_corpus.setdefault(row["corpus"], []).append(row)
    return Section("Layers", list(_parts(by_corpus))) if by_corpus else None


def _parts(by_corpus: dict[str, list[dict[str, Any]]]) -> Iterator[Part]:
    cosines = {
        corpus: [(row["layer"], row["within_text_cosine"]) for row in rows if row["within_text_cosine"] is not None]
        for corpus, rows in by_corpus.items()
    }
    yield Chart("Within-text cosine by layer", cosines, "layer")
    for corpus, rows in by_corpus.items():
        first = rows[0]
        left_out = f", {first['undefined']} of one token left out" if first["undefined"] else ""
        yield Table(
            list(COLUMNS.values()),
            [[row[name] for name in COLUMNS] for row in rows],
            f"Concentration by layer, {corpus}: {first['texts']:,} texts of {first['tokens_mean']:.0f} tokens"
            f"{left_out}; {first['norm_placement']}-norm",
            brief=LAYERS_SHOWN,
            is_even=True,
            more="embaudit query layers",
        )
