"""What follows from the figures of a switch, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from embaudit.declared.rule import Finding, Level, Rule, number
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.change.gains import SMALLEST
from embaudit.questions.switch.encode import Cost
from embaudit.questions.switch.quality import MAPS, SameText, ScoreChange
from embaudit.questions.switch.search import MIXED, OLD, SearchOutcome
from embaudit.questions.switch.verdict import STAYS, CutOffTransfer
from embaudit.words.estimate import shown, with_interval
from embaudit.words.sentences import duration, quoted

# How a bridge is built, of those that are tried.
HOW = {**{name: name for name in MAPS}, MIXED: "no map"}
MIXING = Rule(
    "mixing",
    look_if="other dimensions; or a text's vectors differ by more than parity allows and half precision rounds",
    reason="an index that holds vectors of both ranks documents by who encoded them",
)
SIMILARITY = Rule("similarity", look_if="the two are compared by other similarities", reason="an index is made for one")
OVERLAP = Rule(
    "overlap",
    look=STAYS,
    worse="lower",
    look_if="the interval of overlap@10 begins below {look}",
    reason="at most one of ten results changes. nDCG@10 alone hardly notices other documents, if few are judged. `not "
    "measured` below ten unrelated queries",
)
CUT_OFF = Rule(
    "cut_off",
    look=0.01,
    is_share=True,
    look_if="it has clearly moved; or the interval of the decisions that flip if it stays reaches {look}",
    reason="below, a cut-off that has not clearly moved may stay. `not measured` with too few unrelated or matching "
    "pairs",
)
PAIRED_QUALITY = Rule(
    "paired_quality",
    look_if=f"no certain gain; or a certain loss of more than {number(SMALLEST)}",
    reason="a switch costs something, so that no gain is worth a look, too. `not measured` if nothing is judged",
)
BRIDGE = Rule(
    "bridge",
    look_if="the interval of what it keeps begins below `--holds`",
    reason="one query in twenty is what a rebuilt index would be worth. `not measured` with too few texts to fit it "
    "on some and try it on others, or if NEW finds nothing that is relevant",
)
ROLES = Rule(
    "roles_of_{side}",
    look_if="a function that is no checkpoint was asked for queries and documents alike",
    reason="if its callers put something before queries, it finds other documents",
)
COST = Rule("cost", reason="always `ok`: what encoding the rows again takes")


def mixing_finding(
    same: SameText | None, searches: Sequence[SearchOutcome], dimensions: tuple[int, int], holds: float
) -> Finding:
    """May vectors of the two be in one index?"""
    if same is None:
        return MIXING.finding(
            "look",
            f"They may not be mixed: OLD's vectors have {dimensions[0]} dimensions, NEW's {dimensions[1]}.",
            "OLD's index takes neither NEW's vectors nor, without a bridge, its queries.",
            "Encode all documents with NEW, into an index of its own.",
        )
    ways = [(one, one.ways[MIXED].kept) for one in searches if MIXED in one.ways]
    found = "; ".join(
        f"{with_interval(kept)} of NEW's {one.measure} in OLD's index" for one, kept in ways if kept.value is not None
    )
    sentence = (
        f"The same text's vectors have a cosine of {with_interval(same.median)} at the median (nine in ten: "
        f"{shown(same.quantiles[0])} to {shown(same.quantiles[-1])}; of other texts: {shown(same.strangers)})"
        + (f", and NEW's queries find {found}." if found else ".")
    )
    if same.is_same or same.is_rounded:
        return MIXING.finding("ok", f"They may be mixed. {sentence}", "", "", *same.median)
    if same.moved:
        return MIXING.finding(
            "look",
            f"Documents of both may be in one index: their vectors are the same. Those of {' and '.join(same.moved)} "
            f"are not (1 − cosine up to {same.worst:.2g}, for {quoted(same.worst_text)}).",
            "The same query finds other documents, or the same ones at other similarities.",
            f"See what NEW does to {' and '.join(same.moved)} alone: a prompt, a step of the client.",
            *same.median,
        )
    if ways and all(kept.low is not None and kept.low >= holds for _, kept in ways):
        return MIXING.finding(
            "look",
            f"NEW's queries may be asked of OLD's documents; documents of both may not be in one index. {sentence}",
            "An index that holds vectors of both ranks documents by who encoded them.",
            "Add documents as OLD encodes them, until all are encoded again.",
            *same.median,
        )
    return MIXING.finding(
        "look",
        f"They may not be mixed. {sentence}",
        "An index that holds vectors of both ranks documents by who encoded them.",
        "Keep one index for each until all documents are encoded again, or bridge.",
        *same.median,
    )


def similarity_finding(similarities: tuple[str, str]) -> Finding | None:
    """That the two are to be compared by other similarities; None if they are not."""
    old, new = similarities
    if old == new:
        return None
    return SIMILARITY.finding(
        "look",
        f"OLD is compared by {old}, NEW by {new}. OLD's index was searched by {old} here, with NEW's queries too.",
        "An index is made for one similarity.",
        f"Where NEW has an index of its own, set that to {new}.",
    )


def query_findings(searches: Sequence[SearchOutcome]) -> Iterator[Finding]:
    """What changes for queries."""
    for one in searches:
        agree = one.agreement
        known = (
            f"; ranks of their candidates agree by Spearman's ρ {with_interval(agree)}"
            if agree.value is not None
            else ""
        )
        level: Level = "ok" if one.overlap.low is not None and one.overlap.low >= STAYS else "look"
        if one.overlap.low is None:
            yield OVERLAP.finding(
                "not measured",
                f"Cannot tell what changes for queries: for {one.name}, {with_interval(one.overlap)} of the "
                f"first ten stay{known}, and ten unrelated queries are needed for an interval.",
                advice="Give more queries (100).",
                value=one.overlap.value,
            )
            continue
        yield OVERLAP.finding(
            level,
            f"For {one.name}, {with_interval(one.overlap)} of the first ten stay (overlap@10){known}.",
            "People will see other results.",
            "Read the queries that change most, below.",
            **one.overlap.as_json(),
        )


def cut_off_finding(cut_offs: Sequence[CutOffTransfer]) -> Finding:
    """What the first cut-off that can be told becomes; the others are in the table."""
    if not cut_offs:
        return CUT_OFF.finding(
            "not measured",
            "What a cut-off becomes was not measured: there are no 20 matching or unrelated pairs.",
            advice="Give scored pairs (--pairs).",
        )
    told = [one for one in cut_offs if one.is_told(one.new)]
    if not told:
        first = cut_offs[0]
        return CUT_OFF.finding(
            "not measured",
            f"Cannot tell what a cut-off of {shown(first.old)} becomes from {first.name}: too few unrelated or "
            "matching pairs are above it, or below.",
            advice="Give more scored pairs (1,000), or the cut-off that is in use (--threshold).",
        )
    first = told[0]
    parts = [
        f"{with_interval(found)} {what}"
        for found, what in (
            (first.same_share, "for the same share of unrelated pairs"),
            (first.same_recall, "for the same recall of matching pairs"),
        )
        if first.is_told(found)
    ]
    changes = "; ".join(
        f"{before.percent(1)} → {after.percent(1)} of {what}"
        for (before, after), what in (
            (first.let_through, "unrelated pairs pass"),
            (first.kept, "matching pairs are kept"),
        )
        if before.value is not None
    )
    new = first.new
    stays = not first.has_moved and (first.flips_at_old.high or 0.0) < CUT_OFF.look
    return CUT_OFF.finding(
        "ok" if stays else "look",
        f"On {first.name}, a cut-off of {shown(first.old)} ({first.how}) becomes {' and '.join(parts)}. If it stays, "
        f"{first.flips_at_old.percent(1)} of decisions flip ({changes}); at {shown(new.value or 0.0)}, "
        f"{first.flips_at_new.percent(1)}.",
        "The number means something else now."
        if first.has_moved
        else "The scale is about the same; pairs change sides.",
        f"Set it to {shown(new.value or 0.0)} when NEW is switched on."
        if first.has_moved
        else "Look at pairs near it before it stays.",
        **new.as_json(),
    )


def quality_finding(changes: Sequence[ScoreChange]) -> Finding:
    """Is NEW better? A switch costs something, so no gain is worth a look, too."""
    if not changes:
        return PAIRED_QUALITY.finding(
            "not measured",
            "Whether NEW is better was not measured: nothing is judged.",
            advice="Give scored pairs (--pairs) or judged queries (--data).",
        )
    said = "; ".join(
        f"{one.metric} {with_interval(one.change, signed=True)} on {one.name} ({shown(one.old.value or 0.0)} → "
        f"{shown(one.new.value or 0.0)})"
        for one in changes
    )
    gained = [one for one in changes if one.change.is_above_zero]
    lost = [one for one in changes if one.change.is_below_zero and (one.change.value or 0.0) < -SMALLEST]
    if gained and not lost:
        return PAIRED_QUALITY.finding("ok", f"NEW is better: {said}.")
    if lost:
        what = "worse" if not gained else "better in part, and in part worse"
        return PAIRED_QUALITY.finding(
            "look",
            f"NEW is {what}: {said}.",
            "Such a switch costs quality, whatever becomes of the index.",
            "Keep OLD, unless what NEW saves is worth that.",
        )
    return PAIRED_QUALITY.finding(
        "look",
        f"Cannot tell whether NEW is better: {said}.",
        "Nothing shows that the switch is worth it.",
        "Judge more queries or pairs.",
    )


def bridge_findings(searches: Sequence[SearchOutcome], holds: float) -> Iterator[Finding]:
    """What a bridge would keep, beside what OLD itself finds."""
    for one in searches:
        if one.bridge is None:
            yield BRIDGE.finding(
                "not measured",
                f"What a bridge would keep was not measured on {one.name}: too few texts to fit it on some and try it "
                "on others.",
                advice="Give 2,000 texts of the index (--corpus).",
            )
            continue
        way, old = one.ways[one.bridge], one.ways[OLD]
        if way.kept.value is None or old.kept.value is None:
            yield BRIDGE.finding(
                "not measured",
                f"Cannot tell what a bridge would keep on {one.name}: NEW finds nothing that is relevant.",
                advice="Look at what is judged to be relevant: are these the documents of the index?",
            )
            continue
        others = ", ".join(
            f"{HOW[name]} {shown(other.kept.value)}"
            for name, other in one.ways.items()
            if name in HOW and name != one.bridge and other.kept.value is not None
        )
        others = f" {others};" if others else ""
        is_above = way.kept.low is not None and way.kept.low >= holds
        no_gain = one.is_judged and old.kept.value >= way.kept.value
        yield BRIDGE.finding(
            "ok" if is_above else "look",
            f"For {one.name}, a bridge into OLD's index ({HOW[one.bridge]}; maps fitted on {min(one.fitted_on):,} "
            f"other texts) keeps {with_interval(way.kept)} of NEW's {one.measure};{others} OLD alone "
            f"has {with_interval(old.kept)} of it.",
            note="Over this bridge, NEW finds no more than OLD alone." if no_gain else "",
            advice="Encode the documents again, rather than bridge.",
            **way.kept.as_json(),
        )


def role_findings(both: Sequence[EmbeddingFunction], asked: Sequence[object]) -> Iterator[Finding]:
    """Which of the two take queries and documents alike, if it is no checkpoint, whose files say so.

    Args:
        asked: the searches that have queries of their own.
    """
    for side, function in zip(("OLD", "NEW"), both, strict=True):
        if asked and function.checkpoint is None and not function.tells_roles_apart:
            yield ROLES.finding(
                "look",
                f"{side}, the {function.kind} {function.name}, was asked for queries and documents alike.",
                "If its callers put something before queries, or name their role, it finds other documents.",
                "Say what: --query-prompt TEXT, --document-prompt TEXT",
                side=side.lower(),
            )


def cost_finding(cost: Cost) -> Finding:
    seconds = cost.seconds
    ends = (
        "" if seconds.low is None or seconds.high is None else f" [{duration(seconds.low)}, {duration(seconds.high)}]"
    )
    old, new = cost.stored
    return COST.finding(
        "ok",
        f"Encoding {cost.rows:,} rows like these again takes {duration(seconds.value or 0.0)}{ends} on {cost.device} "
        f"({cost.tokens_per_second:,.0f} {cost.counted_in}/s, {cost.tokens:.0f} {cost.counted_in} each). "
        f"Stored in float32, they take "
        f"{size(new)}; OLD's take {size(old)}.",
        **seconds.as_json(),
    )


def size(count: int) -> str:
    """Bytes as ``1.54 GB``."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} bytes"
