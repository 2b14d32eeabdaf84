"""What the table of surface shows: findings, and the section of a page.

Does a form that means the same find the same, and what does a typo cost?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval
from embaudit.measures.surface import SurfaceSettings
from embaudit.measures.surface.changes import MISTAKES
from embaudit.statistics import MIN_UNITS

Row = dict[str, Any]
# An interval that reaches so many times the loss says nothing about it.
UNCLEAR = 2
SAME_MEANING = Rule(
    "same_meaning",
    "`surface.ndcg_change` of case, punctuation, unicode, spaces",
    look=-0.02,
    worse="lower",
    look_if="from {look}, interval below 0, for any change",
    reason="two points of nDCG@10 is the difference that choosing among good checkpoints makes. 0 in all but full "
    "width and homoglyphs for all-MiniLM-L6-v2 (−.86, −.84) and paraphrase-MiniLM-L3-v2 (−.80, −.79), whose "
    "tokenizers cannot write these. A change counts from ten queries (those that share no relevant document) and if "
    f"its interval stays above {UNCLEAR} × {{look}}; `not measured` if none does",
)
TYPOS = Rule(
    "typos",
    "`surface.ndcg_change` of typos and spelling",
    look=-0.1,
    worse="lower",
    look_if=SAME_MEANING.look_if,
    reason="one typo in a query costs .00 to .05 (all-MiniLM-L6-v2), .03 to .06 (paraphrase-MiniLM-L3-v2), and TF-IDF, "
    "which loses the word, .00 to .04: twice as much is more than a typo's ordinary price. `not measured` as above, at "
    f"{UNCLEAR} × {{look}}",
)
# So large a share of queries that the tokenizer cannot write explains the loss.
MOST = 0.5
MORE = "Audit with a collection of at least 100 judged queries: --corpus retrieval=FOLDER"


def findings(rows: Rows, settings: SurfaceSettings) -> Iterator[Finding]:
    """Two, from the audit's table."""
    known = [row for row in rows("surface") if row["queries"]]
    if known:
        yield _same_meaning(_judged([row for row in known if row["kind"] not in MISTAKES], SAME_MEANING))
        yield _typos(_judged([row for row in known if row["kind"] in MISTAKES], TYPOS))


@dataclass(frozen=True)
class _Judged:
    """Changes by what their interval says about the loss, each with the largest loss first."""

    rule: Rule
    losing: Sequence[Row]
    keeping: Sequence[Row]
    unclear: Sequence[Row]

    @property
    def level(self) -> Level:
        return "look" if self.losing else "ok" if self.keeping else "not measured"

    @property
    def worst(self) -> Row:
        return (*self.losing, *self.keeping)[0]

    def finding(self, sentence: str, meaning: str, advice: str) -> Finding:
        """A finding with the numbers of the worst change."""
        numbers = (self.worst[f"ndcg_change{end}"] for end in ("", "_low", "_high"))
        return self.rule.finding(self.level, f"{sentence}{self.open}", meaning, advice, *numbers)

    @property
    def open(self) -> str:
        """A sentence about what could not be told."""
        few = ", ".join(f"{row['change']} ({row['queries']})" for row in self.unclear)
        return f" Too few queries to tell: {few}." if few else ""


def _judged(rows: Sequence[Row], rule: Rule) -> _Judged:
    parts: dict[str, list[Row]] = {"losing": [], "keeping": [], "unclear": []}
    for row in sorted(rows, key=lambda row: (row["ndcg_change"], row["change"])):
        parts[_side(row, rule)].append(row)
    return _Judged(rule, **parts)


def _side(row: Row, rule: Rule) -> str:
    if row["units"] < MIN_UNITS:
        return "unclear"
    # Without an interval all queries change by the same, mostly by nothing.
    low, high = (
        row["ndcg_change"] if end is None else end for end in (row["ndcg_change_low"], row["ndcg_change_high"])
    )
    if rule.level(row["ndcg_change"]) == "look" and high < 0:
        return "losing"
    return "keeping" if low >= UNCLEAR * rule.look else "unclear"


