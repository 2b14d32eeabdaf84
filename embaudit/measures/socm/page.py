"""Second-order collapse on a page: averages by corpus, texts left out, quality of the Gaussian approximation."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table
from embaudit.measures.socm import charts
from embaudit.words.estimate import Estimate

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

COLUMNS = (
    Column("corpus"),
    *(Column("texts", ","), Column("pairs", ",")),
    Column("SOCM [95 %]", ".3f", is_bar=True),
    Column("5–95 %", is_right=True),
    *(Column("d_mu", ".3f"), Column("d_sigma", ".3f"), Column("tr Σ", ".2f"), Column("tr Σ > 2", ".0%")),
)
WORST = (
    *(Column("SOCM", ".3f"), Column("d_mu", ".3f"), Column("d_sigma", ".3f")),
    *(Column("first text", is_prose=True), Column("second text", is_prose=True)),
)
# Characters of a text, enough to tell what it is about.
EXCERPT = 240
CUT_COLUMNS = (
    *(Column("corpus"), Column("tokens", ","), Column("texts", ",")),
    Column("SOCM [95 %]", ".3f", is_bar=True),
    *(Column("d_mu", ".3f"), Column("d_sigma", ".3f"), Column("tr Σ", ".2f"), Column("tr Σ > 2", ".0%")),
)
CONTRASTS = (
    *(Column("corpus"), Column("distance"), Column("pairs", ",")),
    *(Column("listed", ".3f"), Column("random", ".3f"), Column("difference [95 %]", "+.3f")),
)
POOLINGS = (
    *(Column("corpus"), Column("pooling"), Column("served"), Column("texts", ",")),
    *(Column("ranking [95 %]", ".3f", is_bar=True), Column("kept [95 %]", ".3f"), Column("cosine to mean", ".3f")),
)
POOLING_NAMES = {"cls": "first token", "lasttoken": "last token", "weightedmean": "position-weighted mean"}
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
    yield Table(COLUMNS, [_corpus(row) for row in facts["socm"]], "What mean pooling discards")
    for row in facts["socm"]:
        yield from charts.charts(facts, row["corpus"])
        yield Table(
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
        yield Table(CUT_COLUMNS, [_cut(row) for row in facts["socm_cuts"]], "The same for texts cut to a fixed length")
    for row in facts["socm"]:
        if row["correlation_trace"] is not None and row["correlation_length"] is not None:
            yield (
                f"{row['corpus']}: correlation of a pair's SOCM with the spread of its texts (tr Σ₁ + tr Σ₂) "
                f"{row['correlation_trace']:.2f}, of a text's spread with its length {row['correlation_length']:.2f}."
            )
    if facts["socm_contrasts"]:
        yield Table(
            CONTRASTS,
            [_contrast(row) for row in facts["socm_contrasts"]],
            "Listed pairs compared with random pairs of the same texts",
        )
    if facts["socm_poolings"]:
        yield Table(
            POOLINGS,
            [_pooling(row) for row in facts["socm_poolings"]],
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


def _contrast(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(row["corpus"], row["distance"], row["pairs"], row["listed_mean"], row["random_mean"]),
        Estimate.of(row, "difference"),
    )


def _pooling(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(row["corpus"], POOLING_NAMES.get(row["pooling"], row["pooling"]), "yes" if row["is_served"] else ""),
        *(row["texts"], Estimate.of(row, "correlation")),
        *(Estimate.of(row, "kept"), row["cosine_to_mean"]),
    )


def _cut(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(row["corpus"], row["tokens"], row["texts"]),
        Estimate(row["socm_mean"], row["socm_low"], row["socm_high"]),
        *(row["d_mu_mean"], row["d_sigma_mean"], row["trace_mean"], row["share_trace_above_bound"]),
    )


def _corpus(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(row["corpus"], row["texts"], row["pairs"]),
        Estimate(row["socm_mean"], row["socm_low"], row["socm_high"]),
        f"{row['socm_q05']:.2f}–{row['socm_q95']:.2f}",
        *(row["d_mu_mean"], row["d_sigma_mean"], row["trace_mean"], row["share_trace_above_bound"]),
    )


def _pair(row: dict[str, Any]) -> tuple[Any, ...]:
    texts = (row["first_text"], row["second_text"])
    return (row["socm"], row["d_mu"], row["d_sigma"], *(shorten(text, EXCERPT, placeholder=" …") for text in texts))
