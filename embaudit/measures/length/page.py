"""Length on a page: similarity by bin and condition, what the controls explain, and the effect on neighbours.

Charts show similarity by length with its controls, and σ_a with its published bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.words.estimate import Estimate

FACTS = {
    "length": "SELECT * FROM length_summary WHERE audit_id = ? ORDER BY corpus",
    "length_bins": "SELECT * FROM length_bin WHERE audit_id = ? ORDER BY low, corpus, condition",
    "length_rises": "SELECT * FROM length_rise WHERE audit_id = ? ORDER BY corpus, condition",
    "length_rankings": (
        "SELECT * FROM length_ranking WHERE audit_id = ? ORDER BY corpus, condition DESC, relevant DESC"
    ),
    "length_sigma": (
        "SELECT corpus, tokens, max(texts) AS texts, bool_or(is_causal) AS is_causal, "
        "avg(COLUMNS(['sigma_a', 'frobenius', 'sigma_s', 'sigma_s_centred', 'bound', 'bound_centred', 'holds', "
        "'holds_centred', 'sigma_a_value_norm', 'hc_energy'])) "
        "FROM length_sigma WHERE audit_id = ? GROUP BY corpus, tokens ORDER BY tokens, corpus"
    ),
}

CONDITIONS = {
    "natural": "natural",
    "truncation": "truncations",
    "windows": "windows averaged",
    "input_embeddings": "input embeddings",
}
TONES: dict[str, Tone] = {"input embeddings": "soft"}
SIGMA: dict[str, str] = {"sigma_a": "σ_a, measured", "bound": "the claimed bound"}
SIGMA_TONES: dict[str, Tone] = {"σ_a, measured": "one", "the claimed bound": "two"}
CONTROLS = {"windows": "Averages of separately encoded windows", "input_embeddings": "Averages of input embeddings"}
SIGMA_COLUMNS = {
    "tokens": Column("tokens", ","),
    "sigma_a": Column("σ_a", ".3f"),
    "frobenius": Column("‖PA‖_F", ".3f"),
    "sigma_s": Column("σ_s", ".3f"),
    "sigma_s_centred": Column("σ_s centred", ".3f"),
    "bound": Column("claimed bound", ".3f"),
    "holds": Column("holds", ".0%"),
    "sigma_a_value_norm": Column("σ_a‖W_V‖₂", ".3f"),
    "hc_energy": Column("HC energy", ".3f"),
}
# Figures that may exist only for the centred σ_s.
CENTRED = ("bound", "holds")
RISES = {
    "condition": Column("condition", words=CONDITIONS),
    "first_cosine": Column("first", ".3f"),
    "last_cosine": Column("last", ".3f"),
    "rise": Column("rise", ".3f"),
    "share_of_natural": Column("of natural", ".0%"),
    "share_of_truncation": Column("of truncations", ".0%", ""),
}
RANKINGS = {
    **{"documents": Column("documents"), "relevant": Column("relevant"), "pairs": Column("pairs", ",")},
    **{"by_short": Column("by short", ".1%"), "by_long": Column("by long", ".1%")},
    "difference": Column("difference [95 %]", "+.1%", "+.1%", ends=("low", "high")),
}
BINS_SHOWN = 12


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    parts = [part for summary in facts["length"] for part in _corpus(summary, facts)]
    return Section("Length", parts) if parts else None


def _corpus(summary: dict[str, Any], facts: dict[str, Any]) -> Iterator[Part]:
    """One corpus, from its ``length_summary`` row and all rows of the other tables."""
    corpus = summary["corpus"]

    def own(table: str) -> list[dict[str, Any]]:
        return [row for row in facts[table] if row["corpus"] == corpus]

    yield from _bins(summary, own("length_bins"))
    rises = {row["condition"]: row for row in own("length_rises")}
    for line in (*_explanations(rises), *_too_long(summary), *_neighbours(summary)):
        yield f"{corpus}: {line}"
    yield Table.of(RISES, own("length_rises"), f"Rise of the mean cosine, {corpus}")
    yield from _rankings(own("length_rankings"))
    yield from _sigma(own("length_sigma"))


def _bins(summary: dict[str, Any], bins: list[dict[str, Any]]) -> Iterator[Part]:
    corpus = summary["corpus"]
    yield cosine_chart(summary, bins)
    by_bin: dict[int, dict[str, dict[str, Any]]] = {}
    for row in bins:
        by_bin.setdefault(row["low"], {})[row["condition"]] = row
    yield Table(
        [Column("tokens", is_right=True), Column("texts", ","), *(Column(name, ".2f") for name in CONDITIONS.values())],
        [_bin(low, by_bin[low]) for low in sorted(by_bin)],
        f"Mean cosine by length, {corpus}: {summary['texts']:,} texts, controls on {summary['control_texts']:,} of "
        f"them; windows of {summary['window']} tokens",
        brief=BINS_SHOWN,
        is_even=True,
        more="embaudit query length",
    )
    if any(row["beyond_limit"] for row in bins):
        yield f"* longer than the {summary['configured_limit']} tokens that this checkpoint is configured to read."


def _bin(low: int, rows: dict[str, dict[str, Any]]) -> tuple[Any, ...]:
    mark = " *" if any(row["beyond_limit"] for row in rows.values()) else ""
    natural = rows["natural"]
    return (f"{low}-{natural['high']}{mark}", natural["texts"], *(_cosine(rows.get(name)) for name in CONDITIONS))


def _cosine(row: dict[str, Any] | None) -> Estimate | str:
    if row is None:
        return ""
    if row["cosine_mean"] is None:
        return "1 text" if row["texts"] == 1 else "no text"
    return Estimate(row["cosine_mean"], row["cosine_low"], row["cosine_high"])


def _explanations(rises: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The rise under each control, one line each."""
    truncation = rises.get("truncation")
    if truncation and truncation["rise"] is not None:
        yield (
            f"Truncations of the same texts: {truncation['first_cosine']:.2f} at {truncation['first_length']:.0f} "
            f"tokens, {truncation['last_cosine']:.2f} at {truncation['last_length']:.0f}{_of_natural(truncation)}."
        )
    for row, what in ((rises[name], what) for name, what in CONTROLS.items() if name in rises):
        share = Estimate.of(row, "share_of_truncation")
        if row["rise"] is None:
            continue
        if share.value is None:
            yield f"{what}: {row['rise']:+.2f}; no share is given, as truncations hardly rise."
            continue
        more = ": averaging alone collapses more than the model" if share.value > 1 else ""
        yield (f"{what}: {row['rise']:+.2f}, {share:.0%} of the truncations' rise{_of_natural(row)}{more}.")


