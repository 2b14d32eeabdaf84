"""What is compared of audits, and the differences of two of them: figures and severe tokens.

A figure of other texts, other settings or another version of its measure is another figure: it is named, and nothing is
subtracted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from embaudit.address import Warehouse, warehouse_at
from embaudit.errors import UsageError
from embaudit.gate.facts import find_named
from embaudit.intervals import difference_half_width
from embaudit.measures import MEASURES
from embaudit.request import PROMPTS
from embaudit.tables import SUMMARIES
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.watched import figures_of
from embaudit.watch.regression import Figure, compare

MEASURE_OF = {
    summary.name: measure.name
    for measure in MEASURES.values()
    for summary in (*(row.table.summary for row in measure.rows), *measure.view_summaries)
    if summary
}
# What one request says of the whole audit that changes which tokens and pairs are looked at.
ASKED = ("limit_tokens", "pairs")


@dataclass(frozen=True)
class AuditSide:
    """What is compared of one audit.

    Attributes:
        run: seed, precision, pooling, longest input and prompts that it was run with, where they were asked for.
        corpora: the content of each corpus that it read, by name.
        versions: of the measures that it ran, by name.
        severe: moderate and strong tokens by their strings, with loss, interval and script; None without the measure.
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
    severe: Mapping[str, Mapping[str, Any]] | None

    @property
    def name(self) -> str:
        return f"{self.source} ({self.audit_id[:6]})"


@dataclass(frozen=True)
class Comparison:
    """One audit against the first.

    Attributes:
        figures: rows as ``embaudit.watch.regression.compare`` makes them, with the interval of ``delta``.
        not_compared: figures that both have, by the reason why they are not subtracted.
        tokens: severe in one of the two alone; None where that cannot be told, for the reason ``tokens_why``.
        run_otherwise: what else differs, and is no reason not to compare.
    """

    audit_id: str
    figures: list[dict[str, Any]]
    not_compared: dict[str, list[str]]
    tokens: list[dict[str, Any]] | None
    tokens_why: str
    run_otherwise: list[str]


