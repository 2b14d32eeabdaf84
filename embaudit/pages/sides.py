"""Compares the figures and severe tokens of checkpoints, by their audits.

A side is one audit, or a checkpoint's newest result of each measure and question. Each figure is taken from the newest
two audits, one of each side, that measured it alike. Figures measured on different texts, with different settings, by a
different version of the measure or on one side only are counted but not subtracted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import duckdb

from embaudit.checkpoint.loading import PROMPTS
from embaudit.declared.document import count
from embaudit.questions.check.verdict import FIRST
from embaudit.questions.report import AnswerFigure
from embaudit.statistics import difference_half_width
from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import find_state
from embaudit.warehouse.regression import Figure, compare, figures_of
from embaudit.warehouse.tables import MEASURE_OF, SUMMARIES
from embaudit.words.errors import UsageError

# In the place of better or worse.
MEANS_NOTHING = "means nothing"
# Settings of a request that change which tokens and pairs are looked at.
ASKED = ("pairs",)


# Compared by identity, so that figures can be kept by the audit that they are from.
@dataclass(frozen=True, eq=False)
class AuditSide:
    """The comparable data of one audit, or of those of its measures that count.

    Attributes:
        run: seed, precision, pooling, maximum length and prompts, if they were requested.
        corpora: content id of each corpus it read, by name.
        versions: of its measures, by name.
        verdict: ``kind`` and ``line``; None without one.
        severe: moderate and strong tokens by string, with loss, interval and script; None without the measure.
    """

    audit_id: str
    source: str
    finished: str
    settings: Mapping[str, Any]
    run: Mapping[str, Any]
    corpora: Mapping[str, str]
    versions: Mapping[str, int]
    figures: Sequence[Figure]
    findings: Mapping[tuple[str, str], Mapping[str, Any]]
    verdict: Mapping[str, str] | None
    severe: Mapping[str, Mapping[str, Any]] | None


@dataclass(frozen=True)
class Side:
    """What one name stands for: its audits, newest first."""

    audits: Sequence[AuditSide]

    @property
    def newest(self) -> AuditSide:
        return self.audits[0]

    @property
    def source(self) -> str:
        return self.newest.source

    @property
    def name(self) -> str:
        more = len(self.audits) - 1
        return f"{self.source} ({self.newest.audit_id[:6]}{f' and {more} more' if more else ''})"

    @property
    def verdict(self) -> Mapping[str, str]:
        """The newest verdict about integrity and quality; empty without one."""
        return next((audit.verdict for audit in self.audits if audit.verdict), {})

    @property
    def is_broken(self) -> bool:
        return self.verdict.get("kind") == "do not serve"

    @property
    def measures(self) -> set[str]:
        return {measure for audit in self.audits for measure in audit.versions}


@dataclass(frozen=True)
class Comparison:
    """The comparison of a side with the first one.

    Attributes:
        audit_id: the newest of the side's.
        figures: rows from ``embaudit.warehouse.regression.compare``, with the interval of ``delta``.
        not_compared: figures that are not subtracted, by reason.
        findings: of both sides, those of the first first, where the same question was asked.
        tokens: those severe in only one of the two; None if unknown, for the reason ``tokens_why``.
        run_otherwise: other differences, which do not prevent a comparison.
        means_nothing: why figures of other measures that moved for the better, or from a broken first side for the
            worse, say nothing; empty if they do.
        precision: what it means that figures are in another precision on this side; empty if none is.
    """

    audit_id: str
    figures: list[dict[str, Any]]
    not_compared: dict[str, list[str]]
    findings: dict[tuple[str, str], tuple[Mapping[str, Any], Mapping[str, Any]]]
    tokens: list[dict[str, Any]] | None
    tokens_why: str
    run_otherwise: list[str]
    means_nothing: str = ""
    precision: str = ""


def read_sides(warehouse: Warehouse | str, names: Sequence[str], wait_seconds: float = 5.0) -> list[Side]:
    """The named sides: audits by id or its first digits, or ``latest``; checkpoints for their state.

    Raises:
        UsageError: if one does not exist or is named twice.
        CheckFailed: if one is not published.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        states = [find_state(connection, name) for name in names]
        sides = [Side([_read(connection, *one) for one in state.audits.items()]) for state in states]
    named = [set(state.audits) for state in states]
    for state in states:
        if named.count(set(state.audits)) > 1:
            raise UsageError(
                f"The audit {state.newest} is named twice; it cannot be compared with itself.",
                next_step="List all audits: embaudit list audits",
            )
    return sides


