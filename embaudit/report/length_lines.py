"""Length in words, for every page: what each control explains, what was not read, what it does to neighbours."""

from __future__ import annotations

from typing import Any

CONDITIONS = {
    "natural": "natural",
    "truncation": "truncations",
    "windows": "windows averaged",
    "input_embeddings": "input embeddings",
}


def lines(summary: dict[str, Any], rises: list[dict[str, Any]]) -> list[str]:
    """The sentences about one corpus, from its ``length_summary`` row and all ``length_rise`` rows."""
    own = {row["condition"]: row for row in rises if row["corpus"] == summary["corpus"]}
    return [*_explanations(own), *_beyond(summary), *_neighbours(summary)]


def _explanations(rises: dict[str, dict[str, Any]]) -> list[str]:
    """What each control makes of the rise, one line each."""
    lines = []
    truncation = rises.get("truncation")
    if truncation and truncation["rise"] is not None:
        lines.append(
            f"Truncations of the same texts: {truncation['first_cosine']:.2f} at {truncation['first_length']:.0f} "
            f"tokens, {truncation['last_cosine']:.2f} at {truncation['last_length']:.0f}{_of_natural(truncation)}."
        )
    for name, what in (
        ("windows", "Windows encoded alone and averaged"),
        ("input_embeddings", "Input embeddings averaged"),
    ):
        row = rises.get(name)
        if row is None or row["rise"] is None:
            continue
        share = row["share_of_truncation"]
        if share is None:
            lines.append(f"{what}: rise by {row['rise']:+.2f}; truncations hardly rise, so that no share is given.")
            continue
        interval = ""
        if row["share_of_truncation_low"] is not None:
            interval = f" [{row['share_of_truncation_low']:.0%}, {row['share_of_truncation_high']:.0%}]"
        more = ": averaging alone collapses more than the model does" if share > 1 else ""
        lines.append(
            f"{what}: rise by {row['rise']:+.2f}, {share:.0%}{interval} of the truncations' rise{_of_natural(row)}"
            f"{more}."
        )
    return lines


def _neighbours(summary: dict[str, Any]) -> list[str]:
    """What length does to neighbour lists and to unrelated pairs; nothing where there are too few texts."""
    lines = []
    if summary["hubness_spearman"] is not None:
        rank = summary["rank_spearman"]
        lines.append(
            f"Length against how often a text is among another's {summary['neighbours']} nearest: "
            f"ρ {summary['hubness_spearman']:+.2f} (p {summary['hubness_p']:.2g})"
            + ("" if rank is None else f"; against its rank where it is unrelated: ρ {rank:+.2f}")
            + f"; neighbours are {summary['neighbour_length_ratio']:.2f} times as long as texts."
        )
    if summary["share_long_above"] is not None:
        kind = "differently labelled" if summary["is_labelled"] else "different"
        lines.append(
            f"{summary['share_long_above']:.0%} of the pairs of {kind} long texts score above the 95th percentile of "
            "such short ones (5% if length did nothing); the highest: embaudit query length-pairs"
        )
    return lines


def _beyond(summary: dict[str, Any]) -> list[str]:
    if not summary["beyond_read"]:
        return []
    return [
        f"{summary['beyond_read']:,} of {summary['texts']:,} texts are longer than the {summary['read_limit']:,} "
        "tokens that were read: they are not on the natural curve."
    ]


def _of_natural(row: dict[str, Any]) -> str:
    share = row["share_of_natural"]
    return "" if share is None else f", {share:.0%} of the natural texts' rise"