def _of_natural(row: dict[str, Any]) -> str:
    share = row["share_of_natural"]
    return "" if share is None else f", {share:.0%} of the natural texts' rise"


def _too_long(summary: dict[str, Any]) -> Iterator[str]:
    if summary["beyond_read"]:
        yield (
            f"{summary['beyond_read']:,} of {summary['texts']:,} texts are longer than the {summary['read_limit']:,} "
            "tokens that were read, and are not on the natural curve."
        )


def _neighbours(summary: dict[str, Any]) -> Iterator[str]:
    """Effect of length on neighbour lists and on unrelated pairs; nothing if there are too few texts."""
    if summary["hubness_spearman"] is not None:
        rank = summary["rank_spearman"]
        yield (
            f"Correlation of length with how often a text is among another's {summary['neighbours']} nearest: "
            f"ρ {summary['hubness_spearman']:+.2f} (p {summary['hubness_p']:.2g})"
            + ("" if rank is None else f"; with its rank as an unrelated text: ρ {rank:+.2f}")
            + f"; neighbours are {summary['neighbour_length_ratio']:.2f} times as long as texts on average."
        )
    if summary["share_long_above"] is not None:
        labelled = " with different labels" if summary["is_labelled"] else ""
        yield (
            f"{summary['share_long_above']:.0%} of the pairs of long texts{labelled} score above the 95th percentile "
            "of such pairs of short texts (5% if length had no effect); the highest: embaudit query length-pairs"
        )


def _rankings(rows: list[dict[str, Any]]) -> Iterator[Part]:
    if not rows:
        return
    first = rows[0]
    cut = f"cut to {first['read']} tokens"
    yield Table.of(
        RANKINGS,
        [{**row, "documents": "as read" if row["condition"] == "natural" else cut} for row in rows],
        f"Shares of the short and of the long irrelevant documents in {first['corpus']} that outrank a relevant one "
        f"({first['documents']:,} documents; long: above {first['boundary']:,.0f} tokens)",
        more="embaudit query length-ranking",
    )


