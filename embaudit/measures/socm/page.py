"""Second-order collapse on a page: a table by corpus, what was left out, and how far to trust the Gaussian view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.page.model import Column, Estimate, Part, Section, Table

# What the section is made of: rows by name, of one audit.
FACTS = {
    "socm": "SELECT * FROM socm_summary WHERE audit_id = ? ORDER BY corpus",
    "tightness": (
        "SELECT corpus, count(*) AS pairs, avg(gaussian_w2_squared / nullif(w2_squared, 0)) AS share, "
        "avg(socm) FILTER (socm_sif IS NOT NULL) AS plain, avg(socm_sif) AS sif "
        "FROM socm_tightness WHERE audit_id = ? GROUP BY corpus HAVING share IS NOT NULL ORDER BY corpus"
    ),
}

COLUMNS = (
    Column("corpus"),
    *(Column("texts", ","), Column("pairs", ",")),
    Column("SOCM [95 %]", ".3f", is_bar=True),
    Column("5–95 %", is_right=True),
    *(Column("d_mu", ".3f"), Column("d_sigma", ".3f"), Column("tr Σ", ".2f"), Column("tr Σ > 2", ".0%")),
)
# The text counts that are worth a line, and what they count.
LEFT_OUT = {
    "undefined": "whose tokens average to nothing (left out)",
    "one_token": "of one token (no spread)",
    "truncated": "cut to the checkpoint's limit",
}


def section(facts: dict[str, Any]) -> Section | None:
    """None without the measure."""
    return Section("Second-order collapse", list(_parts(facts))) if facts["socm"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    yield Table(COLUMNS, [_corpus(row) for row in facts["socm"]], "What mean pooling throws away")
    for row in facts["socm"]:
        counted = [f"{row[name]:,} {what}" for name, what in LEFT_OUT.items() if row[name]]
        if counted:
            yield f"{row['corpus']}: of its texts {'; '.join(counted)}."
    for row in facts["tightness"]:
        sif = "" if row["sif"] is None else f"; SIF weights make SOCM {row['sif']:.3f} of {row['plain']:.3f}"
        yield (
            f"{row['corpus']}, {row['pairs']} sampled pairs: the Gaussian view is {row['share']:.0%} of the exact "
            f"transport distance{sif}."
        )


def _corpus(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(row["corpus"], row["texts"], row["pairs"]),
        Estimate(row["socm_mean"], row["socm_low"], row["socm_high"]),
        f"{row['socm_q05']:.2f}–{row['socm_q95']:.2f}",
        *(row["d_mu_mean"], row["d_sigma_mean"], row["trace_mean"], row["share_trace_above_bound"]),
    )
