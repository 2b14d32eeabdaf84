"""Findings about length: whether long texts look alike, and how much of that comes from averaging alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.rule import Finding, Rows, Rule, interval
from embaudit.measures.length import LengthSettings

# With fewer, a few similar texts make up a quarter of them.
MIN_PAIRS = 100
LONG_PAIRS = Rule(
    "long_pairs",
    "`length_summary.share_long_above`",
    look=0.25,
    problem=0.75,
    is_share=True,
    reason=f"5 % if length had no effect, and five times that shows in rankings; at {{problem}} length matters more "
    f"than content. `not measured` below {MIN_PAIRS} pairs, which is what fifteen texts give",
)
RISE = Rule(
    "length_rise",
    "`length_rise.rise` of truncations",
    look=0.1,
    reason="the same texts are compared, so the content is equal",
)
RANKING = Rule(
    "length_ranking",
    "`length_ranking.difference` of documents as they are read",
    look=0.02,
    is_share=True,
    look_if="from {look} either way, interval clear of 0",
    reason="two more irrelevant documents in a hundred fill the first pages of a collection of thousands. The same "
    "documents cut to one length are shown with it, because short documents may be about other things. Only with "
    "`--corpus retrieval=…`, from ten queries",
)


def findings(rows: Rows, settings: LengthSettings) -> Iterator[Finding]:
    """At most three, from the audit's tables."""
    summaries = rows("length_summary")
    if not summaries:
        return
    known = [row for row in summaries if row["share_long_above"] is not None and row["long_pairs"] >= MIN_PAIRS]
    if known:
        yield _long_pairs(max(known, key=lambda row: (row["share_long_above"], row["corpus"])))
    else:
        yield LONG_PAIRS.finding(
            "not measured",
            "Whether long texts look alike is not known: the corpora have too few of them.",
            advice="Audit with a corpus of long texts: --corpus longdocs=FILE",
        )
    rises = [row for row in rows("length_rise") if row["rise"] is not None]
    cut = [row for row in rises if row["condition"] == "truncation"]
    if cut:
        yield _rise(max(cut, key=lambda row: (row["rise"], row["corpus"])), rises)
    rankings = rows("length_ranking")
    if ranked := [row for row in rankings if row["condition"] == "natural" and row["low"] is not None]:
        worst = max(ranked, key=lambda row: (abs(row["difference"]), row["relevant"]))
        yield _ranking(worst, {row["relevant"]: row for row in rankings if row["condition"] == "cut"})


def _long_pairs(row: dict[str, Any]) -> Finding:
    share, labelled = row["share_long_above"], " with different labels" if row["is_labelled"] else ""
    return LONG_PAIRS.finding(
        LONG_PAIRS.level(share),
        f"{share:.0%} of {row['long_pairs']:,} pairs of long texts{labelled} in {row['corpus']} score higher than "
        "95% of such pairs of short texts (5% if length had no effect).",
        "Long texts look alike, and outrank shorter ones that are better answers.",
        "embaudit query length-pairs",
        share,
    )


def _rise(row: dict[str, Any], rises: list[dict[str, Any]]) -> Finding:
    windows = [
        other["share_of_truncation"]
        for other in rises
        if other["condition"] == "windows" and other["corpus"] == row["corpus"]
    ]
    averaging = ""
    if windows and windows[0] is not None:
        averaging = f" Encoded in separate windows and averaged, they rise {windows[0]:.1f} times as much."
    return RISE.finding(
        RISE.level(row["rise"]),
        f"The same texts in {row['corpus']} have a mean cosine of {row['first_cosine']:.2f} when cut to "
        f"{row['first_length']:.0f} tokens, and {row['last_cosine']:.2f} when cut to {row['last_length']:.0f} "
        f"({row['rise']:+.2f})."
        f"{averaging}",
        "Similarities of long texts and of short texts are not on the same scale.",
        "Set separate thresholds for short and long texts.",
        row["rise"],
    )


def _ranking(row: dict[str, Any], cut: dict[str, dict[str, Any]]) -> Finding:
    is_real = row["low"] > 0 or row["high"] < 0
    control = ""
    if other := cut.get(row["relevant"]):
        control = f" With all documents cut to {other['read']} tokens the difference is {other['difference']:+.1%}."
    favoured = "Short" if row["difference"] > 0 else "Long"
    return RANKING.finding(
        RANKING.level(abs(row["difference"])) if is_real else "ok",
        f"{row['by_short']:.1%} of the short and {row['by_long']:.1%} of the long irrelevant documents in "
        f"{row['corpus']} outrank a {row['relevant']} document that answers the query "
        f"({row['difference']:+.1%}{interval(row['low'], row['high'], '+.1%')}).{control}",
        f"{favoured} documents come up for queries that they do not answer.",
        "Index passages of about the same length.",
        *(row["difference"], row["low"], row["high"]),
    )
