"""Findings about languages: which translations are found, and which languages the tokenizer cannot write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.finding import Finding, Level, Rows, unless_ok
from embaudit.measures.languages.settings import LanguagesSettings

# Most sentences find their translation.
MOST = 0.5
# A multilingual checkpoint finds nearly all of forty: among the up to a thousand sentences of Tatoeba, the one of arXiv
# 1812.10464 misses fewer than one in ten in most large languages. One that lists a language and surely finds fewer is
# not what it says. Not listed is not wrong: all-MiniLM-L6-v2 and paraphrase-MiniLM-L3-v2 list English, and find 59 %
# and 45 % at most (French).
DECLARED = 0.8
# Then a sentence of ten tokens says one less. Both of the above: 66 % in Chinese, 20 % in Japanese, at most 5 % in all
# others.
UNKNOWN = 0.1
# Half of a language that is listed: the tokenizer is another model's.
UNREADABLE = 0.5
# One sentence in twenty is another one. all-MiniLM-L6-v2 tells all Chinese sentences apart but two of 40, [84, 99] %;
# paraphrase-MiniLM-L3-v2 all but seven, [68, 91] %.
APART = 0.95
GROUPS = ("most", "more than shared characters explain", "not surely more than shared characters explain")
Language = dict[str, Any]


def findings(rows: Rows, settings: LanguagesSettings) -> Iterator[Finding]:
    """Two, from the audit's tables; none if it compared no languages."""
    every = sorted(rows("language"), key=lambda row: (-(row["found"] or 0), row["language"]))
    others = [row for row in every if row["found"] is not None]
    if others:
        yield _retrieval(others)
        yield _unwritten(sorted(every, key=lambda row: (-row["unknown"], row["told_apart"], row["language"])))


def _retrieval(rows: list[Language]) -> Finding:
    missed = [row for row in rows if row["declared"] and row["found_high"] is not None and row["found_high"] < DECLARED]
    level: Level = "not measured" if rows[0]["found_low"] is None else "look" if missed else "ok"
    groups = {group: [row for row in rows if _group(row) == group] for group in GROUPS}
    said = "; ".join(f"{group} in {_found(own)}" for group, own in groups.items() if own)
    worst = min(missed, key=lambda row: row["found"], default=None)
    listed = f" Its model card lists {_names(missed)}." if missed else ""
    return Finding(
        level,
        f"Of {rows[0]['sentences']} sentences, these are nearest to their translation into English: {said}.{listed}",
        name="retrieval",
        value=sum(row["found"] for row in rows) / len(rows) if worst is None else worst["found"],
        low=None if worst is None else worst["found_low"],
        high=None if worst is None else worst["found_high"],
        **unless_ok(
            level,
            "Fewer than ten sentences say nothing about a language."
            if level == "not measured"
            else "A search across these languages misses texts, although the checkpoint says that it is for them.",
            ""
            if level == "not measured"
            else "embaudit check CHECKPOINT: are tokenizer and prompts those that the weights were trained with?",
        ),
    )


def _group(row: Language) -> str:
    most, more, no_more = GROUPS
    low = row["found_low"] or 0.0
    return most if low >= MOST else more if low > _by_characters(row) else no_more


def _by_characters(row: Language) -> float:
    """What needs no meaning: chance, or characters in common."""
    return max(row["chance"], row["words_found"])


def _found(rows: list[Language]) -> str:
    return ", ".join(f"{row['name']} ({row['found']:.0%})" for row in rows)


def _names(rows: list[Language]) -> str:
    return ", ".join(row["name"] for row in rows)


def _unwritten(rows: list[Language]) -> Finding:
    poor = [row for row in rows if _is_unwritten(row)]
    broken = [row for row in poor if row["declared"] and row["unknown"] >= UNREADABLE]
    level: Level = "problem" if broken else "look" if poor else "ok"
    most = rows[0]
    sentence = (
        f"Texts in {_names(poor)} are not read as written: {'; '.join(map(_why, poor))}."
        if poor
        else f"The tokenizer can write all of {len(rows)} languages: at most {most['unknown']:.1%} of the tokens are "
        f"unknown ({most['name']}), and all sentences differ."
    )
    listed = " The model card lists the language, so this may be another model's tokenizer." if broken else ""
    return Finding(
        level,
        sentence,
        name="unwritten",
        value=most["unknown"],
        **unless_ok(
            level,
            "What is unknown is the same in all texts: the vectors say less about texts in these languages, and "
            f"different texts may get one vector.{listed}",
            "embaudit check CHECKPOINT" if broken else "Keep such texts away, or serve a checkpoint for them.",
        ),
    )


def _is_unwritten(row: Language) -> bool:
    high = row["told_apart_high"]
    return bool(row["unknown"] >= UNKNOWN or row["same_ids"] or (high is not None and high < APART))


def _why(row: Language) -> str:
    parts = [f"{row['unknown']:.0%} of the tokens are unknown"] if row["unknown"] >= UNKNOWN else []
    parts += [f"{row['same_ids']:,} pairs of sentences have the same ids"] if row["same_ids"] else []
    if row["told_apart"] < APART:
        ends = "" if row["told_apart_low"] is None else f" [{row['told_apart_low']:.0%}, {row['told_apart_high']:.0%}]"
        parts.append(f"{row['told_apart']:.0%}{ends} of the sentences are told apart")
    return f"{row['name']}: {', '.join(parts)}"