def read_sides(warehouse: Warehouse | str, names: Sequence[str], wait_seconds: float = 5.0) -> list[AuditSide]:
    """The audits that are named: by an id or its first digits, ``latest``, or a checkpoint for its newest audit.

    Raises:
        UsageError: if one is not there, or is named twice.
        CheckFailed: if one is not published.
        WarehouseError: if the warehouse is not there, is locked, or is of an older embaudit.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        sides = [_read(connection, find_named(connection, name)) for name in names]
    doubled = [audit_id for audit_id, times in Counter(side.audit_id for side in sides).items() if times > 1]
    if doubled:
        raise UsageError(
            f"The audit {doubled[0]} is named twice, and does not differ from itself.",
            next_step="List others: embaudit list audits",
        )
    return sides


def _read(connection: duckdb.DuckDBPyConnection, audit_id: str) -> AuditSide:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return connection.execute(sql, [audit_id]).fetchall()

    ((source, finished, settings, seed, dtype),) = rows(
        "SELECT question.source, audit.finished, audit.settings, audit.seed, audit.dtype "
        "FROM audit JOIN audit_question AS question USING (audit_id) WHERE audit_id = ?"
    )
    versions = dict(rows("SELECT measure, version FROM measure_run WHERE audit_id = ? ORDER BY ALL"))
    severe = rows(
        "SELECT token, loss, loss_low, loss_high, severity, script FROM sticky_token "
        "WHERE audit_id = ? AND severity IN ('strong', 'moderate') ORDER BY loss, token_id DESC"
    )
    looked = rows("SELECT 1 FROM sticky_summary WHERE audit_id = ? LIMIT 1")
    tokens = ("loss", "low", "high", "severity", "script")
    found = rows("SELECT measure, name, level, sentence FROM finding WHERE audit_id = ? ORDER BY place")
    asked = json.loads(settings)
    return AuditSide(
        audit_id=audit_id,
        source=source,
        finished=f"{finished:%Y-%m-%d %H:%M %Z}",
        settings=asked,
        run={"seed": seed, "dtype": dtype, **{name: asked.get(name) for name in ("pooling", "max_length", *PROMPTS)}},
        corpora=dict(rows("SELECT name, corpus_id FROM audit_corpus WHERE audit_id = ? ORDER BY ALL")),
        versions=versions,
        figures=figures_of(connection, audit_id),
        findings={(measure, name): {"level": level, "sentence": said} for measure, name, level, said in found},
        # The largest loss of several entries with one string is the last, and stays.
        severe={token: dict(zip(tokens, rest, strict=True)) for token, *rest in severe} if looked else None,
    )


def compare_sides(first: AuditSide, other: AuditSide) -> Comparison:
    """An audit against the first."""
    before = {figure.name: figure for figure in first.figures}
    own: list[Figure] = []
    not_compared: dict[str, list[str]] = {}
    for figure in other.figures:
        if figure.name in before:
            if why := _incomparable(first, other, figure.summary, figure.item):
                not_compared.setdefault(why, []).append(f"{figure.summary}.{figure.measure}, {figure.item}")
            else:
                own.append(figure)
    after = {figure.name: figure for figure in own}
    rows = []
    for row in compare(own, first.figures):
        name = (row["summary"], row["item"], row["measure"])
        low, high = _interval(before[name], after[name])
        rows.append({**row, "low": low, "high": high, "change": _change(row)})
    tokens, why = _token_changes(first, other)
    otherwise = [what for what in first.run if first.run[what] != other.run[what]]
    return Comparison(other.audit_id, sorted(rows, key=_importance), not_compared, tokens, why, otherwise)


def other_question(first: AuditSide, other: AuditSide, measure: str) -> str:
    """Why findings of a measure are not of the same question; empty if they are."""
    return _of_measure(first, other, measure) or _of_texts(first, other, measure, None)


def _incomparable(first: AuditSide, other: AuditSide, summary: str, item: str) -> str:
    """Why a figure of both is not the same figure; empty if it is."""
    measure = MEASURE_OF.get(summary, "")
    corpus = SUMMARIES[summary].parts_of(item).get("corpus")
    return _of_measure(first, other, measure) or _of_texts(first, other, measure, corpus)


def _of_measure(first: AuditSide, other: AuditSide, measure: str) -> str:
    if first.versions.get(measure) != other.versions.get(measure):
        return f"{measure} was measured by another version"
    ours, theirs = (side.settings.get(measure, {}) for side in (first, other))
    changed = sorted(name for name in {*ours, *theirs} if name != "corpora" and ours.get(name) != theirs.get(name))
    if changed:
        return f"other settings of {measure}: {', '.join(changed)}"
    return ""


def _of_texts(first: AuditSide, other: AuditSide, measure: str, corpus: str | None) -> str:
    """Args:
    corpus: the one that a figure is of; None for all that the measure reads."""
    if corpus is None:
        asked = [name for name in ASKED if first.settings.get(name) != other.settings.get(name)]
        if asked:
            return f"other {' and '.join(asked)}"
    read = [corpus] if corpus is not None else first.settings.get(measure, {}).get("corpora", [])
    different = [name for name in read if first.corpora.get(name) != other.corpora.get(name)]
    return f"other texts under the name {', '.join(different)}" if different else ""


def _interval(before: Figure, after: Figure) -> tuple[float | None, float | None]:
    """Of the difference, from both intervals: wider than need be where both read the same texts."""
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
    # From nothing to something is the largest of changes.
    relative = abs(row["relative_change"]) if row["predecessor_value"] else float("inf") if row["delta"] else 0.0
    return ["worse", "better", ""].index(row["change"]), -relative, row["summary"], row["item"], row["measure"]


def _token_changes(first: AuditSide, other: AuditSide) -> tuple[list[dict[str, Any]] | None, str]:
    if first.severe is None or other.severe is None:
        return None, "one of the two did not look for sticky tokens"
    if why := _incomparable(first, other, "sticky_summary", "retention"):
        return None, why
    rows = []
    for token in {*first.severe, *other.severe}:
        before, now = first.severe.get(token), other.severe.get(token)
        if (before is None) != (now is None):
            known = now or before or {}
            rows.append({"token": token, "severe": "in the first" if now is None else "in this one", **known})
    return sorted(rows, key=lambda row: (row["severe"], -row["loss"], row["token"])), ""
