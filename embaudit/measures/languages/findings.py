"""What the table of languages shows: findings, and the section of a page.

Which translations are found, whether the query's own language comes first, and which languages the tokenizer cannot
write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Part, Section, Table, count
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval, number, percent
from embaudit.measures.languages import LanguagesSettings

# Most sentences find their translation.
MOST = 0.5
# Among the up to a thousand sentences of Tatoeba, the multilingual checkpoint of arXiv 1812.10464 misses fewer than one
# in ten in most large languages. all-MiniLM-L6-v2 and paraphrase-MiniLM-L3-v2 list English, and find 59 % and 45 % at
# most (French).
RETRIEVAL = Rule(
    "retrieval",
    "`language.found`",
    look=0.8,
    worse="lower",
    look_if="a language that the model card lists is found in surely less than {look}",
    reason="a multilingual checkpoint finds nearly all of forty sentences (multilingual-e5-small in four bits 98 to "
    "100 % in each language); that one for English finds few others is no fault, and stated. all-MiniLM-L6-v2: 59 % "
    "of French, 6 % of Russian and Arabic",
)
# Then a sentence of ten tokens says one less. Both of the above: 66 % in Chinese, 19 % in Japanese, 5 % at most in the
# others.
UNKNOWN = 0.1
# Half of a language that is listed: the tokenizer is another model's.
UNREADABLE = 0.5
# One sentence in twenty is another one. all-MiniLM-L6-v2 tells all Chinese sentences apart but two of 40, [84, 99] %;
# paraphrase-MiniLM-L3-v2 all but seven, [68, 91] %.
APART = 0.95
# Two sentences differ by a fifth of what English ones do: any cut-off that suits English lets all of them pass.
# paraphrase-MiniLM-L3-v2 leaves 8 to 16 % in Chinese, Japanese, Korean, Hindi, Arabic and Russian, which its vocabulary
# has as letters; all-MiniLM-L6-v2 at least 27 %.
RANGE = 0.2
UNWRITTEN = Rule(
    "unwritten",
    "`language.unknown`, `same_ids`, `told_apart`, `alike`",
    look_if=f"{percent(UNKNOWN)} of a language's tokens are unknown; sentences have the same ids or no token; surely "
    f"fewer than {number(APART)} are told apart; or sentences differ by less than {number(RANGE)} of what English ones "
    "do",
    problem_if=f"{percent(UNREADABLE)} of the tokens of a language that the card lists are unknown",
    reason="a sentence of ten tokens says one less; one sentence in twenty is another one; any cut-off made for "
    "English lets all pass. all-MiniLM-L6-v2: Chinese (66 % unknown) and Japanese (19 %); paraphrase-MiniLM-L3-v2 "
    "also Korean, Hindi, Arabic and Russian (cosines of .84 to .92, English .03)",
)
# Of one multilingual checkpoint, whose own-language bias is .02 to .56, in 10 of 13 languages surely more than .1; its
# English bias is .03 at most. The three that are for English find too little for any language to come first.
BIASED = 0.1
OWN_FIRST = Rule(
    "own_language_first",
    "`language.own_bias`, `english_bias`",
    look=BIASED,
    look_if="surely more than {look} in a language most of whose translations are found among their own language "
    f"(`other_above` below {number(1 - MOST)})",
    reason="a tenth of the right texts is hidden by the language of the wrong ones, and not by their meaning. "
    "multilingual-e5-small (in four bits, the only multilingual checkpoint at hand) finds 98 to 100 % of the "
    "translations among English ones, and in one pool an irrelevant sentence of the query's own language stands above "
    "3 to 57 % of the right ones. all-MiniLM-L6-v2, all-mpnet-base-v2 and paraphrase-MiniLM-L3-v2, for English, miss "
    "68 to 98 % anyway; shared characters put one above 84 to 100 %",
)
GROUPS = ("most", "more than shared characters explain", "not surely more than shared characters explain")
Language = dict[str, Any]


def findings(rows: Rows, settings: LanguagesSettings) -> Iterator[Finding]:
    """Three, from the audit's tables; none if it compared no languages."""
    every = sorted(rows("language"), key=lambda row: (-(row["found"] or 0), row["language"]))
    others = [row for row in every if row["found"] is not None]
    if others:
        yield _retrieval(others)
        yield _own_first(every)
        yield _unwritten(sorted(every, key=lambda row: (-row["unknown"], row["told_apart"], row["language"])))


