"""Findings about sticky tokens: how bad the worst are, what one copy does, and what the search may have missed.

Sticky tokens on a page: the worst of them, how many there are by severity, and what the search may have missed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table, count
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval
from embaudit.measures.sticky import StickySettings, charts
from embaudit.measures.sticky.tables import SEVERITY_FROM_LOSS
from embaudit.measures.sticky.verdicts import MIN_FOR_THRESHOLD
from embaudit.words.estimate import Estimate

_, MODERATE, WEAK = (least for least, _ in SEVERITY_FROM_LOSS)
WORST_TOKEN = Rule(
    "worst_token",
    "`sticky_validation.loss` of the worst candidate",
    look=MODERATE,
    reason="the severity *moderate*: a quarter of what similarities say is gone. Never a problem by itself: it takes "
    "many copies, and most vocabularies have such tokens. The count is the estimate for the whole vocabulary "
    "(`sticky_severity`) where a random sample provides one",
)
ONE_COPY = Rule(
    "one_copy",
    "`sticky_dose.loss` at one copy",
    look=WEAK,
    reason="ordinary texts contain one copy. Measured on few pairs and without an interval, so never a problem. Only "
    "where the dose was measured",
)
SEARCH = Rule(
    "search",
    "`sticky_summary.miss_rate`, retention",
    look=0.2,
    look_if="interval above {look}",
    reason="the share of tokens that belong on the shortlist but are not on it. `not measured` if the interval "
    "contains {look}, or if the random pilot had no such token: too few to tell. Omitted for an exhaustive search",
)
COULD_NOT_SEARCH = Rule(
    "not_searched",
    "`sticky_validation`",
    reason="`not measured`: no two of the sentences are less alike than random tokens are, or all are equally alike, "
    "so that no copy of a token can bring them closer",
)
SCRIPTS_NAMED = 3


def findings(rows: Rows, settings: StickySettings) -> Iterator[Finding]:
    """At most three, from the audit's tables."""
    # Effects are the same under both protocols.
    effects = {row["token_id"]: row for row in rows("sticky_validation") if row["role"] == "candidate"}
    tokens = {row["token_id"]: row for row in rows("token") if row["token_id"] in effects}
    candidates = sorted(effects.values(), key=lambda row: (-row["loss"], row["token_id"]))
    counts = {row["severity"]: row for row in rows("sticky_severity")}
    if not candidates:
        yield COULD_NOT_SEARCH.finding(
            "not measured",
            "Sticky tokens could not be looked for: no two of the sentences are less alike than random tokens are, or "
            "all are equally alike.",
            "Either the sentences are too similar, or the checkpoint gives all texts nearly one vector.",
            "Give unrelated sentences: --corpus sts=FILE",
        )
        return
    yield _worst(candidates, tokens, settings.copies, counts.get("moderate"))
    doses = [row for row in rows("sticky_dose") if row["role"] == "candidate"]
    if any(row["copies"] == 1 for row in doses):
        yield _dose(doses, tokens)
    for row in rows("sticky_summary"):
        if row["protocol"] == "retention" and row["search"] == "sequential":
            yield _miss_rate(row)


def _worst(
    candidates: list[dict[str, Any]],
    tokens: dict[int, dict[str, Any]],
    copies: int,
    moderate: dict[str, Any] | None,
) -> Finding:
    worst = candidates[0]
    severe = [row for row in candidates if row["loss"] >= MODERATE]
    scripts = Counter(tokens[row["token_id"]]["script"] for row in severe).most_common(SCRIPTS_NAMED)
    named = ", ".join(f"{amount} {script}" for script, amount in scripts)
    return WORST_TOKEN.finding(
        WORST_TOKEN.level(worst["loss"]),
        f"{copies} copies of {tokens[worst['token_id']]['token']!r} in a text erase {_share(worst['loss'])}"
        f"{interval(worst['loss_low'], worst['loss_high'], '.0%')} of the differences between its similarities to "
        f"other texts; {_how_many(len(severe), len(candidates), moderate)}"
        f"{f' (top scripts: {named})' if named else ''}.",
        "Texts that contain many of them (broken extraction, poisoning, scripts the model barely knows) look alike, "
        "whatever they say.",
        "embaudit screen FILE",
        _within(worst["loss"]),
        *(worst[f"loss{end}"] for end in ("_low", "_high")),
    )