def _read(connection: duckdb.DuckDBPyConnection, audit_id: str, measures: frozenset[str] | None) -> AuditSide:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return connection.execute(sql, [audit_id]).fetchall()

    def counts(measure: str) -> bool:
        return measures is None or measure in measures

    ((source, finished, settings, seed, dtype),) = rows(
        "SELECT question.source, audit.finished, audit.settings, audit.seed, audit.dtype "
        "FROM audit JOIN audit_question AS question USING (audit_id) WHERE audit_id = ?"
    )
    versions = rows("SELECT measure, version FROM measure_run WHERE audit_id = ? ORDER BY ALL")
    severe = rows(
        "SELECT token, loss, loss_low, loss_high, severity, script FROM sticky_token "
        "WHERE audit_id = ? AND severity IN ('strong', 'moderate') ORDER BY loss, token_id DESC"
    )
    looked = counts("sticky") and rows("SELECT 1 FROM sticky_summary WHERE audit_id = ? LIMIT 1")
    tokens = ("loss", "low", "high", "severity", "script")
    found = rows("SELECT measure, name, level, sentence FROM finding WHERE audit_id = ? ORDER BY place")
    verdicts = rows("SELECT kind, line FROM verdict WHERE audit_id = ?")
    asked = json.loads(settings)
    return AuditSide(
        audit_id=audit_id,
        source=source,
        finished=f"{finished:%Y-%m-%d %H:%M %Z}",
        settings=asked,
        run={"seed": seed, "dtype": dtype, **{name: asked.get(name) for name in ("pooling", "max_length", *PROMPTS)}},
        corpora=dict(rows("SELECT name, corpus_id FROM audit_corpus WHERE audit_id = ? ORDER BY ALL")),
        versions={measure: version for measure, version in versions if counts(measure)},
        figures=[figure for figure in figures_of(connection, audit_id) if counts(MEASURE_OF[figure.summary])],
        findings={
            (measure, name): {"level": level, "sentence": said}
            for measure, name, level, said in found
            if counts(measure)
        },
        verdict=next(
            (dict(zip(("kind", "line"), row, strict=True)) for row in verdicts if row[0] != "not checked"), None
        )
        if counts("integrity")
        else None,
        # Of several entries with the same string, the last one has the largest loss and is kept.
        severe={token: dict(zip(tokens, rest, strict=True)) for token, *rest in severe} if looked else None,
    )


def compare_sides(first: Side, other: Side) -> Comparison:
    """Compare a side with the first one."""
    before: dict[tuple[str, str, str], Figure] = {}
    after: dict[tuple[str, str, str], Figure] = {}
    not_compared: dict[str, list[str]] = {}
    used: list[tuple[AuditSide, AuditSide]] = []
    ours, theirs = _figures(first), _figures(other)
    for name in dict.fromkeys((*theirs, *ours)):
        summary, item, _ = name
        alike, why = _alike(
            list(ours.get(name, {})), list(theirs.get(name, {})), partial(_incomparable, summary=summary, item=item)
        )
        if alike is None:
            why = why or _measured_once(first, other, MEASURE_OF[summary], name in ours)
            not_compared.setdefault(why, []).append(f"{summary}.{name[2]}, {item}")
            continue
        before[name], after[name] = ours[name][alike[0]], theirs[name][alike[1]]
        used.append(alike)
    rows = []
    for row in compare(after.values(), before.values()):
        name = (row["summary"], row["item"], row["measure"])
        low, high = difference_interval(before[name], after[name])
        rows.append({**row, "low": low, "high": high, "change": _change(row)})
    why_nothing = _why_nothing(first, other, rows)
    meaningless = {"worse"} if first.is_broken else set()
    if not first.is_broken or other.is_broken:
        meaningless.add("better")
    for row in rows:
        if why_nothing and row["change"] in meaningless and MEASURE_OF[row["summary"]] not in FIRST:
            row["change"] = MEANS_NOTHING
    tokens, why = _token_changes(first, other)
    otherwise = [what for what in first.newest.run if any(a.run[what] != b.run[what] for a, b in used)]
    return Comparison(
        other.newest.audit_id,
        sorted(rows, key=_importance),
        not_compared,
        dict(_finding_pairs(first, other)),
        tokens,
        why,
        otherwise,
        why_nothing,
        _precision(before, after, rows),
    )


