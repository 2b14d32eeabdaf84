"""Sticky tokens on the HTML page."""

from __future__ import annotations

from typing import Any

from embaudit.report.parts import Cell, Section, Table, count, number, share, with_interval

MARKS = {"strong": "bad", "moderate": "warn"}
SEVERITIES = ("strong", "moderate", "weak", "negligible")


def sticky_section(facts: dict[str, Any]) -> Section | None:
    """The worst tokens, how many are how bad, and what the search may have missed; None without the measure."""
    if not facts["sticky"]:
        return None
    first = facts["sticky"][0]
    counts = {row["severity"]: row for row in facts["severities"]}
    notes = [
        f"{first['scanned']:,} of {first['vocabulary_size']:,} vocabulary entries scanned; {facts['validated']} "
        f"candidates and {first['controls']} controls on {first['validation_pairs']} pairs, {first['basis']}. "
        f"u = {first['u']:.4f}.",
        "Severity of the candidates: "
        + ", ".join(f"{counts[name]['tokens'] if name in counts else 0} {name}" for name in SEVERITIES)
        + ".",
    ]
    notes += [_protocol(row) for row in facts["sticky"]]
    notes += [
        f"Of the {row['selected']} tokens of lowest retention {row['share_selected']:.0%} are non-Latin or symbols, of "
        f"all scanned {row['share_scanned']:.1%}: {row['fold']:.1f} times as many (p = {row['p_value']:.1g})."
        for row in facts["enrichment"]
    ]
    notes += [
        f"Reference protocol: {row['sticky']} of {row['candidates']} candidates beyond the threshold; "
        f"{row['scanned']:,} tokens scored."
        for row in facts["reference"]
    ]
    return Section("Sticky tokens", notes, [_tokens(facts["tokens"])])


def _tokens(rows: list[dict[str, Any]]) -> Table:
    return Table(
        ("token", "script", "loss [95 %]", "pull [95 %]", "focal point", "severity", "verdict"),
        [
            (
                row["token"],
                row["script"],
                Cell(with_interval(row["loss"], row["loss_low"], row["loss_high"]), bar=row["loss"]),
                with_interval(row["pull"], row["pull_low"], row["pull_high"]),
                number(row["focal_point"], 2) + (" (u)" if row["sticks_to"] == "u" else ""),
                Cell(row["severity"], mark=MARKS.get(row["severity"], "")),
                _verdict(row),
            )
            for row in rows
        ],
        "Tokens that leave least of a pair's similarity",
        numbers_from=2,
        numbers_to=5,
    )


def _verdict(row: dict[str, Any]) -> str:
    names = [name for name in ("retention", "definition") if row[f"{name}_verdict"] == "sticky"]
    if names:
        return f"sticky ({' and '.join(names)})"
    return "no threshold" if row["retention_verdict"] == "no_threshold" else "not sticky"


def _protocol(row: dict[str, Any]) -> str:
    threshold = "no threshold" if row["threshold"] is None else f"threshold {row['threshold']:.3f}"
    missed = ""
    if row["pilot_shortlisted"]:
        missed = (
            f"; the search missed {row['pilot_missed']} of {row['pilot_shortlisted']} pilot tokens "
            f"({share(row['miss_low'])} to {share(row['miss_high'])})"
        )
    return f"{row['protocol']}: {count(row['sticky'], 'token')} beyond the threshold ({threshold}){missed}."