def _retrieval(rows: list[Language]) -> Finding:
    missed = [
        row for row in rows if row["declared"] and row["found_high"] is not None and row["found_high"] < RETRIEVAL.look
    ]
    level: Level = "not measured" if rows[0]["found_low"] is None else "look" if missed else "ok"
    groups = {group: [row for row in rows if _group(row) == group] for group in GROUPS}
    said = "; ".join(f"{group} in {_found(own)}" for group, own in groups.items() if own)
    worst = min(missed, key=lambda row: row["found"], default=None)
    mean = sum(row["found"] for row in rows) / len(rows)
    listed = f" Its model card lists {_found(missed, has_bounds=True)}." if missed else f" On average {mean:.0%}."
    return RETRIEVAL.finding(
        level,
        f"Of {rows[0]['sentences']} sentences, these are nearest to their translation into English: {said}.{listed}",
        "Fewer than ten sentences say nothing about a language."
        if level == "not measured"
        else "A search across these languages misses texts, although the checkpoint says that it is for them.",
        ""
        if level == "not measured"
        else "embaudit check CHECKPOINT: are tokenizer and prompts those that the weights were trained with?",
        mean if worst is None else worst["found"],
        None if worst is None else worst["found_low"],
        None if worst is None else worst["found_high"],
    )


def _group(row: Language) -> str:
    most, more, no_more = GROUPS
    low = row["found_low"] or 0.0
    return most if low >= MOST else more if low > _by_characters(row) else no_more


def _by_characters(row: Language) -> float:
    """What needs no meaning: chance, or characters in common."""
    return max(row["chance"], row["words_found"])


def _found(rows: list[Language], *, has_bounds: bool = False) -> str:
    bounds = [interval(row["found_low"], row["found_high"], ".0%") if has_bounds else "" for row in rows]
    return ", ".join(f"{row['name']} ({row['found']:.0%}{of})" for row, of in zip(rows, bounds, strict=True))


def _names(rows: list[Language]) -> str:
    return ", ".join(row["name"] for row in rows)


def _own_first(rows: list[Language]) -> Finding:
    known = [row for row in rows if row["other_above"] < 1 - MOST]
    own = _biased(known, "own")
    english = _biased(known, "english")
    level: Level = "look" if own or english else "not measured" if rows[0]["own_above_low"] is None else "ok"
    side = "english" if english and not own else "own"
    named = max(own or english or known or rows, key=lambda row: (row[f"{side}_bias"], row["language"]))
    value, low, high = (named[f"{side}_bias{end}"] for end in ("", "_low", "_high"))
    bias = f"{value:+.0%}{interval(low, high, '+.0%')}"
    said = "; ".join(
        f"an irrelevant sentence in {what} stands above the right one of another language for queries in "
        + ", ".join(f"{row['name']} ({row[f'{side}_above']:.0%})" for row in biased)
        for side, what, biased in (("own", "the query's own language", own), ("english", "English", english))
        if biased
    )
    others = max((row["other_above"] for row in (*own, *english)), default=0.0)
    after = max((row["centred_own_above"] for row in own), default=0.0)
    return OWN_FIRST.finding(
        level,
        f"In one pool of {len(rows)} languages, {said}; one in the right one's language, at most {others:.0%}. "
        f"{named['name']} differs most: {bias}."
        if said
        else f"In one pool of {len(rows)} languages, irrelevant sentences of the query's own language stand above "
        f"{named['own_above']:.0%} of the right ones of another ({named['name']}), those of the right one's language "
        f"above {named['other_above']:.0%}: {bias}."
        + ("" if known else " It finds most translations for queries of no language, so no language can come first."),
        "A search over several languages answers with texts in the language of the query before the right ones."
        if own
        else "A search over several languages answers with English texts before the right ones.",
        "Search each language by itself and merge the results, or subtract the mean vector of its language from every "
        f"vector{f': at most {after:.0%} are then left here' if own else ''}. embaudit query languages",
        value,
        low,
        high,
    )


def _biased(rows: list[Language], side: str) -> list[Language]:
    """Those of surely more than a tenth, worst first."""
    found = [row for row in rows if row[f"{side}_bias_low"] is not None and row[f"{side}_bias_low"] > BIASED]
    return sorted(found, key=lambda row: (-row[f"{side}_bias"], row["language"]))


def _unwritten(rows: list[Language]) -> Finding:
    poor = [row for row in rows if _is_unwritten(row)]
    broken = [row for row in poor if row["declared"] and row["unknown"] >= UNREADABLE]
    level: Level = "problem" if broken else "look" if poor else "ok"
    most = rows[0]
    sentence = (
        f"Texts in {_names(poor)} are hardly read or told apart: {'; '.join(_reasons(poor))}."
        if poor
        else f"Texts in all of {len(rows)} languages are read and told apart: at most {most['unknown']:.1%} of the "
        f"tokens are unknown ({most['name']})."
    )
    listed = " The model card lists the language, so this may be another model's tokenizer." if broken else ""
    return UNWRITTEN.finding(
        level,
        sentence,
        "Vectors of texts in these languages say little about them: unrelated texts look related, or get one "
        f"vector.{listed}",
        "embaudit check CHECKPOINT" if broken else "Keep such texts away, or serve a checkpoint for them.",
        most["unknown"],
    )


def _is_unwritten(row: Language) -> bool:
    high = row["told_apart_high"]
    is_one = row["same_ids"] or row["empty"] or (high is not None and high < APART)
    return bool(is_one or row["unknown"] >= UNKNOWN or _is_narrow(row))


