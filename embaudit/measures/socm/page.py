"""Second-order collapse on a page: averages by corpus, texts left out, quality of the Gaussian approximation.

Charts show the density of pairs by their two distances, and the tokens of single pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import shorten
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Part, Section, Table, count

# Most cells along each axis, and the finer resolution (per unit) at which pairs are counted first: one pass over
# millions of pairs does not know their range in advance.
CELLS = 36
FINE_MU, FINE_SIGMA = 200, 100
CHART_FACTS = {
    "socm_counts": (
        f"SELECT corpus, floor(greatest(d_mu, 0) * {FINE_MU})::INTEGER AS mu, "
        f"floor(greatest(d_sigma, 0) * {FINE_SIGMA})::INTEGER AS sigma, count(*) AS pairs "
        "FROM socm_value WHERE audit_id = ? GROUP BY ALL ORDER BY ALL"
    ),
    "socm_planes": "SELECT * FROM socm_plane WHERE audit_id = ? ORDER BY corpus, pair, position, point",
}
LEVELS = [level / 5 for level in range(1, 10)]
# Points per contour.
STEPS = 24
PAIRS = ("highest", "median", "lowest")
PLANE = 188
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
    **CHART_FACTS,
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
        yield from charts(facts, row["corpus"])
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


WIDTH, HEIGHT, MARGIN = 514, 280, 60


def density_chart(corpus: str, counts: list[dict[str, Any]]) -> Chart:
    """One corpus, from its fine-grained counts of pairs."""
    coarse_mu, coarse_sigma = (-(-(max(row[name] for row in counts) + 1) // CELLS) for name in ("mu", "sigma"))
    wide, high = coarse_mu / FINE_MU, coarse_sigma / FINE_SIGMA
    pairs: Counter[tuple[int, int]] = Counter()
    for row in counts:
        pairs[row["mu"] // coarse_mu, row["sigma"] // coarse_sigma] += row["pairs"]
    rows = [{"mu": mu, "sigma": sigma, "pairs": number} for (mu, sigma), number in sorted(pairs.items())]
    most_mu, most_sigma = (
        (max(row[name] for row in rows) + 1) * side for name, side in (("mu", wide), ("sigma", high))
    )
    most = max(row["pairs"] for row in rows)
    cells = [
        Mark(
            *(row["mu"] * wide, row["sigma"] * high, (row["mu"] + 1) * wide, (row["sigma"] + 1) * high),
            label=f"{count(row['pairs'], 'pair')}: d_μ about {(row['mu'] + 0.5) * wide:.2f}, "
            f"d_Σ about {(row['sigma'] + 0.5) * high:.2f}",
            # A cell with one pair must stay visible next to one with thousands.
            weight=round(0.08 + 0.92 * (row["pairs"] / most) ** 0.5, 3),
        )
        for row in rows
    ]
    x, y = Axis("d_μ, of the means", ".1f", (0, most_mu)), Axis("d_Σ", ".1f", (0, most_sigma))
    lines = [layer for level in LEVELS for layer in _contour(level, most_mu, most_sigma)]
    main = Panel([Layer("rect", cells), *lines], x, y, "", WIDTH, HEIGHT)
    above = Panel(
        [Layer("rect", [Mark(n * wide, 0, (n + 1) * wide, pairs) for n, pairs in _margin(rows, "mu")], is_data=False)],
        Axis(domain=x.domain, has_labels=False),
        Axis(has_labels=False, has_zero=True),
        *("", WIDTH, MARGIN),
    )
    beside = Panel(
        [
            Layer(
                "rect",
                [Mark(0, n * high, pairs, (n + 1) * high) for n, pairs in _margin(rows, "sigma")],
                is_data=False,
            )
        ],
        Axis(has_labels=False, has_zero=True),
        Axis(domain=y.domain, has_labels=False),
        *("", MARGIN, HEIGHT),
    )
    return Chart(
        f"What mean pooling keeps and discards, {corpus}",
        "The darker a cell, the more pairs of texts. On the left are pairs whose pooled vectors are alike, at the top "
        "pairs whose tokens are spread differently around them. The numbered lines have constant SOCM, "
        "(1 − d_μ)·d_Σ: pairs in the upper left differ in ways that no search on these vectors can see. The bars "
        "are the marginal distributions.",
        [[above], [main, beside]],
        gap=6,
        more="embaudit query socm",
    )


def _margin(rows: list[dict[str, Any]], name: str) -> list[tuple[int, int]]:
    pairs: Counter[int] = Counter()
    for row in rows:
        pairs[row[name]] += row["pairs"]
    return sorted(pairs.items())


def _contour(level: float, most_mu: float, most_sigma: float) -> list[Layer]:
    """d_Σ = SOCM / (1 − d_μ), within the chart."""
    end = min(most_mu, 1 - level / most_sigma)
    if end <= 0:
        return []
    points = [(end * step / STEPS, level / (1 - end * step / STEPS)) for step in range(STEPS + 1)]
    line = Layer("line", [Mark(x, y) for x, y in points], "ink", is_dashed=True, is_data=False, size=0.4)
    word = Mark(*points[0], label=f"{level:.1f}")
    return [line, Layer("text", [word], "ink", is_data=False)]


def plane_chart(rows: list[dict[str, Any]]) -> Chart:
    """One corpus: its pairs with the highest, median and lowest SOCM."""
    by_pair = {pair: [row for row in rows if row["pair"] == pair] for pair in PAIRS}
    return Chart(
        f"Two texts and their tokens, {rows[0]['corpus']}",
        "Each panel is a pair of texts: small dots are their tokens, projected on the tokens' first two directions; "
        "the lines cross at the origin. Large dots are the means that the checkpoint serves. If these are close "
        "together but the clouds are not, the texts' vectors are alike although their tokens are not.",
        [[_plane(pair, found) for pair, found in by_pair.items() if found]],
        gap=17,
        more="embaudit query socm-plane",
    )


def _plane(pair: str, rows: list[dict[str, Any]]) -> Panel:
    names = {position: f"{which} text" for position, which in zip(_positions(rows), ("first", "second"), strict=False)}
    tokens = [
        Mark(row["x"], row["y"], series=names[row["position"]], label=row["token"] or "")
        for row in rows
        if row["point"] >= 0
    ]
    means = [
        Mark(row["x"], row["y"], series=names[row["position"]], label=f"mean of the {names[row['position']]}")
        for row in rows
        if row["point"] < 0
    ]
    x, y = ([row[name] for row in rows] for name in ("x", "y"))
    # Square, so that distances look the same in both directions.
    half = max(max(x) - min(x), max(y) - min(y), 1e-9) * 0.55
    across, up = (((min(of) + max(of)) / 2 - half, (min(of) + max(of)) / 2 + half) for of in (x, y))
    lines = [Mark(x=0)] if across[0] < 0 < across[1] else [], [Mark(y=0)] if up[0] < 0 < up[1] else []
    return Panel(
        [
            *(Layer("rule", zero, "soft", is_data=False, size=0.4) for zero in lines),
            Layer("point", tokens, size=0.8),
            Layer("point", means, size=5, is_outlined=True),
        ],
        Axis(domain=across, has_labels=False),
        Axis(domain=up, has_labels=False),
        f"{pair} SOCM, {rows[0]['socm']:.2f}",
        *(PLANE, PLANE),
    )


def _positions(rows: list[dict[str, Any]]) -> list[int]:
    return sorted({row["position"] for row in rows})


def charts(facts: dict[str, Any], corpus: str) -> Iterator[Chart]:
    counts = [row for row in facts["socm_counts"] if row["corpus"] == corpus]
    planes = [row for row in facts["socm_planes"] if row["corpus"] == corpus]
    if counts:
        yield density_chart(corpus, counts)
    if planes:
        yield plane_chart(planes)
