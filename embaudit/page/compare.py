"""A page comparing audits with the first: what got better or worse, and what is not compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from embaudit.finding import LEVELS, Finding, Level
from embaudit.page.model import Column, Estimate, Page, Part, Section, Table, count
from embaudit.page.sides import AuditSide, Comparison, compare_sides, other_question

FIGURES_SHOWN, TOKENS_SHOWN = 15, 10
CHANGES: dict[str, Level] = {"worse": "problem", "better": "ok"}


def comparison_page(sides: Sequence[AuditSide]) -> Page:
    """The page comparing all later audits with the first."""
    first, *others = sides
    comparisons = [compare_sides(first, other) for other in others]
    return Page(
        kind="Compared with",
        title=first.name,
        identity=[
            ("then" if place else "first", f"{side.source}, audit {side.audit_id}, {side.finished}")
            for place, side in enumerate(sides)
        ],
        findings=[
            finding for side, one in zip(others, comparisons, strict=True) for finding in _findings(first, side, one)
        ],
        sections=[
            Section("Findings", [_finding_table(sides)]),
            *(Section(side.name, list(_parts(side, one))) for side, one in zip(others, comparisons, strict=True)),
        ],
    )


def _findings(first: AuditSide, side: AuditSide, comparison: Comparison) -> Iterator[Finding]:
    changes = Counter(row["change"] for row in comparison.figures)
    compared = len(comparison.figures)
    yield Finding(
        "look" if changes["worse"] else "ok" if compared else "not measured",
        f"{side.name}: of {count(compared, 'figure')} compared, {changes['worse']} got worse by more than noise, "
        f"{changes['better']} better."
        if compared
        else f"{side.name}: there are no figures to compare.",
    )
    rank = LEVELS.index
    worse = [
        ".".join(key)
        for key, row in side.findings.items()
        if row["level"] in ("problem", "look")
        # Going from too little evidence to some is not a change for the worse.
        and first.findings.get(key, {"level": "not measured"})["level"] != "not measured"
        and rank(row["level"]) < rank(first.findings[key]["level"])
        and not other_question(first, side, key[0])
    ]
    if worse:
        yield Finding("look", f"{side.name}: {count(len(worse), 'finding')} got worse: {', '.join(worse)}.")
    if comparison.run_otherwise:
        yield Finding("look", f"{side.name}: it was run with different {', '.join(comparison.run_otherwise)}.")
    for why, names in comparison.not_compared.items():
        yield Finding("not measured", f"{side.name}: {count(len(names), 'figure')} not compared: {why}.")


def _finding_table(sides: Sequence[AuditSide]) -> Table:
    keys = list(dict.fromkeys(key for side in sides for key in side.findings))
    levels: dict[str, Level] = {level: level for level in LEVELS}
    columns = [Column("finding"), *(Column(side.name, levels=levels) for side in sides), Column("now", is_prose=True)]
    rows = []
    for key in keys:
        found = [side.findings.get(key) for side in sides]
        first, last = found[0], found[-1]
        said = last["sentence"] if last and (first is None or last["level"] != first["level"]) else ""
        rows.append((".".join(key), *(one["level"] if one else "" for one in found), said))
    return Table(columns, rows)


def _parts(side: AuditSide, comparison: Comparison) -> Iterator[Part]:
    columns = (
        *(Column("figure"), Column("item"), Column("before", ".4g"), Column("now", ".4g")),
        *(Column("change [95 %]", "+.3g", "+.3g"), Column("", levels=CHANGES)),
    )
    rows = [
        (
            *(f"{row['summary']}.{row['measure']}", row["item"], row["predecessor_value"], row["value"]),
            *(Estimate(row["delta"], row["low"], row["high"]), row["change"]),
        )
        for row in comparison.figures
    ]
    yield Table(columns, rows, "Figures, those that got worse first", brief=FIGURES_SHOWN, more="--json")
    if comparison.tokens is None:
        yield f"Severe tokens are not compared: {comparison.tokens_why}."
        return
    alone = Counter(row["severe"] for row in comparison.tokens)
    yield (
        f"Severe tokens (moderate or strong): {alone['in this one']} only in this audit, {alone['in the first']} only "
        "in the first. A search lists only a limited number of tokens, and the last ones vary by chance."
    )
    yield Table(
        (
            *(Column("token"), Column("severe only"), Column("script")),
            *(Column("loss [95 %]", ".3f"), Column("severity", levels={"strong": "problem", "moderate": "look"})),
        ),
        [
            (
                *(row["token"], row["severe"], row["script"]),
                *(Estimate(row["loss"], row["low"], row["high"]), row["severity"]),
            )
            for row in comparison.tokens
        ],
        brief=TOKENS_SHOWN,
        more="--json",
    )


def as_json(sides: Sequence[AuditSide]) -> dict[str, Any]:
    """The comparison as plain values: the audits, and each later one against the first."""
    first, *others = sides
    return {
        "audits": [
            {
                **{"audit_id": side.audit_id, "source": side.source, "finished": side.finished},
                "findings": [{"measure": key[0], "name": key[1], **row} for key, row in side.findings.items()],
            }
            for side in sides
        ],
        "against_first": [asdict(compare_sides(first, other)) for other in others],
    }
