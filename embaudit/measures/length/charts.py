"""Charts of length: similarity by length with its controls, and σ_a with its published bound."""

from __future__ import annotations

from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone

CONDITIONS = {
    "natural": "natural",
    "truncation": "truncations",
    "windows": "windows averaged",
    "input_embeddings": "input embeddings",
}
TONES: dict[str, Tone] = {"input embeddings": "soft"}
SIGMA: dict[str, str] = {"sigma_a": "σ_a, measured", "bound": "the claimed bound"}
SIGMA_TONES: dict[str, Tone] = {"σ_a, measured": "one", "the claimed bound": "two"}


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
    return Chart(
        f"Similarity by length, {summary['corpus']}",
        "Each point is the mean cosine between texts of one length, with its 95 % interval as a band. A rising line is "
        "length collapse: the longer the texts, the more alike their vectors. Truncations are the same texts cut "
        "short, so topics cannot explain their rise; averaged windows and averaged input embeddings show how much "
        "averaging alone would do. Dashed: the checkpoint's length limit, and the end of its position table.",
        [
            [
                Panel(
                    [
                        Layer(
                            "rule", [Mark(limit) for limit in shown], "soft", is_dashed=True, is_data=False, size=0.6
                        ),
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
                    "",
                    *(580, 250),
                )
            ]
        ],
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
    return Chart(
        f"σ_a by length, {corpus}",
        "σ_a is how much of the spread between tokens an attention head lets through, on average over layers and "
        "heads. The published theory of length collapse bounds it from above by a value that falls with length: "
        "where the measured line is above the bound, the theory does not hold for this checkpoint.",
        [
            [
                Panel(
                    [Layer("line", points)],
                    Axis("tokens", ",d", is_log=True),
                    Axis("σ_a", ".1f", has_zero=True),
                    "",
                    *(580, 200),
                )
            ]
        ],
        SIGMA_TONES,
        more="embaudit query length-sigma",
    )
