"""What sticky tokens come to: how bad the worst are, what one copy does, and what the search may have missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from embaudit.finding import Finding, Level, Rows, interval, level_from, unless_ok
from embaudit.measures.sticky.scores import SEVERITY_FROM_LOSS
from embaudit.measures.sticky.settings import StickySettings

_, MODERATE, WEAK = (least for least, _ in SEVERITY_FROM_LOSS)
# The share of the tokens that belong on the shortlist which a search may miss.
MISSED = 0.2
SCRIPTS_NAMED = 3


def findings(rows: Rows, settings: StickySettings) -> Iterator[Finding]:
    """At most three, from the audit's tables."""
    # Effects are the same under both protocols.
    effects = {row["token_id"]: row for row in rows("sticky_validation") if row["role"] == "candidate"}
    tokens = {row["token_id"]: row for row in rows("token") if row["token_id"] in effects}
    candidates = sorted(effects.values(), key=lambda row: (-row["loss"], row["token_id"]))
    counts = {row["severity"]: row for row in rows("sticky_severity")}
    if candidates:
        yield _worst(candidates, tokens, settings.copies, counts.get("moderate"))
    doses = [row for row in rows("sticky_dose") if row["role"] == "candidate"]
    if any(row["copies"] == 1 for row in doses):
        yield _dose(doses, tokens)
    for row in rows("sticky_summary"):
        if row["protocol"] == "retention" and row["search"] == "sequential":
            yield _missed(row)


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
    # Most vocabularies have strong tokens, and it takes many copies: a reason to look, and none to stop.
    level = level_from(worst["loss"], look=MODERATE)
    return Finding(
        level,
        f"{copies} copies of {tokens[worst['token_id']]['token']!r} in a text take away {_share(worst['loss'])}"
        f"{interval(worst['loss_low'], worst['loss_high'], '.0%')} of what its similarities say; "
        f"{_how_many(len(severe), len(candidates), moderate)}{f' (most found: {named})' if named else ''}.",
        name="worst_token",
        value=worst["loss"],
        low=worst["loss_low"],
        high=worst["loss_high"],
        **unless_ok(
            level,
            "Texts that hold many of them (broken extraction, poisoning, scripts that the model hardly knows) look "
            "alike, whatever they say.",
            "embaudit screen FILE",
        ),
    )


def _how_many(severe: int, candidates: int, moderate: dict[str, Any] | None) -> str:
    """Of the vocabulary where a random sample tells, else of the candidates, whose number is the shortlist's."""
    if moderate is None or moderate["estimated"] is None:
        return f"{severe} of the {candidates} validated candidates take a quarter or more"
    between = interval(moderate["estimated_low"], moderate["estimated_high"], ",.0f")
    return (
        f"about {moderate['estimated']:,.0f}{between} tokens of the vocabulary take a quarter or more, of which "
        f"{severe} were validated"
    )


def _dose(doses: list[dict[str, Any]], tokens: dict[int, dict[str, Any]]) -> Finding:
    """What one copy does, of the tokens whose dose was measured: ordinary texts hold one."""
    worst = max((row for row in doses if row["copies"] == 1), key=lambda row: (row["loss"], -row["token_id"]))
    curve = sorted((row for row in doses if row["token_id"] == worst["token_id"]), key=lambda row: row["copies"])
    more = ", ".join(f"{row['copies']} copies take {_share(row['loss'])}" for row in curve if row["copies"] > 1)
    level = level_from(worst["loss"], look=WEAK)
    return Finding(
        # On few pairs and without an interval: no reason to stop.
        level,
        f"One copy of {tokens[worst['token_id']]['token']!r} takes away {_share(worst['loss'])}, the most of the "
        f"tokens whose dose was measured{f' ({more})' if more else ''}.",
        "A single copy already moves a text." if level == "look" else "A single copy hardly moves a text.",
        name="one_copy",
        value=worst["loss"],
    )


def _share(loss: float) -> str:
    """A loss in words: below nothing and above everything are noise."""
    return f"{min(max(loss, 0.0), 1.0):.0%}"


def _missed(summary: dict[str, Any]) -> Finding:
    """How much a search that did not look at everything may have missed."""
    belong, missed, low, high = (
        summary[name] for name in ("pilot_shortlisted", "pilot_missed", "miss_low", "miss_high")
    )
    level: Level = "not measured"
    found = "It is not known how much the search missed: no random token belongs on its list."
    if belong:
        level = "ok" if high <= MISSED else "look" if low >= MISSED else "not measured"
        found = (
            f"The search missed {missed} of {belong} random tokens that belong on its list "
            f"({summary['miss_rate']:.0%}{interval(low, high, '.0%')})."
        )
    return Finding(
        level,
        found,
        name="search",
        value=summary["miss_rate"] if belong else None,
        low=low if belong else None,
        high=high if belong else None,
        **unless_ok(
            level,
            "There may be bad tokens that are not on it.",
            "embaudit audit CHECKPOINT --profile standard (or --exhaustive)",
        ),
    )