def _how_many(severe: int, candidates: int, moderate: dict[str, Any] | None) -> str:
    """Over the vocabulary if a random sample allows an estimate, otherwise among the shortlisted candidates."""
    if moderate is None or moderate["estimated"] is None:
        return f"{severe} of the {candidates} validated candidates erase a quarter or more"
    between = interval(moderate["estimated_low"], moderate["estimated_high"], ",.0f")
    return (
        f"about {moderate['estimated']:,.0f}{between} tokens in the vocabulary erase a quarter or more, of which "
        f"{severe} were validated"
    )


def _dose(doses: list[dict[str, Any]], tokens: dict[int, dict[str, Any]]) -> Finding:
    """The worst effect of a single copy, which is what ordinary texts contain, among the tokens of the dose curve."""
    worst = max((row for row in doses if row["copies"] == 1), key=lambda row: (row["loss"], -row["token_id"]))
    curve = sorted((row for row in doses if row["token_id"] == worst["token_id"]), key=lambda row: row["copies"])
    more = ", ".join(f"{row['copies']} copies: {_share(row['loss'])}" for row in curve if row["copies"] > 1)
    loss = _within(worst["loss"])
    level = ONE_COPY.level(loss)
    token = f"{tokens[worst['token_id']]['token']!r}{f' ({more})' if more else ''}"
    return ONE_COPY.finding(
        level,
        f"Of the tokens tested at several doses, {token} erases most with one copy: {_share(loss)} of the "
        "differences between a text's similarities."
        if round(loss, 2) > 0
        else f"No token tested at several doses erases a measurable share of the differences between a text's "
        f"similarities with one copy; {token} comes first.",
        advice="embaudit screen FILE",
        value=loss,
        note="A single copy already moves a text." if level == "look" else "A single copy hardly moves a text.",
    )


def _within(loss: float) -> float:
    """A loss as it is told; values outside 0–100 % are noise."""
    return min(max(loss, 0.0), 1.0)


def _share(loss: float) -> str:
    return f"{_within(loss):.0%}"


def _miss_rate(summary: dict[str, Any]) -> Finding:
    """How much a non-exhaustive search may have missed."""
    belong, missed, low, high = (
        summary[name] for name in ("pilot_shortlisted", "pilot_missed", "miss_low", "miss_high")
    )
    level: Level = "not measured"
    found = "How much the search missed is not known: none of its random sample of tokens belongs on the shortlist."
    if belong:
        level = "ok" if high <= SEARCH.look else "look" if low >= SEARCH.look else "not measured"
        found = (
            f"Of a random sample of tokens, {belong} belong on the shortlist, and the search had found "
            f"{belong - missed} of them; of all such tokens it missed {summary['miss_rate']:.0%}"
            f"{interval(low, high, '.0%')}."
        )
    return SEARCH.finding(
        level,
        found,
        "Bad tokens may be missing from the shortlist.",
        "`embaudit audit CHECKPOINT --profile standard` (or `--set sticky.exhaustive=true`)",
        *((summary["miss_rate"], low, high) if belong else ()),
    )


FACTS = {
    "sticky": (
        "SELECT sticky_summary.*, audit.dtype FROM sticky_summary JOIN audit USING (audit_id) "
        "WHERE audit_id = ? ORDER BY protocol"
    ),
    "tokens": "SELECT * FROM sticky_token WHERE audit_id = ? ORDER BY loss DESC, token_id LIMIT 15",
    "severities": "SELECT * FROM sticky_severity WHERE audit_id = ? ORDER BY least_loss DESC",
    "harmless": (
        "SELECT count(*) AS tokens FROM sticky_token WHERE audit_id = ? AND severity = 'negligible' "
        "AND (retention_outlier = 'yes' OR definition_outlier = 'yes')"
    ),
    "doses": (
        "SELECT token.token, dose.copies, dose.loss FROM sticky_dose AS dose "
        "JOIN audit USING (audit_id) JOIN token ON token.checkpoint_id = audit.checkpoint_id "
        "AND token.token_id = dose.token_id WHERE dose.audit_id = ? AND dose.role = 'candidate' "
        "ORDER BY dose.token_id, dose.copies"
    ),
    "reference": "SELECT * FROM sticky_reference_summary WHERE audit_id = ?",
    "enrichment": (
        "SELECT * FROM sticky_enrichment WHERE audit_id = ? AND selection = 'lowest_100' "
        "AND attribute = 'non_latin_or_symbol' ORDER BY value"
    ),
    "shapes": "SELECT * FROM sticky_shape WHERE audit_id = ? ORDER BY space DESC",
    **charts.FACTS,
}

