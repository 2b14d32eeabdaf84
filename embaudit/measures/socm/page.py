"""Second-order collapse on a page: averages by corpus, texts left out, quality of the Gaussian approximation."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table
from embaudit.measures.socm import charts

# Queries for the section's data, by name, for one audit.
FACTS = {
    "socm": "SELECT * FROM socm_summary WHERE audit_id = ? ORDER BY corpus",
    "socm_cuts": "SELECT * FROM socm_cut WHERE audit_id = ? ORDER BY corpus, tokens",
    "socm_contrasts": "SELECT * FROM socm_contrast WHERE audit_id = ? ORDER BY corpus, distance DESC",
    "socm_poolings": (
        "SELECT * FROM socm_pooling WHERE audit_id = ? ORDER BY corpus, correlation DESC NULLS LAST, pooling"
    ),
    "tightness": (
        "SELECT corpus, count(*) AS pairs, avg(gaussian_w2_squared / nullif(w2_squared, 0)) AS share, "
        "avg(socm) FILTER (socm_sif IS NOT NULL) AS plain, avg(socm_sif) AS sif, avg(socm_sif_removed) AS removed "
        "FROM socm_tightness WHERE audit_id = ? GROUP BY corpus HAVING share IS NOT NULL ORDER BY corpus"
    ),
    # The top three in one pass: a window function would sort millions of pairs.
    "socm_worst": (
        "WITH largest AS (SELECT audit_id, corpus, max({'socm': socm, 'first': -first, 'second': -second, "
        "'d_mu': d_mu, 'd_sigma': d_sigma}, 3) AS worst FROM socm_pair WHERE audit_id = ? GROUP BY ALL), "
        "pair AS (SELECT audit_id, corpus, unnest(worst, recursive := true) FROM largest) "
        "SELECT pair.corpus, pair.socm, pair.d_mu, pair.d_sigma, a.text AS first_text, b.text AS second_text "
        "FROM pair JOIN socm_summary USING (audit_id, corpus) "
        "JOIN text AS a ON a.corpus_id = socm_summary.corpus_id AND a.position = -pair.first "
        "JOIN text AS b ON b.corpus_id = socm_summary.corpus_id AND b.position = -pair.second "
        "ORDER BY pair.corpus, pair.socm DESC, pair.first DESC, pair.second DESC"
    ),
    **charts.FACTS,
}

SOCM = Column("SOCM [95 %]", ".3f", is_bar=True, ends=("socm_low", "socm_high"))
TERMS = {
    **{"d_mu_mean": Column("d_mu", ".3f"), "d_sigma_mean": Column("d_sigma", ".3f")},
    **{"trace_mean": Column("tr Σ", ".2f"), "share_trace_above_bound": Column("tr Σ > 2", ".0%")},
}
COLUMNS = {
    **{"corpus": Column("corpus"), "texts": Column("texts", ","), "pairs": Column("pairs", ",")},
    **{"socm_mean": SOCM, "range": Column("5–95 %", is_right=True), **TERMS},
}
WORST = {
    **{"socm": Column("SOCM", ".3f"), "d_mu": Column("d_mu", ".3f"), "d_sigma": Column("d_sigma", ".3f")},
    **{"first_text": Column("first text", is_prose=True), "second_text": Column("second text", is_prose=True)},
}
# Characters of a text, enough to tell what it is about.
EXCERPT = 240
CUT_COLUMNS = {
    **{"corpus": Column("corpus"), "tokens": Column("tokens", ","), "texts": Column("texts", ",")},
    **{"socm_mean": SOCM, **TERMS},
}
CONTRASTS = {
    **{"corpus": Column("corpus"), "distance": Column("distance"), "pairs": Column("pairs", ",")},
    **{"listed_mean": Column("listed", ".3f"), "random_mean": Column("random", ".3f")},
    "difference": Column("difference [95 %]", "+.3f"),
}
POOLING_NAMES = {"cls": "first token", "lasttoken": "last token", "weightedmean": "position-weighted mean"}
POOLINGS = {
    **{"corpus": Column("corpus"), "pooling": Column("pooling", words=POOLING_NAMES)},
    **{"is_served": Column("served", words={True: "yes", False: ""}), "texts": Column("texts", ",")},
    "correlation": Column("ranking [95 %]", ".3f", is_bar=True),
    **{"kept": Column("kept [95 %]", ".3f"), "cosine_to_mean": Column("cosine to mean", ".3f")},
}
# Counts of texts to mention if they are not 0.
LEFT_OUT = {
    "undefined": "left out (their tokens average to zero)",
    "one_token": "of one token (no spread)",
    "truncated": "truncated to the checkpoint's length limit",
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Second-order collapse", list(_parts(facts))) if facts["socm"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    ranges = [{**row, "range": f"{row['socm_q05']:.2f}–{row['socm_q95']:.2f}"} for row in facts["socm"]]
    yield Table.of(COLUMNS, ranges, "What mean pooling discards")
    for row in facts["socm"]:
        yield from charts.charts(facts, row["corpus"])
        yield Table.of(
            WORST,
            [_pair(pair) for pair in facts["socm_worst"] if pair["corpus"] == row["corpus"]],
            f"Pairs with the highest SOCM, {row['corpus']}",
            more="embaudit query socm-worst-pairs",
        )
    for row in facts["socm"]:
        counted = [f"{row[name]:,} {what}" for name, what in LEFT_OUT.items() if row[name]]
        if counted:
            yield f"Texts in {row['corpus']}: {'; '.join(counted)}."
    if facts["socm_cuts"]:
        yield Table.of(CUT_COLUMNS, facts["socm_cuts"], "The same for texts cut to a fixed length")
    for row in facts["socm"]:
        if row["correlation_trace"] is not None and row["correlation_length"] is not None:
            yield (
                f"{row['corpus']}: correlation of a pair's SOCM with the spread of its texts (tr Σ₁ + tr Σ₂) "
                f"{row['correlation_trace']:.2f}, of a text's spread with its length {row['correlation_length']:.2f}."
            )
    if facts["socm_contrasts"]:
        yield Table.of(CONTRASTS, facts["socm_contrasts"], "Listed pairs compared with random pairs of the same texts")
    if facts["socm_poolings"]:
        yield Table.of(
            POOLINGS,
            facts["socm_poolings"],
            "Poolings of the same token states: how closely each ranks pairs as all their tokens do (Spearman's ρ), "
            "and how much of the tokens one vector keeps",
            more="embaudit query socm-poolings",
        )
    for row in facts["tightness"]:
        sif = "" if row["sif"] is None else f"; SIF weights change SOCM from {row['plain']:.3f} to {row['sif']:.3f}"
        if row["removed"] is not None:
            sif += f", and to {row['removed']:.3f} without the common component"
        yield (
            f"{row['corpus']}, {row['pairs']} sampled pairs: the Gaussian approximation is {row['share']:.0%} of the "
            f"exact transport distance{sif}."
        )


def _pair(row: dict[str, Any]) -> dict[str, Any]:
    texts = {name: shorten(row[name], EXCERPT, placeholder=" …") for name in ("first_text", "second_text")}
    return {**row, **texts}