def _same_meaning(found: _Judged) -> Finding:
    if found.level == "not measured":
        sentence = f"Whether other forms of a query find the same is not known.{found.open}"
        return SAME_MEANING.finding("not measured", sentence, advice=MORE)
    kept = ", ".join(row["change"] for row in found.keeping)
    if found.losing:
        lost = "; ".join(f"{row['change']} {_change(row)}{_because(row)}" for row in found.losing)
        sentence = f"The same query in another form finds less, in nDCG@10: {lost}."
        sentence += f" It finds as much with: {kept}." if kept else ""
    else:
        sentence = f"A query finds the same in other forms ({kept}); nDCG@10 changes by {_change(found.worst)} at most."
    return found.finding(
        sentence,
        "A reader sees the same query, and a server finds other documents for it.",
        "Bring queries and documents into one form before they are encoded: NFKC turns full-width letters back, and a "
        "table of look-alike letters (Unicode TR 39) homoglyphs.",
    )


def _typos(found: _Judged) -> Finding:
    if found.level == "not measured":
        sentence = f"What a typo costs is not known.{found.open}"
        return TYPOS.finding("not measured", sentence, advice=MORE)
    row = found.worst
    words = "" if row["words_ndcg_change"] is None else f"; that of TF-IDF by {row['words_ndcg_change']:+.3f}"
    return found.finding(
        f"One typo in a query changes nDCG@10 by {_change(row)} at most ({row['change']}; {row['overlap']:.0%} of the "
        f"ten best documents stay){words}.",
        # Cucerzan and Brill 2004 (EMNLP): 10 to 15 % of the queries that search engines get.
        "Every tenth query has a typo, and finds other documents.",
        "Correct the spelling of queries before they are encoded, or combine the search with one by characters.",
    )


def _change(row: Row) -> str:
    return f"{row['ndcg_change']:+.3f}{interval(row['ndcg_change_low'], row['ndcg_change_high'], '+.3f')}"


def _because(row: Row) -> str:
    return f" (the tokenizer cannot write {row['unwritten']:.0%} of them)" if row["unwritten"] >= MOST else ""


FACTS = {"surface": "SELECT * FROM surface WHERE audit_id = ? ORDER BY overlap NULLS LAST, change"}
COLUMNS = {
    "change": Column("change"),
    "queries": Column("queries", ","),
    "same_tokens": Column("same tokens", ".0%", is_detail=True),
    "unwritten": Column("cannot be written", ".0%"),
    "moved": Column("1 − cosine", ".3f", is_detail=True),
    "overlap": Column("of the ten best stay [95 %]", ".0%", ".0%", is_bar=True),
    "words_overlap": Column("by TF-IDF", ".0%"),
    "ndcg_change": Column("change of nDCG@10 [95 %]", "+.3f", "+.2f"),
    "words_ndcg_change": Column("of TF-IDF's", "+.3f"),
}
HEADLINE = 5


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    rows = facts["surface"]
    if not rows:
        return None
    first = rows[0]
    table = Table.of(
        COLUMNS,
        rows,
        f"Queries of {first['data_set']} written otherwise, over {first['documents']:,} documents",
        headline=HEADLINE,
        more="embaudit query surface",
    )
    return Section("Surface", [table, _chart([row for row in rows if row["overlap"] is not None])])


def _chart(rows: Sequence[Row]) -> Chart:
    bounds = [
        Mark(x=row["overlap_low"], x2=row["overlap_high"], y=row["change"], y2=row["change"])
        for row in rows
        if row["overlap_low"] is not None
    ]
    points = [
        Mark(row["overlap"], row["change"], label=f"{row['change']}: {row['overlap']:.0%} of {row['queries']} queries")
        for row in rows
    ]
    words = [
        Mark(row["words_overlap"], row["change"], label=f"{row['change']}, TF-IDF: {row['words_overlap']:.0%}")
        for row in rows
        if row["words_overlap"] is not None
    ]
    panel = Panel(
        [Layer("rule", bounds, is_data=False), Layer("point", words, tone="soft"), Layer("point", points)],
        Axis("of the ten best documents stay", ".0%", (0, 1)),
        Axis(categories=[row["change"] for row in rows]),
        # Less than a page's width: the names stand beside it.
        width=540,
    )
    return Chart(
        "What stays among the ten best documents",
        "One row per change of the queries' form, with its 95 % interval; grey: ranking by TF-IDF. At the right "
        "nothing changes; far left of the grey point, a query's form counts for more than its words do.",
        [[panel]],
        more="embaudit query surface",
    )
