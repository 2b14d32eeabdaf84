"""Findings about sticky tokens: how bad the worst are, what one copy does, and what the search may have missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from embaudit.declared.rule import Finding, Level, Rows, Rule, interval
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.moments import SEVERITY_FROM_LOSS

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
        *(worst[f"loss{end}"] for end in ("", "_low", "_high")),
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
    level = ONE_COPY.level(worst["loss"])
    token = f"{tokens[worst['token_id']]['token']!r}{f' ({more})' if more else ''}"
    return ONE_COPY.finding(
        level,
        f"Of the tokens tested at several doses, {token} erases most with one copy: {_share(worst['loss'])} of the "
        "differences between a text's similarities."
        if round(worst["loss"], 2) > 0
        else f"No token tested at several doses erases a measurable share of the differences between a text's "
        f"similarities with one copy; {token} comes first.",
        advice="embaudit screen FILE",
        value=worst["loss"],
        note="A single copy already moves a text." if level == "look" else "A single copy hardly moves a text.",
    )


def _share(loss: float) -> str:
    """A loss as a percentage; values outside 0–100 % are noise."""
    return f"{min(max(loss, 0.0), 1.0):.0%}"


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
