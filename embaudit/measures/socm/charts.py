"""Charts of second-order collapse: the density of pairs by their two distances, and the tokens of single pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import count

# Most cells along each axis, and the finer resolution (per unit) at which pairs are counted first: one pass over
# millions of pairs does not know their range in advance.
CELLS = 36
FINE_MU, FINE_SIGMA = 200, 100
FACTS = {
    "socm_counts": (
        f"SELECT corpus, floor(greatest(d_mu, 0) * {FINE_MU})::INTEGER AS mu, "
        f"floor(greatest(d_sigma, 0) * {FINE_SIGMA})::INTEGER AS sigma, count(*) AS pairs "
        "FROM socm_value WHERE audit_id = ? GROUP BY ALL ORDER BY ALL"
    ),
    "socm_planes": "SELECT * FROM socm_plane WHERE audit_id = ? ORDER BY corpus, pair, position, point",
}
LEVELS = [level / 5 for level in range(1, 10)]
WIDTH, HEIGHT, MARGIN = 514, 280, 60
# Points per contour.
STEPS = 24
PAIRS = ("highest", "median", "lowest")
PLANE = 188


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