def _precision(
    before: Mapping[tuple[str, str, str], Figure],
    after: Mapping[tuple[str, str, str], Figure],
    rows: Sequence[Mapping[str, Any]],
) -> str:
    """Of figures in another precision, and how many changes it explains; empty if there are none."""
    pairs = [(figure.dtype, after[name].dtype) for name, figure in before.items() if figure.dtype != after[name].dtype]
    if not pairs:
        return ""
    ours, theirs = (" or ".join(sorted(set(some))) for some in zip(*pairs, strict=True))
    are = "is" if len(pairs) == 1 else "are"
    moved = [row for row in rows if row["by_precision"] and row["worse_when"] is not None]
    explained = sum(0 <= row["tolerance"] - abs(row["delta"]) < row["by_precision"] for row in moved)
    return (
        f"{count(len(pairs), 'figure')} {are} in {theirs} on this side, and in {ours} on the first: a difference that "
        f"this may explain is not called a change, which is so of {explained}"
    )


def _why_nothing(first: Side, other: Side, rows: Sequence[Mapping[str, Any]]) -> str:
    """A checkpoint that finds less in its texts may spread its vectors better, and is no better for it."""
    if other.is_broken:
        return f"{other.name} must not be served"
    if first.is_broken:
        return f"{first.name} must not be served"
    fell = [row for row in rows if row["change"] == "worse" and MEASURE_OF[row["summary"]] in FIRST]
    if fell:
        row = fell[0]
        now = f"{row['measure']} of {row['item']} is {row['value']:.3f}, and was {row['predecessor_value']:.3f}"
        return f"the quality of {other.name} fell ({now})"
    return ""


def _figures(side: Side) -> dict[tuple[str, str, str], dict[AuditSide, Figure]]:
    """Each figure in every audit that has it, newest first."""
    found: dict[tuple[str, str, str], dict[AuditSide, Figure]] = {}
    for audit in side.audits:
        for figure in audit.figures:
            found.setdefault(figure.name, {})[audit] = figure
    return found


def _alike(
    ours: Sequence[AuditSide], theirs: Sequence[AuditSide], why_not: Callable[[AuditSide, AuditSide], str]
) -> tuple[tuple[AuditSide, AuditSide] | None, str]:
    """The newest two audits, one of each side, that asked the same; otherwise why the newest two did not."""
    pairs = sorted(product(range(len(ours)), range(len(theirs))), key=lambda places: (sum(places), places))
    reasons = []
    for one, another in pairs:
        why = why_not(ours[one], theirs[another])
        if not why:
            return (ours[one], theirs[another]), ""
        reasons.append(why)
    return None, next(iter(reasons), "")


def _measured_once(first: Side, other: Side, measure: str, is_ours: bool) -> str:
    """Why only one side has a figure."""
    lacking = other if is_ours else first
    if measure not in lacking.measures:
        return f"{lacking.name} was not measured by {measure}"
    return f"{measure} has no such figure in {lacking.name}"


