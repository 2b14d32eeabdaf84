"""Sticky tokens on a page: the worst of them, how many are how bad, and what the search may have missed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from embaudit.measures.sticky.thresholds import MIN_FOR_THRESHOLD
from embaudit.page.model import Column, Estimate, Part, Section, Table, count

# What the section is made of: rows by name, of one audit.
FACTS = {
    "sticky": "SELECT * FROM sticky_summary WHERE audit_id = ? ORDER BY protocol",
    "tokens": "SELECT * FROM sticky_token WHERE audit_id = ? ORDER BY loss DESC, token_id LIMIT 15",
    "severities": (
        "SELECT severity, count(*) AS tokens, "
        "count(*) FILTER (retention_verdict = 'sticky' OR definition_verdict = 'sticky') AS sticky "
        "FROM sticky_token WHERE audit_id = ? GROUP BY ALL ORDER BY severity"
    ),
    "reference": "SELECT * FROM sticky_reference_summary WHERE audit_id = ?",
    "enrichment": (
        "SELECT * FROM sticky_enrichment WHERE audit_id = ? AND selection = 'lowest_100' "
        "AND attribute = 'non_latin_or_symbol' ORDER BY value"
    ),
}

TOKENS_IN_SHORT = 5
SEVERITIES = ("strong", "moderate", "weak", "negligible")
COLUMNS = (
    Column("token"),
    Column("id", "d"),
    Column("script"),
    Column("loss [95 %]", ".3f", is_bar=True),
    Column("pull [95 %]", ".3f"),
    Column("focal point", is_right=True),
    Column("severity", levels={"strong": "problem", "moderate": "look"}),
    Column("outlier among candidates", is_prose=True),
)


def section(facts: dict[str, Any]) -> Section | None:
    """None without the measure."""
    return Section("Sticky tokens", list(_parts(facts))) if facts["sticky"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    first = facts["sticky"][0]
    yield _scan(first, sum(row["tokens"] for row in facts["severities"]))
    yield Table(
        COLUMNS,
        [_token(row) for row in facts["tokens"]],
        f"Tokens that leave least of a pair's similarity ({first['basis']})",
        key="sticky-tokens",
        headline=TOKENS_IN_SHORT,
        more="embaudit query worst-tokens",
    )
    by_name = {row["severity"]: row for row in facts["severities"]}
    tokens = {name: by_name[name]["tokens"] if name in by_name else 0 for name in SEVERITIES}
    yield f"Severity of the candidates: {', '.join(f'{amount:,} {name}' for name, amount in tokens.items())}."
    harmless = by_name.get("negligible", {}).get("sticky", 0)
    if harmless:
        yield f"{count(harmless, 'outlier')} among them {'is' if harmless == 1 else 'are'} negligible all the same."
    for row in facts["sticky"]:
        yield _protocol(row)
    for row in facts["enrichment"]:
        yield (
            f"Of the {row['selected']} tokens of lowest retention {row['share_selected']:.0%} are non-Latin or "
            f"symbols, of all scanned {row['share_scanned']:.1%}: {row['fold']:.1f} times as many "
            f"(p = {row['p_value']:.1g})."
        )
    for row in facts["reference"]:
        beyond = f"no threshold (fewer than {MIN_FOR_THRESHOLD} candidates)"
        if row["threshold"] is not None:
            beyond = f"{row['sticky']} of them beyond the threshold {row['threshold']:.3f}"
        yield (
            f"Reference protocol: {row['scanned']:,} tokens scored on {row['scoring_pairs']} pairs, "
            f"{row['candidates']} candidates on {row['validation_pairs']}: {beyond}; {row['encodes']:,} encodes. "
            "List them: embaudit query reference-tokens"
        )


def _scan(row: dict[str, Any], validated: int) -> str:
    rungs = ", ".join(f"{rung['tokens']:,} × {rung['draws']}" for rung in json.loads(row["rungs"]))
    saved = ""
    if row["search"] == "sequential":  # null in audits from before there was a search
        saved = f" ({row['exhaustive_encodes'] / row['encodes']:.1f} times fewer than exhaustive)"
    return (
        f"{row['scanned']:,} of {row['vocabulary_size']:,} vocabulary entries scanned ({row['eligible']:,} can stand "
        f"in a text); tokens × draws: {rungs}; {validated} candidates and {row['controls']} controls on "
        f"{row['validation_pairs']} pairs; {row['encodes']:,} encodes{saved}. u = {row['u']:.4f}."
    )


def _token(row: dict[str, Any]) -> tuple[Any, ...]:
    focal = "" if row["focal_point"] is None else f"{row['focal_point']:.2f}{' (u)' if row['sticks_to'] == 'u' else ''}"
    return (
        *(row["token"], row["token_id"], row["script"]),
        Estimate(row["loss"], row["loss_low"], row["loss_high"]),
        Estimate(row["pull"], row["pull_low"], row["pull_high"]),
        *(focal, row["severity"], _outlier(row)),
    )


def _outlier(row: dict[str, Any]) -> str:
    """Beyond which protocols' thresholds it is, which compare candidates with each other: severity says how bad."""
    names = [name for name in ("retention", "definition") if row[f"{name}_verdict"] == "sticky"]
    if names:
        return f"by {' and '.join(names)}"
    return "too few candidates" if row["retention_verdict"] == "no_threshold" else "no"


def _protocol(row: dict[str, Any]) -> str:
    """One protocol's threshold, and how much its search may have missed."""
    threshold = "no threshold" if row["threshold"] is None else f"threshold {row['threshold']:.3f}"
    missed = ""
    if row["pilot_shortlisted"]:
        missed = (
            f"; missed by the search: {row['pilot_missed']} of {row['pilot_shortlisted']} tokens of a random pilot of "
            f"{row['pilot']:,} that belong on its shortlist ({row['miss_rate']:.0%}, 95 % interval "
            f"{row['miss_low']:.0%} to {row['miss_high']:.0%})"
        )
    return (
        f"{row['protocol'].capitalize()}: {count(row['sticky'], 'token')} beyond the threshold ({threshold}){missed}."
    )