def _sigma(rows: list[dict[str, Any]]) -> Iterator[Part]:
    """Means over layers and heads by length; the bound is at the centred σ_s if the raw one is undefined."""
    if not rows:
        return
    yield sigma_chart(rows[0]["corpus"], rows)
    yield Table(
        list(SIGMA_COLUMNS.values()),
        [[_raw_or_centred(row, name) for name in SIGMA_COLUMNS] for row in rows],
        f"σ_a by length, {rows[0]['texts']:,} texts cut to each length",
        more="embaudit query length-sigma",
    )
    if rows[0]["is_causal"]:
        yield "Attention is causal, which the theory of σ_a does not cover."


def _raw_or_centred(row: dict[str, Any], name: str) -> Any:
    """A figure, or its centred variant."""
    return row[f"{name}_centred"] if row[name] is None and name in CENTRED else row[name]


def cosine_chart(summary: dict[str, Any], bins: list[dict[str, Any]]) -> Chart:
    """One corpus, from its ``length_summary`` row and its bins."""
    found = [row for row in bins if row["cosine_mean"] is not None and row["condition"] in CONDITIONS]
    bands = [
        Mark(row["length"], row["cosine_low"], y2=row["cosine_high"], series=CONDITIONS[row["condition"]])
        for row in found
        if row["cosine_low"] is not None and row["cosine_high"] is not None
    ]
    top = 1.12 * max((row["cosine_high"] or row["cosine_mean"] for row in found), default=0.0)
    lowest = min([0.0, *(row["cosine_mean"] for row in found)])
    longest = max((row["high"] for row in bins), default=0)
    limits = {summary["configured_limit"]: "reads", summary["position_limit"]: "positions"}
    shown = {limit: word for limit, word in limits.items() if limit is not None and limit <= longest}
    panel = Panel(
        [
            Layer("rule", [Mark(limit) for limit in shown], "soft", is_dashed=True, is_data=False, size=0.6),
            Layer(
                "text",
                [Mark(limit, top, label=f"{word} {limit:,}") for limit, word in shown.items()],
                "soft",
                is_data=False,
                align="right",
            ),
            Layer("area", bands, is_data=False),
            Layer("line", [_point(row) for row in found]),
        ],
        Axis("tokens", ",d", (0, longest)),
        Axis("mean cosine", ".1f", (lowest, top or 1.0)),
        width=580,
        height=250,
    )
    return Chart(
        f"Similarity by length, {summary['corpus']}",
        "Each point is the mean cosine between texts of one length, with its 95 % interval as a band. A rising line is "
        "length collapse: the longer the texts, the more alike their vectors. Truncations are the same texts cut "
        "short, so topics cannot explain their rise; averaged windows and averaged input embeddings show how much "
        "averaging alone would do. Dashed: the checkpoint's length limit, and the end of its position table.",
        [[panel]],
        TONES,
        more="embaudit query length",
    )


def _point(row: dict[str, Any]) -> Mark:
    name = CONDITIONS[row["condition"]]
    said = f"{name}, {row['low']:,} to {row['high']:,} tokens: {row['cosine_mean']:.3f}, {row['texts']:,} texts"
    return Mark(row["length"], row["cosine_mean"], series=name, label=said)


def sigma_chart(corpus: str, rows: list[dict[str, Any]]) -> Chart:
    """One corpus, from its means over layers and heads by length."""
    points = [
        Mark(row["tokens"], value, series=title, label=f"{title}, {row['tokens']:,} tokens: {value:.3f}")
        for name, title in SIGMA.items()
        for row in rows
        # If the raw σ_s has no bound, the centred one may.
        if (value := row[name] if row[name] is not None else row.get(f"{name}_centred")) is not None
    ]
    panel = Panel(
        [Layer("line", points)],
        Axis("tokens", ",d", is_log=True),
        Axis("σ_a", ".1f", has_zero=True),
        width=580,
        height=200,
    )
    return Chart(
        f"σ_a by length, {corpus}",
        "σ_a is how much of the spread between tokens an attention head lets through, on average over layers and "
        "heads. The published theory of length collapse bounds it from above by a value that falls with length: "
        "where the measured line is above the bound, the theory does not hold for this checkpoint.",
        [[panel]],
        SIGMA_TONES,
        more="embaudit query length-sigma",
    )