def _finding_pairs(
    first: Side, other: Side
) -> Iterator[tuple[tuple[str, str], tuple[Mapping[str, Any], Mapping[str, Any]]]]:
    for key in dict.fromkeys(key for audit in first.audits for key in audit.findings):
        ours, theirs = ([audit for audit in side.audits if key in audit.findings] for side in (first, other))
        alike, _ = _alike(ours, theirs, partial(_other_question, measure=key[0]))
        if alike is not None:
            yield key, (alike[0].findings[key], alike[1].findings[key])


def _other_question(first: AuditSide, other: AuditSide, measure: str) -> str:
    """Why a measure's findings are not comparable; empty if they are."""
    return _of_measure(first, other, measure) or _of_texts(first, other, measure, None)


def _incomparable(first: AuditSide, other: AuditSide, summary: str, item: str) -> str:
    """Why a shared figure is not comparable; empty if it is."""
    measure = MEASURE_OF[summary]
    corpus = SUMMARIES[summary].parts_of(item).get("corpus")
    return _of_measure(first, other, measure) or _of_texts(first, other, measure, corpus)


def _of_measure(first: AuditSide, other: AuditSide, measure: str) -> str:
    if first.versions.get(measure) != other.versions.get(measure):
        return f"{measure} was measured by a different version"
    ours, theirs = (side.settings.get(measure, {}) for side in (first, other))
    changed = sorted(name for name in {*ours, *theirs} if name != "corpora" and ours.get(name) != theirs.get(name))
    if changed:
        return f"different settings of {measure}: {', '.join(changed)}"
    return ""


def _of_texts(first: AuditSide, other: AuditSide, measure: str, corpus: str | None) -> str:
    """Args:
    corpus: the figure's corpus; None for all corpora of the measure."""
    if corpus is None:
        asked = [name for name in ASKED if first.settings.get(name) != other.settings.get(name)]
        if asked:
            return f"different {' and '.join(asked)}"
    read = [corpus] if corpus is not None else first.settings.get(measure, {}).get("corpora", [])
    different = [name for name in read if first.corpora.get(name) != other.corpora.get(name)]
    return f"different texts in {', '.join(different)}" if different else ""


def difference_interval(
    before: Figure | AnswerFigure, after: Figure | AnswerFigure
) -> tuple[float | None, float | None]:
    """The interval of the difference, from both intervals; conservative if both read the same texts."""
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return None, None
    delta = after.value - before.value
    down = difference_half_width(after.value - after.low, before.high - before.value)
    up = difference_half_width(after.high - after.value, before.value - before.low)
    return delta - down, delta + up


def _change(row: Mapping[str, Any]) -> str:
    if row["worse_when"] is None or abs(row["delta"]) <= row["tolerance"]:
        return ""
    return "worse" if row["is_worse"] else "better"


def _importance(row: Mapping[str, Any]) -> tuple[Any, ...]:
    # A change from zero to something counts as the largest.
    of_first = MEASURE_OF[row["summary"]] not in FIRST
    relative = abs(row["relative_change"]) if row["predecessor_value"] else float("inf") if row["delta"] else 0.0
    order = ["worse", "better", MEANS_NOTHING, ""].index(row["change"])
    return order, of_first, -relative, row["summary"], row["item"], row["measure"]


def _token_changes(first: Side, other: Side) -> tuple[list[dict[str, Any]] | None, str]:
    ours, theirs = ([audit for audit in side.audits if audit.severe is not None] for side in (first, other))
    if not ours or not theirs:
        return None, "one of the two did not look for sticky tokens"
    alike, why = _alike(ours, theirs, partial(_incomparable, summary="sticky_summary", item="retention"))
    if alike is None:
        return None, why
    before, now = (audit.severe or {} for audit in alike)
    rows = [
        {
            "token": token,
            "severe": "in this one" if token in now else "in the first",
            **(now[token] if token in now else before[token]),
        }
        for token in before.keys() ^ now.keys()
    ]
    return sorted(rows, key=lambda row: (row["severe"], -row["loss"], row["token"])), ""
