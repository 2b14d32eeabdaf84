"""What second-order collapse comes to: how much of the texts was read, and what mean pooling throws away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.finding import Finding, Rows, interval, level_from, unless_ok
from embaudit.measures.socm.settings import SocmSettings

# Of a corpus: what is cut off is not in the vector. Beyond one text in twenty somebody will search for it; where most
# are cut, the checkpoint reads other texts than those that it is asked about.
CUT_LOOK, CUT_PROBLEM = 0.05, 0.5


def findings(rows: Rows, settings: SocmSettings) -> Iterator[Finding]:
    """At most two, from the audit's tables."""
    corpora = rows("socm_summary")
    if not corpora:
        return
    yield _cut(corpora)
    if all(row["pooling_is_mean"] for row in corpora):
        yield _thrown_away(corpora, rows("socm_cut"))
    else:
        yield Finding(
            "not measured",
            "It is not known what this checkpoint's own pooling throws away: SOCM is about mean pooling, which it does "
            "not use.",
            name="thrown_away",
        )


def _cut(corpora: list[dict[str, Any]]) -> Finding:
    def share(row: dict[str, Any]) -> float:
        # What has no mean was read, too.
        return float(row["truncated"] / (row["texts"] + row["undefined"]))

    worst = max(corpora, key=lambda row: (share(row), row["corpus"]))
    level = level_from(share(worst), CUT_LOOK, CUT_PROBLEM)
    names = " and ".join(row["corpus"] for row in corpora)
    return Finding(
        level,
        f"{worst['truncated']:,} of {worst['texts'] + worst['undefined']:,} texts of {worst['corpus']} are cut to what "
        "the checkpoint reads."
        if share(worst)
        else f"No text of {names} is cut: the checkpoint reads them whole.",
        name="cut_texts",
        value=share(worst),
        **unless_ok(
            level,
            "What is beyond the cut is in no vector: no search finds it.",
            "Split long texts before they are encoded.",
        ),
    )


def _thrown_away(corpora: list[dict[str, Any]], cuts: list[dict[str, Any]]) -> Finding:
    worst = max(corpora, key=lambda row: (row["socm_mean"], row["corpus"]))
    each = ", ".join(
        f"{row['socm_mean']:.3f}{interval(row['socm_low'], row['socm_high'])} on {row['corpus']}" for row in corpora
    )
    outside = [row["corpus"] for row in corpora if row["share_trace_above_bound"] > 0.5]
    beyond = (
        f" Most texts of {' and '.join(outside)} lie outside of what SOCM is made for: their tokens are further from "
        "their mean than the mean from the origin (tr Σ > 2), and a value is no share of anything there."
        if outside
        else ""
    )
    return Finding(
        # No value is good or bad in itself: it grows with the length of texts.
        "ok",
        f"Second-order collapse (SOCM) is {each}.",
        f"To be compared between checkpoints on the same texts, at one length: it mostly orders corpora by "
        f"length.{_at_length(worst, cuts)}{beyond}",
        name="thrown_away",
        value=worst["socm_mean"],
        low=worst["socm_low"],
        high=worst["socm_high"],
    )


def _at_length(row: dict[str, Any], cuts: list[dict[str, Any]]) -> str:
    """The corpus's values at fixed lengths; empty where there are none."""
    own = sorted((cut for cut in cuts if cut["corpus"] == row["corpus"]), key=lambda cut: int(cut["tokens"]))
    if not own:
        return ""
    values = ", ".join(f"{cut['socm_mean']:.3f} at {cut['tokens']}" for cut in own)
    return f" Cut to one length, texts of {row['corpus']} have {values} tokens."
