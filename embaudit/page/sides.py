"""Compares the figures and severe tokens of audits.

Figures measured on different texts, with different settings or by a different version of the measure are listed but not
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
# Settings of a request that change which tokens and pairs are looked at.
ASKED = ("limit_tokens", "pairs")


@dataclass(frozen=True)
class AuditSide:
    """The comparable data of one audit.

    Attributes:
        run: seed, precision, pooling, maximum length and prompts, if they were requested.
        corpora: content id of each corpus it read, by name.
        versions: of its measures, by name.
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
    severe: Mapping[str, Mapping[str, Any]] | None

    @property
    def name(self) -> str:
        return f"{self.source} ({self.audit_id[:6]})"


@dataclass(frozen=True)
class Comparison:
    """The comparison of an audit with the first one.

    Attributes:
        figures: rows from ``embaudit.watch.regression.compare``, with the interval of ``delta``.
        not_compared: shared figures that are not subtracted, by reason.
        tokens: those severe in only one of the two; None if unknown, for the reason ``tokens_why``.
        run_otherwise: other differences, which do not prevent a comparison.
    """

    audit_id: str
    figures: list[dict[str, Any]]
    not_compared: dict[str, list[str]]
    tokens: list[dict[str, Any]] | None
    tokens_why: str
    run_otherwise: list[str]


def read_sides(warehouse: Warehouse | str, names: Sequence[str], wait_seconds: float = 5.0) -> list[AuditSide]:
    """The named audits: by id or its first digits, ``latest``, or a checkpoint for its newest audit.

    Raises:
        UsageError: if one does not exist or is named twice.
        CheckFailed: if one is not published.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        sides = [_read(connection, find_named(connection, name)) for name in names]
    repeated = [audit_id for audit_id, times in Counter(side.audit_id for side in sides).items() if times > 1]
    if repeated:
        raise UsageError(
            f"The audit {repeated[0]} is named twice; it cannot be compared with itself.",
            next_step="List all audits: embaudit list audits",
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
        # Of several entries with the same string, the last one has the largest loss and is kept.
        severe={token: dict(zip(tokens, rest, strict=True)) for token, *rest in severe} if looked else None,
    )


def compare_sides(first: AuditSide, other: AuditSide) -> Comparison:
    """Compare an audit with the first one."""
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
    """Why a measure's findings are not comparable; empty if they are."""
    return _of_measure(first, other, measure) or _of_texts(first, other, measure, None)


def _incomparable(first: AuditSide, other: AuditSide, summary: str, item: str) -> str:
    """Why a shared figure is not comparable; empty if it is."""
    measure = MEASURE_OF.get(summary, "")
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


def _interval(before: Figure, after: Figure) -> tuple[float | None, float | None]:
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
