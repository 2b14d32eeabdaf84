"""Findings about second-order collapse: how much of the texts was read, and what mean pooling discards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.rule import Finding, Rows, Rule, interval
from embaudit.measures.socm import SocmSettings

CUT_TEXTS = Rule(
    "cut_texts",
    "`socm_summary.truncated` / (`texts` + `undefined`)",
    look=0.05,
    problem=0.5,
    is_share=True,
    reason="what is cut off is in no vector, and beyond one text in twenty someone will search for it; if most texts "
    "are cut, the checkpoint reads different texts from the ones it is asked about",
)
THROWN_AWAY = Rule(
    "thrown_away",
    "`socm_summary.socm_mean`",
    reason="always `ok`: no value is good or bad in itself, and the value mostly orders corpora by length. The values "
    "for texts cut to one length (`socm_cut`) are shown with it, as is a note if most texts have tr Σ > 2. `not "
    "measured` if the checkpoint does not use mean pooling",
)


def findings(rows: Rows, settings: SocmSettings) -> Iterator[Finding]:
    """At most two, from the audit's tables."""
    corpora = rows("socm_summary")
    if not corpora:
        return
    yield _cut(corpora)
    if all(row["pooling_is_mean"] for row in corpora):
        yield _discarded(corpora, rows("socm_cut"))
    else:
        yield THROWN_AWAY.finding(
            "not measured",
            "What this checkpoint's pooling discards is not known: SOCM is about mean pooling, which it does not use.",
        )


def _cut(corpora: list[dict[str, Any]]) -> Finding:
    def share(row: dict[str, Any]) -> float:
        # Texts with an undefined SOCM were read, too.
        return float(row["truncated"] / (row["texts"] + row["undefined"]))

    worst = max(corpora, key=lambda row: (share(row), row["corpus"]))
    names = " and ".join(row["corpus"] for row in corpora)
    return CUT_TEXTS.finding(
        CUT_TEXTS.level(share(worst)),
        f"{worst['truncated']:,} of {worst['texts'] + worst['undefined']:,} texts in {worst['corpus']} are truncated "
        "to the checkpoint's length limit."
        if share(worst)
        else f"No text in {names} is truncated: the checkpoint reads all of them in full.",
        "Nothing beyond the cut is in any vector, so no search can find it.",
        "Split long texts before encoding.",
        share(worst),
    )


def _discarded(corpora: list[dict[str, Any]], cuts: list[dict[str, Any]]) -> Finding:
    worst = max(corpora, key=lambda row: (row["socm_mean"], row["corpus"]))
    each = ", ".join(
        f"{row['socm_mean']:.3f}{interval(row['socm_low'], row['socm_high'])} on {row['corpus']}" for row in corpora
    )
    outside = [row["corpus"] for row in corpora if row["share_trace_above_bound"] > 0.5]
    beyond = (
        f" Most texts in {' and '.join(outside)} are outside the range that SOCM is meant for: the vectors of "
        "their tokens vary too much (a total variance tr Σ above 2), so SOCM can be larger than 1."
        if outside
        else ""
    )
    return THROWN_AWAY.finding(
        "ok",
        f"Second-order collapse (SOCM), the difference between texts that mean pooling discards, is {each}.",
        value=worst["socm_mean"],
        low=worst["socm_low"],
        high=worst["socm_high"],
        note=f"Compare it between checkpoints, on the same texts at the same length: across corpora it mostly reflects "
        f"length.{_at_length(worst, cuts)}{beyond}",
    )


def _at_length(row: dict[str, Any], cuts: list[dict[str, Any]]) -> str:
    """The corpus's values at fixed lengths; empty if there are none."""
    own = sorted((cut for cut in cuts if cut["corpus"] == row["corpus"]), key=lambda cut: int(cut["tokens"]))
    if not own:
        return ""
    values = ", ".join(f"{cut['socm_mean']:.3f} at {cut['tokens']}" for cut in own)
    return f" Cut to a fixed length, the texts in {row['corpus']} have {values} tokens."