def _is_narrow(row: Language) -> bool:
    return bool(1 - row["alike"] < RANGE * (1 - row["english_alike"]))


def _reasons(rows: list[Language]) -> Iterator[str]:
    """What is wrong, each with the languages that it is wrong in."""
    if unknown := [row for row in rows if row["unknown"] >= UNKNOWN]:
        yield f"tokens that are unknown, {_each(unknown, lambda row: format(row['unknown'], '.0%'))}"
    if narrow := [row for row in rows if _is_narrow(row)]:
        english = f"(English {narrow[0]['english_alike']:.2f})"
        yield f"cosine of two sentences, {_each(narrow, lambda row: format(row['alike'], '.2f'))} {english}"
    if same := [row for row in rows if row["same_ids"]]:
        yield f"same ids, {_each(same, lambda row: count(row['same_ids'], 'pair') + ' of sentences')}"
    if empty := [row for row in rows if row["empty"]]:
        yield f"no token left, {_each(empty, lambda row: count(row['empty'], 'sentence'))}"
    if one := [row for row in rows if row["told_apart"] < APART]:
        yield f"told apart from all others, {_each(one, _told_apart)}"


def _each(rows: list[Language], said: Callable[[Language], str]) -> str:
    return ", ".join(f"{said(row)} in {row['name']}" for row in rows)


def _told_apart(row: Language) -> str:
    return f"{row['told_apart']:.0%}{interval(row['told_apart_low'], row['told_apart_high'], '.0%')}"


FACTS = {
    "languages": "SELECT * FROM language WHERE audit_id = ? ORDER BY found DESC NULLS FIRST, language",
    "language_severe": (
        "SELECT script, count(*) FILTER (severity IN ('strong', 'moderate')) AS severe FROM sticky_token "
        "WHERE audit_id = ? GROUP BY script ORDER BY script"
    ),
}
MORE = "embaudit query languages"
ROW_HEIGHT = 20
COLUMNS = {
    **{"name": Column("language"), "script": Column("script")},
    "found": Column("translations found [95 %]", ".0%", ".0%", is_bar=True),
    "words_found": Column("by characters", ".0%"),
    "margin": Column("margin [95 %]", "+.3f", "+.3f", is_detail=True),
    "own_above": Column("its own language above [95 %]", ".0%", ".0%"),
    "other_above": Column("the right one's language above", ".0%", is_detail=True),
    "english_above": Column("English above [95 %]", ".0%", ".0%", is_detail=True),
    "unknown": Column("unknown tokens", ".1%"),
    "premium": Column("tokens beside English", ".2f", is_detail=True),
    "alike": Column("cosine of two sentences", ".2f"),
    "told_apart": Column("told apart [95 %]", ".0%", ".0%"),
    "same_ids": Column("pairs with the same ids", ",", is_detail=True),
}
Row = Mapping[str, Any]


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Languages", list(_parts(facts))) if facts["languages"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    rows = facts["languages"]
    severe = {row["script"]: row["severe"] for row in facts["language_severe"]}
    # Severe tokens only if they were searched for.
    of_script = {"severe": Column("severe tokens of the script", ",", is_detail=True)} if severe else {}
    yield Table.of(
        COLUMNS | of_script,
        [{**row, "severe": severe.get(row["script"], 0)} for row in rows],
        f"The same {count(rows[0]['sentences'], 'sentence')} in each language",
        more=MORE,
    )
    if empty := [row for row in rows if row["empty"]]:
        said = ", ".join(f"{row['empty']:,} in {row['name']}" for row in empty)
        yield f"Sentences of which the tokenizer leaves nothing: {said}."
    yield _chart([row for row in rows if row["found"] is not None])


def _chart(rows: list[Row]) -> Chart:
    names = [row["name"] for row in rows]
    bounds = [Mark(row["found_low"], row["name"], x2=row["found_high"]) for row in rows if row["found_low"] is not None]
    points = [Mark(row["found"], row["name"], label=f"{row['name']}: {row['found']:.0%}") for row in rows]
    characters = [
        Mark(row["words_found"], row["name"], label=f"{row['name']}, by characters: {row['words_found']:.0%}")
        for row in rows
    ]
    panel = Panel(
        [
            Layer("rule", [Mark(x=row["chance"]) for row in rows[:1]], "soft", True, is_data=False),
            Layer("rule", bounds, is_data=False),
            Layer("point", characters, tone="soft"),
            Layer("point", points),
        ],
        Axis("translations found", ".0%", (0, 1)),
        Axis(categories=names),
        height=ROW_HEIGHT * len(names),
    )
    return Chart(
        "Which translations are found",
        "The share of sentences that are nearest to their translation into English among all sentences, mean of both "
        "directions, with 95 % intervals. Pale: by three characters each, which finds names, numbers and cognates. "
        "Dashed: chance.",
        [[panel]],
        more=MORE,
    )
