"""Second-order collapse, layers, length and temperatures on the HTML page."""

from __future__ import annotations

from typing import Any

from embaudit.report.chart import line_chart
from embaudit.report.length_lines import CONDITIONS, lines
from embaudit.report.parts import Cell, Section, Table, number, share, with_interval

LAYER_COLUMNS = {
    "λ (head mean)": "lambda_head_mean",
    "S(Z)/S(H)": "contraction",
    "r": "r",
    "C": "c",
    "S(X)/‖μ‖²": "normalised_spread",
    "cosine": "within_text_cosine",
    "σ_a": "sigma_a",
}


def socm_section(facts: dict[str, Any]) -> Section | None:
    """What mean pooling throws away, by corpus."""
    if not facts["socm"]:
        return None
    table = Table(
        ("corpus", "texts", "pairs", "SOCM [95 %]", "5–95 %", "d_mu", "d_sigma", "tr Σ", "tr Σ > 2"),
        [
            (
                row["corpus"],
                f"{row['texts']:,}",
                f"{row['pairs']:,}",
                Cell(with_interval(row["socm_mean"], row["socm_low"], row["socm_high"]), bar=row["socm_mean"]),
                f"{row['socm_q05']:.2f}–{row['socm_q95']:.2f}",
                number(row["d_mu_mean"]),
                number(row["d_sigma_mean"]),
                number(row["trace_mean"], 2),
                share(row["share_trace_above_bound"]),
            )
            for row in facts["socm"]
        ],
    )
    notes = [
        f"{row['corpus']}, {row['pairs']} sampled pairs: the Gaussian view is {row['share']:.0%} of the exact "
        "transport distance."
        for row in facts["tightness"]
    ]
    if not all(row["pooling_is_mean"] for row in facts["socm"]):
        notes.append(f"This checkpoint pools by {facts['pooling']}: SOCM describes a pooling that is not deployed.")
    return Section("Second-order collapse", notes, [table])


def layer_section(facts: dict[str, Any]) -> Section | None:
    """Where in the network tokens are pulled together: a chart over all corpora, a table for each."""
    if not facts["layers"]:
        return None
    corpora = list(dict.fromkeys(row["corpus"] for row in facts["layers"]))
    by_corpus = {corpus: [row for row in facts["layers"] if row["corpus"] == corpus] for corpus in corpora}
    chart = line_chart(
        "Within-text cosine by layer",
        {
            corpus: [(row["layer"], row["within_text_cosine"]) for row in rows if row["within_text_cosine"] is not None]
            for corpus, rows in by_corpus.items()
        },
        "layer",
    )
    tables = [
        Table(
            ("layer", *LAYER_COLUMNS),
            [(str(row["layer"]), *(number(row[column]) for column in LAYER_COLUMNS.values())) for row in rows],
            f"{corpus}: {rows[0]['texts']:,} texts; {rows[0]['norm_placement']}-norm",
        )
        for corpus, rows in by_corpus.items()
    ]
    return Section("Layers", (), tables, [chart] if chart else [])


def length_section(facts: dict[str, Any]) -> Section | None:
    """Mean cosine by length and what its controls explain."""
    if not facts["length"]:
        return None
    charts, notes = [], []
    for summary in facts["length"]:
        bins = [row for row in facts["length_bins"] if row["corpus"] == summary["corpus"]]
        chart = line_chart(
            f"Mean cosine by length, {summary['corpus']}: {summary['texts']:,} texts",
            {
                label: [
                    (row["length"], row["cosine_mean"])
                    for row in bins
                    if row["condition"] == condition and row["cosine_mean"] is not None and row["length"] is not None
                ]
                for condition, label in CONDITIONS.items()
            },
            "tokens",
        )
        if chart:
            charts.append(chart)
        notes += [f"{summary['corpus']}: {line}" for line in lines(summary, facts["length_rises"])]
    table = Table(
        ("corpus", "condition", "first", "last", "rise", "of natural", "of truncations"),
        [
            (
                row["corpus"],
                CONDITIONS.get(row["condition"], row["condition"]),
                number(row["first_cosine"]),
                number(row["last_cosine"]),
                number(row["rise"]),
                share(row["share_of_natural"]),
                share(row["share_of_truncation"]),
            )
            for row in facts["length_rises"]
        ],
        numbers_from=2,
    )
    return Section("Length", notes, [table], charts)


def temperature_section(facts: dict[str, Any]) -> Section | None:
    """Does a lower attention temperature help this checkpoint?"""
    if not facts["temperatures"]:
        return None
    table = Table(
        ("task", "length", "answer", "τ", "items", "τ = 1", "at τ", "difference [95 %]", "why"),
        [
            (
                row["task"].replace("_", ", "),
                "all" if row["bin"] == 0 else f"{row['bin_low']} to {row['bin_high'] or '…'}",
                Cell(row["recommendation"], mark="good" if row["recommendation"] == "yes" else ""),
                "" if row["tau"] is None else f"{row['tau']:g}",
                f"{row['items']:,}",
                number(row["score_before"]),
                number(row["score_after"]),
                with_interval(row["difference"], row["low"], row["high"]),
                row["reason"],
            )
            for row in facts["temperatures"]
        ],
        numbers_from=3,
        numbers_to=8,
    )
    return Section("Attention temperature", (), [table])