TOKENS_IN_SHORT = 5
SEVERITIES = {
    **{"severity": Column("at least"), "least_loss": Column("loss from", ".2f")},
    "estimated": Column("in the vocabulary, estimated [95 %]", ",.0f", ",.0f"),
    **{"validated": Column("validated", ",d"), "confirmed": Column("confirmed", ",d")},
    "is_capped": Column("", is_prose=True, words={True: "more than were validated", False: ""}),
}
COLUMNS = {
    **{"token": Column("token"), "token_id": Column("id", "d"), "script": Column("script")},
    **{"loss": Column("loss [95 %]", ".3f", is_bar=True), "pull": Column("pull [95 %]", ".3f")},
    "focal": Column("focal point", is_right=True),
    "severity": Column("severity", levels={"strong": "problem", "moderate": "look"}),
    "outlier": Column("outlier among candidates", is_prose=True),
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Sticky tokens", list(_parts(facts))) if facts["sticky"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    first = facts["sticky"][0]
    yield _scan(first)
    if in_half := _in_half(first):
        yield in_half
    if facts["sticky_candidates"]:
        yield charts.severity_chart(facts)
    yield Table.of(
        COLUMNS,
        [_token(row) for row in facts["tokens"]],
        f"Tokens with the largest loss ({first['basis']})",
        key="sticky-tokens",
        headline=TOKENS_IN_SHORT,
        more="embaudit query worst-tokens",
    )
    yield from charts.charts(facts)
    if facts["doses"]:
        yield _doses(facts["doses"])
    if facts["severities"]:
        yield Table.of(
            SEVERITIES,
            facts["severities"],
            f"Number of tokens by severity, estimated from a random sample of {first['pilot']:,}",
            key="sticky-severities",
        )
    harmless = facts["harmless"][0]["tokens"]
    if harmless:
        are = "is" if harmless == 1 else "are"
        yield f"{count(harmless, 'outlier')} among the candidates {are} negligible in absolute terms."
    for row in facts["sticky"]:
        yield _protocol(row)
    for row in facts["enrichment"]:
        yield (
            f"Of the {count(row['selected'], 'token')} with the lowest retention, {row['share_selected']:.0%} are "
            f"non-Latin or symbols, against {row['share_scanned']:.1%} of all searched tokens: {row['fold']:.1f} times "
            f"as many (p = {row['p_value']:.1g})."
        )
    for row in facts["shapes"]:
        if row["gaussian_distance"] is not None:
            yield _shape(row)
    for row in facts["reference"]:
        beyond = f"no threshold (fewer than {MIN_FOR_THRESHOLD} candidates)"
        if row["threshold"] is not None:
            beyond = f"{row['sticky']} of them above the threshold {row['threshold']:.3f}"
        yield (
            f"Reference protocol: {row['scanned']:,} tokens scored on {row['scoring_pairs']} pairs, "
            f"{row['candidates']} candidates validated on {row['validation_pairs']}: {beyond}; {row['encodes']:,} "
            "encodes. List them: embaudit query reference-tokens"
        )


def _scan(row: dict[str, Any]) -> str:
    spent = ", ".join(
        f"{one['tokens']:,} with at least {count(one['draws'], 'draw')}" for one in json.loads(row["rungs"])
    )
    saved = ""
    if row["search"] == "sequential":
        saved = f" ({row['exhaustive_encodes'] / row['encodes']:.1f} times fewer than exhaustively)"
    # Null in audits of older versions; the interval also where every entry was encoded.
    against = "" if row["anchors"] is None else f", each compared with {row['anchors']:,} sentences"
    return (
        f"{row['scanned']:,} of {row['vocabulary_size']:,} vocabulary entries scanned ({row['eligible']:,} can occur "
        f"in a text): {spent}{against}; {row['encodes']:,} encodes{saved}. u = {Estimate.of(row, 'u'):.4f}."
    )


def _in_half(row: dict[str, Any]) -> str:
    """What was computed in half precision; empty if nothing was, or the whole audit."""
    # Null in audits of older versions, which validated in their own precision.
    scan, validation, own = row["scan_dtype"], row["validation_dtype"], row["dtype"]
    if scan == own:
        return ""
    ranks = "" if row["rank_correlation"] is None else f" (ranks agree with {own} to {row['rank_correlation']:.3f})"
    if validation in (None, own):
        return f"Candidates were searched in {scan}{ranks}; everything else, and all verdicts, are in {own}."
    moved = "" if row["validation_difference"] is None else f" by at most {row['validation_difference']:.0%}"
    return (
        f"Candidates were searched in {scan}{ranks}, and validated in {validation}, which moves their figures{moved} "
        f"of a 95 % interval's width; u and everything else are in {own}. All in {own}: --set sticky.scan_dtype={own}"
    )


def _shape(row: dict[str, Any]) -> str:
    """Distribution of the vocabulary's similarities, against the Gaussian that the paper assumes."""
    what = "input embeddings" if row["space"] == "input_embeddings" else "vocabulary entries encoded as texts"
    distance = Estimate.of(row, "gaussian_distance").within(0.0, inf)
    return (
        f"Similarities between {row['tokens']:,} {what} have mean {row['mean']:.3f}, standard deviation "
        f"{row['sd']:.3f}, skewness {row['skewness']:.2f} and excess kurtosis {row['excess_kurtosis']:.2f}; the "
        f"largest difference from a Gaussian's cumulative distribution is {distance:.1%}."
    )


def _doses(rows: list[dict[str, Any]]) -> Table:
    """Loss by number of copies; severity is graded at eight."""
    copies = sorted({row["copies"] for row in rows})
    by_token: dict[str, dict[int, float]] = {}
    for row in rows:
        by_token.setdefault(row["token"], {})[row["copies"]] = row["loss"]
    # Worst first, by the largest dose.
    worst = sorted(by_token, key=lambda token: -by_token[token].get(copies[-1], 0.0))
    return Table(
        (Column("token"), *(Column(f"× {n}", ".2f") for n in copies)),
        [(token, *(by_token[token].get(n) for n in copies)) for token in worst],
        "Loss of the worst tokens, by number of copies in a sentence",
        key="sticky-dose",
        more="embaudit query sticky-dose",
    )


def _token(row: dict[str, Any]) -> dict[str, Any]:
    focal = "" if row["focal_point"] is None else f"{row['focal_point']:.2f}{' (u)' if row['sticks_to'] == 'u' else ''}"
    return {**row, "focal": focal, "outlier": _outlier(row)}


def _outlier(row: dict[str, Any]) -> str:
    """The protocols under which it is an outlier among the candidates; how bad it is, severity says."""
    names = [name for name in ("retention", "definition") if row[f"{name}_outlier"] == "yes"]
    if names:
        return f"by {' and '.join(names)}"
    return "too few candidates" if row["retention_outlier"] == "no_threshold" else "no"


def _protocol(row: dict[str, Any]) -> str:
    """One protocol's threshold, and how much its search may have missed."""
    threshold = "no threshold" if row["threshold"] is None else f"threshold {row['threshold']:.3f}"
    missed = ""
    if row["pilot_shortlisted"]:
        missed = (
            f"; missed by the search: {row['pilot_missed']} of the {count(row['pilot_shortlisted'], 'token')} in a "
            f"random sample of {row['pilot']:,} that belong on its shortlist ({row['miss_rate']:.0%}, 95 % interval "
            f"{row['miss_low']:.0%} to {row['miss_high']:.0%})"
        )
    trusted = "".join(
        f"; {said} {Estimate.of(row, name):.2f}"
        for name, said in (("reliability", "reliability"), ("prediction", "prediction from input embeddings"))
        if row.get(f"{name}_low") is not None
    )
    return (
        f"{row['protocol'].capitalize()}: {count(row['outliers'], 'token')} beyond the threshold "
        f"({threshold}){trusted}{missed}."
    )
