"""Charts of sticky tokens: severity, effect on similarities, groups of tokens, and input embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone, interval
from embaudit.measures.sticky.tables import SEVERITY_FROM_LOSS
from embaudit.words.estimate import Estimate

# The search's measurement of each token; loss is relative to the ordinary tokens' slope.
SCANNED = (
    "SELECT token.*, 1 - slope / control_median AS loss, is_pilot, search FROM sticky_score "
    "JOIN sticky_summary AS summary USING (audit_id) JOIN audit USING (audit_id) "
    "JOIN token USING (checkpoint_id, token_id) "
    "WHERE audit_id = ? AND summary.protocol = 'retention' AND summary.control_median > 0"
)
TOKEN = "JOIN audit USING (audit_id) JOIN token USING (checkpoint_id, token_id) "
# No fit if the similarities before have no spread: its sign would be noise.
FACTS = {
    "sticky_candidates": (
        "SELECT sticky_token.token, sticky_token.script, loss, loss_low, loss_high, severity, embedding_norm "
        "FROM sticky_token JOIN token USING (checkpoint_id, token_id) WHERE audit_id = ? "
        "ORDER BY loss DESC, token_id"
    ),
    "sticky_ordinary": (
        f"SELECT token, loss, loss_low, loss_high FROM sticky_validation {TOKEN}"
        "WHERE audit_id = ? AND protocol = 'retention' AND role = 'control' ORDER BY loss DESC, token_id"
    ),
    # The token with the flattest line, and the median ordinary token; rounded, because the last digits of sums depend
    # on the order of rows.
    "sticky_shifts": (
        "WITH fit AS ("
        "SELECT audit_id, token_id, role, round(regr_slope(after, before), 9) AS slope, "
        "round(regr_intercept(after, before), 9) AS intercept "
        "FROM sticky_shift WHERE audit_id = ? GROUP BY ALL HAVING stddev_pop(before) > 0), "
        "beside AS (SELECT *, median(slope) OVER (PARTITION BY role) AS middle FROM fit), "
        "shown AS (SELECT * FROM beside QUALIFY row_number() OVER (PARTITION BY role ORDER BY "
        "CASE role WHEN 'sticky' THEN slope ELSE abs(slope - middle) END, token_id) = 1) "
        "SELECT token, shown.role, slope, intercept, before, after FROM shown "
        f"JOIN sticky_shift USING (audit_id, token_id) {TOKEN}"
        "ORDER BY shown.role DESC, position"
    ),
    "sticky_groups": (
        f"WITH scanned AS ({SCANNED}), member AS (SELECT 'script' AS attribute, script AS value, loss FROM scanned "
        "UNION ALL SELECT 'origin', origin, loss FROM scanned) "
        "SELECT attribute, value, count(*) AS tokens, quantile_cont(loss, [0.05, 0.25, 0.5, 0.75, 0.95]) AS losses "
        "FROM member GROUP BY attribute, value HAVING tokens >= 20 "
        "QUALIFY row_number() OVER (PARTITION BY attribute ORDER BY tokens DESC, value) <= 14 "
        "ORDER BY attribute DESC, losses[3] DESC, value"
    ),
    # A random sample of the whole vocabulary, with all draws.
    "sticky_norms": (
        f"SELECT token, embedding_norm, loss FROM ({SCANNED}) WHERE is_pilot OR search = 'exhaustive' "
        "ORDER BY hash(token_id), token_id LIMIT 600"
    ),
}
SEVERITY_TONES: dict[str, Tone] = {
    **{"strong": "problem", "moderate": "look", "weak": "one", "negligible": "six"},
    **{"ordinary tokens": "three", "random tokens": "soft"},
}
ROW = 20
MARGIN = 0.02


def severity_chart(facts: dict[str, Any]) -> Chart:
    candidates, ordinary = facts["sticky_candidates"], facts["sticky_ordinary"]
    lines = [(name, least) for least, name in SEVERITY_FROM_LOSS]
    values = [row[name] for row in (*candidates, *ordinary) for name in ("loss", "loss_low", "loss_high") if row[name]]
    y = Axis("loss", ".2f", (min([0.0, *values]) - MARGIN, max([lines[0][1], *values]) + MARGIN))
    limits = Layer("rule", [Mark(y=least) for _, least in lines], "soft", is_dashed=True, is_data=False, size=0.5)
    x = Axis("candidates, worst first", domain=(0, len(candidates) + 1), has_labels=False)
    words = [Mark(x.domain[1], least, label=name) for name, least in lines] if x.domain else []
    first = Panel(
        [
            limits,
            Layer("text", words, "soft", is_data=False, align="right"),
            *_estimates(candidates, [row["severity"] for row in candidates]),
        ],
        *(x, y, "", 480, 260),
    )
    second = Panel(
        [limits, *_estimates(ordinary, ["ordinary tokens"] * len(ordinary))],
        Axis("ordinary", domain=(0, len(ordinary) + 1), has_labels=False),
        Axis(domain=y.domain, has_labels=False),
        *("", 95, 260),
    )
    return Chart(
        "Candidates compared with ordinary tokens",
        "Each point is a token, with its 95 % interval. Loss is the share of the differences between a text's "
        "similarities that inserting the token erases: at 0 nothing changes, at 1 every text looks the same. The "
        "dashed lines mark where each severity starts. Candidates in the range of the ordinary tokens do no harm.",
        [[first, second]],
        SEVERITY_TONES,
        gap=14,
        more="embaudit query worst-tokens",
    )


def _estimates(rows: list[dict[str, Any]], series: list[str]) -> list[Layer]:
    """Points with their intervals, at x = 1, 2, …"""
    named = list(zip(range(1, len(rows) + 1), rows, series, strict=True))
    lines = [m for place, row, name in named for m in interval(place, row["loss_low"], row["loss_high"], name)]
    points = [Mark(place, row["loss"], series=name, label=_label(row)) for place, row, name in named]
    return [Layer("rule", lines, is_data=False, size=0.6), Layer("point", points)]


def _label(row: dict[str, Any]) -> str:
    bounds = Estimate.of(row, "loss").interval()
    return f"{row['token']}{', ' + row['script'] if row.get('script') else ''}: loss {row['loss']:.3f}{bounds}"


def shift_chart(facts: dict[str, Any]) -> Chart:
    rows = facts["sticky_shifts"]
    values = [row[name] for row in rows for name in ("before", "after")]
    ends = (min(values) - MARGIN, max(values) + MARGIN)
    by_role = {role: [row for row in rows if row["role"] == role] for role in ("sticky", "ordinary")}
    return Chart(
        "Similarity before and after insertion",
        "Each point is a pair of sentences: its similarity before and after copies of the token are inserted into one "
        "of them. On the dashed diagonal nothing changes. The flatter the fitted line, the less is left of the "
        "original similarity; the point where it crosses the diagonal (the focal point, a large dot) is the value "
        "that similarities are pulled to.",
        [[_shifted(found, ends) for found in by_role.values() if found]],
        {"worst token": "problem", "ordinary token": "three"},
        more="embaudit query sticky-shift",
    )


def _shifted(rows: list[dict[str, Any]], ends: tuple[float, float]) -> Panel:
    slope, intercept = rows[0]["slope"], rows[0]["intercept"]
    series = "worst token" if rows[0]["role"] == "sticky" else "ordinary token"
    points = [
        Mark(row["before"], row["after"], series=series, label=f"{row['before']:.3f} → {row['after']:.3f}")
        for row in rows
    ]
    befores = [row["before"] for row in rows]
    line = [Mark(x, intercept + slope * x, series=series) for x in (min(befores), max(befores))]
    focal = intercept / (1 - slope) if slope != 1 else ends[1] + 1
    focus = [Mark(focal, focal, label=f"focal point {focal:.3f}")] if ends[0] <= focal <= ends[1] else []
    return Panel(
        [
            Layer("rule", [Mark(ends[0], ends[0], ends[1], ends[1])], "soft", is_dashed=True, is_data=False, size=0.5),
            Layer("point", points, size=0.7),
            Layer("line", line, is_data=False),
            Layer("point", focus, "ink", size=3, is_data=False),
        ],
        Axis("similarity before", ".1f", ends),
        Axis("similarity after", ".1f", ends),
        f"{rows[0]['token']}: slope {slope:.2f}",
        *(260, 260),
    )


def group_chart(facts: dict[str, Any]) -> Chart:
    rows = facts["sticky_groups"]
    found = {name: [row for row in rows if row["attribute"] == name] for name in ("script", "origin")}
    ends = [loss for row in rows for loss in row["losses"]]
    domain = (min(ends, default=0.0) - MARGIN, max(ends, default=1.0) + MARGIN)
    return Chart(
        "Stickiness by script and origin",
        "Each dot is the median loss of a group's tokens in the search; the thick line covers the middle half of them, "
        "the thin one the middle 90 %. The number of tokens follows the name. Each token was measured on few draws, so "
        "part of the spread is noise; tokens with suspicious embeddings are over-represented. Keep groups far to the "
        "right out of texts.",
        [[_groups(name, of_name, domain)] for name, of_name in found.items() if of_name],
        more="embaudit query sticky-by-script",
    )


def _groups(attribute: str, rows: list[dict[str, Any]], domain: tuple[float, float]) -> Panel:
    names = [f"{row['value']} ({row['tokens']:,})" for row in rows]
    named = list(zip(names, (row["losses"] for row in rows), strict=True))
    return Panel(
        [
            Layer("rule", [Mark(q[0], name, q[4]) for name, q in named], size=0.7, is_data=False),
            Layer("rule", [Mark(q[1], name, q[3]) for name, q in named], size=2.6, is_data=False),
            Layer("point", [Mark(q[2], name, label=_spread(name, q)) for name, q in named], size=2),
        ],
        Axis("loss", ".2f", domain),
        Axis(categories=names),
        attribute,
        *(450, ROW * len(rows)),
    )


def _spread(name: str, losses: list[float]) -> str:
    five, low, middle, high, most = losses
    return f"{name}: median {middle:.3f}, middle half {low:.3f} to {high:.3f}, middle 90 % {five:.3f} to {most:.3f}"


def norm_chart(facts: dict[str, Any]) -> Chart:
    clouds = [("random tokens", row) for row in facts["sticky_norms"]]
    clouds += [(row["severity"], row) for row in facts["sticky_candidates"]]
    points = [
        Mark(
            row["embedding_norm"], row["loss"], series=series, label=f"{_label(row)}, norm {row['embedding_norm']:.2f}"
        )
        for series, row in clouds
        if row["embedding_norm"] is not None
    ]
    panel = Panel(
        [Layer("point", points, size=0.8)],
        Axis("norm of the input embedding", ".1f"),
        Axis("loss", ".2f"),
        width=570,
        height=260,
    )
    return Chart(
        "Input embeddings and loss",
        "Each point is a token: the norm of its input embedding against its loss. If sticky tokens cluster at one end, "
        "their embeddings were hardly trained, or trained oddly, and such tokens can be recognised before anything is "
        "encoded. Random tokens were measured with the search's draws, candidates with the validation's.",
        [[panel]],
        SEVERITY_TONES,
        more="embaudit query sticky-embeddings",
    )


def charts(facts: dict[str, Any]) -> Iterator[Chart]:
    """All but the severity chart, which is placed above the table of tokens."""
    if facts["sticky_shifts"]:
        yield shift_chart(facts)
    if facts["sticky_groups"]:
        yield group_chart(facts)
    if facts["sticky_norms"]:
        yield norm_chart(facts)
