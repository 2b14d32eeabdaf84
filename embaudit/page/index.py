"""A page about a whole warehouse: the state of each checkpoint, open findings, regressions and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from embaudit.address import Warehouse
from embaudit.finding import LEVELS, Finding, Level
from embaudit.page.chart import PALETTE, Axis, Chart, Layer, Mark, Panel, interval
from embaudit.page.model import Column, Link, Page, Part, Section, Table, Value, count
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest

NAME = "index.html"
Row = dict[str, Any]
# The newest audit for each name: different revisions are different checkpoints, but only the newest counts.
NEWEST = """
    SELECT * FROM latest_audit
    QUALIFY row_number() OVER (PARTITION BY source ORDER BY finished DESC, audit_id) = 1
"""
FACTS = {
    "audits": (
        "SELECT audit_id, coalesce(checkpoint.source, audit.settings ->> '$.source') AS source, profile, status, "
        "finished, reason FROM audit LEFT JOIN checkpoint USING (checkpoint_id) "
        "ORDER BY finished DESC NULLS LAST, audit_id"
    ),
    "newest": (
        f"SELECT newest.audit_id, newest.source, left(newest.revision, 12) AS revision, newest.profile, "
        "newest.finished, gate_outcome.outcome AS gate, board.* EXCLUDE (audit_id, source, profile, finished) "
        f"FROM ({NEWEST}) AS newest LEFT JOIN leaderboard AS board ON board.audit_id = newest.audit_id "
        "LEFT JOIN gate_outcome ON gate_outcome.audit_id = newest.audit_id ORDER BY newest.finished DESC, newest.source"
    ),
    "findings": (
        f"SELECT newest.source, finding.* FROM finding JOIN ({NEWEST}) AS newest USING (audit_id) "
        "ORDER BY newest.source, finding.audit_id, finding.measure, finding.place"
    ),
    "worse": (
        "SELECT audit.audit_id, coalesce(checkpoint.source, audit.settings ->> '$.source') AS source, audit.finished, "
        "regression.* EXCLUDE (audit_id) FROM regression JOIN audit USING (audit_id) "
        "LEFT JOIN checkpoint USING (checkpoint_id) WHERE is_worse "
        "ORDER BY audit.finished DESC, audit.audit_id, predecessor_audit_id, summary, item, measure"
    ),
    "figures": (
        "SELECT checkpoint.source, audit.finished, audit.audit_id, severity.estimated, severity.estimated_low, "
        "severity.estimated_high, socm.socm FROM audit JOIN checkpoint USING (checkpoint_id) "
        "LEFT JOIN (SELECT * FROM sticky_severity WHERE severity = 'moderate') AS severity USING (audit_id) "
        "LEFT JOIN (SELECT audit_id, avg(socm_mean) AS socm FROM socm_summary GROUP BY audit_id) AS socm "
        "USING (audit_id) WHERE status = 'published' ORDER BY audit.finished, audit.audit_id"
    ),
    "checks": (
        "SELECT audit_id, table_name, expectation, column_name, severity, sum(unexpected_count)::BIGINT AS rows "
        "FROM expectation_result WHERE NOT success GROUP BY ALL ORDER BY severity, audit_id, table_name, expectation, "
        "column_name"
    ),
}
HEADLINES = 5
OPEN_LEVELS = ("problem", "look")
LEVEL_OF: dict[str, Level] = {level: level for level in LEVELS}
ENDS: dict[str, Level] = {"failed": "problem", "tripped": "problem", "passed": "ok", "critical": "problem"}


@dataclass(frozen=True)
class IndexFacts:
    """Rows by name, and the existing pages next to the index, by audit."""

    warehouse: str
    rows: dict[str, list[Row]]
    pages: dict[str, str] = field(default_factory=dict)

    def link(self, audit_id: str, text: str) -> Value:
        return Link(text, self.pages[audit_id]) if audit_id in self.pages else text


def read_index(warehouse: Warehouse, folder: Path, wait_seconds: float = 5.0) -> IndexFacts:
    """Read the facts for the page.

    Args:
        folder: of the page, with the audits' pages next to it.

    Raises:
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        rows = {name: _rows(connection, sql) for name, sql in FACTS.items()}
    pages = {path.stem: path.name for path in folder.glob("*.html")}
    return IndexFacts(
        str(warehouse),
        rows,
        {row["audit_id"]: pages[row["audit_id"]] for row in rows["audits"] if row["audit_id"] in pages},
    )


def _rows(connection: Any, sql: str) -> list[Row]:
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def index_page(facts: IndexFacts) -> Page:
    """The page; empty sections are left out."""
    audits, newest = facts.rows["audits"], facts.rows["newest"]
    ends = Counter(row["status"] for row in audits)
    sections = [
        Section("Checkpoints", list(_checkpoints(facts))),
        Section("Open findings", list(_open(facts))),
        Section("What got worse", list(_worse(facts))),
        Section("Over time", list(_over_time(facts))),
        Section("What failed", list(_failed(facts))),
    ]
    last = next((_day(row["finished"]) for row in audits if row["finished"]), "never")
    return Page(
        kind="All audits in",
        title=facts.warehouse.rsplit("/", 1)[-1],
        identity=[
            ("where", facts.warehouse),
            ("checkpoints", f"{len(newest):,}"),
            ("audits", f"{ends['published']:,} published, {ends['failed']:,} failed"),
            ("last audit", last),
        ],
        findings=list(_headlines(facts)),
        sections=[section for section in sections if section.parts],
    )


def _headlines(facts: IndexFacts) -> Iterator[Finding]:
    """Which checkpoints have problems, or that none has."""
    if not facts.rows["newest"]:
        yield Finding("not measured", "This warehouse has no published audits.", advice="embaudit audit CHECKPOINT")
        return
    by_level = {
        level: list(dict.fromkeys(row["source"] for row in facts.rows["findings"] if row["level"] == level))
        for level in OPEN_LEVELS
    }
    total = count(len(facts.rows["newest"]), "checkpoint")
    problems = by_level["problem"]
    if problems:
        yield Finding("problem", f"Problems in {len(problems):,} of {total}: {_some(problems)}.")
    looked_at = [name for name in by_level["look"] if name not in problems]
    if looked_at:
        yield Finding("look", f"Something to look at in {len(looked_at):,} of {total}: {_some(looked_at)}.")
    if not problems and not looked_at:
        yield Finding("ok", f"Of {total}, none has a problem or something to look at.")
    tripped = [row["source"] for row in facts.rows["newest"] if row["gate"] == "tripped"]
    if tripped:
        yield Finding("problem", f"The gate tripped for {count(len(tripped), 'checkpoint')}: {_some(tripped)}.")


def _some(names: Collection[str]) -> str:
    shown = list(names)[:HEADLINES]
    return ", ".join(shown) + (f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else "")


def _checkpoints(facts: IndexFacts) -> Iterator[Part]:
    levels: dict[str, Counter[str]] = {}
    for row in facts.rows["findings"]:
        levels.setdefault(row["audit_id"], Counter())[row["level"]] += 1

    def worst(row: Row) -> str:
        found = levels.get(row["audit_id"], Counter())
        return next((level for level in LEVELS if found[level]), "")

    def rank(row: Row) -> int:
        level = worst(row)
        return LEVELS.index(LEVEL_OF[level]) if level else len(LEVELS)

    rows = sorted(facts.rows["newest"], key=rank)
    if not rows:
        return
    columns = (
        *(Column("checkpoint", is_prose=True), Column("revision"), Column("audited", is_right=True), Column("profile")),
        *(Column("worst finding", levels=LEVEL_OF), Column("gate", levels=ENDS), Column("worst loss", ".2f")),
        *(Column("tokens at loss ≥ .25", ",.0f"), Column("mean SOCM", ".3f"), Column("of", is_prose=True)),
    )
    cells = [
        (
            *(facts.link(row["audit_id"], row["source"]), row["revision"], _day(row["finished"]), row["profile"]),
            *(worst(row), row["gate"], row["worst_loss"], row["strong_or_moderate_tokens"]),
            *(row["socm_mean"], row["socm_corpora"]),
        )
        for row in rows
    ]
    used = [place for place in range(len(columns)) if any(row[place] not in (None, "") for row in cells)]
    yield Table(
        [columns[place] for place in used],
        [[row[place] for place in used] for row in cells],
        "The newest audit of each, worst first",
        more="embaudit query leaderboard",
    )


def _open(facts: IndexFacts) -> Iterator[Part]:
    found = [row for row in facts.rows["findings"] if row["level"] in OPEN_LEVELS]
    if not found:
        return
    found.sort(key=lambda row: OPEN_LEVELS.index(row["level"]))
    yield Table(
        (
            *(Column("level", levels=LEVEL_OF), Column("checkpoint"), Column("measure")),
            *(Column("what was found", is_prose=True), Column("what to do next", is_prose=True)),
        ),
        [
            (
                *(row["level"], facts.link(row["audit_id"], row["source"]), row["measure"]),
                *(row["sentence"], row["advice"]),
            )
            for row in found
        ],
        more="embaudit query findings",
    )


def _worse(facts: IndexFacts) -> Iterator[Part]:
    rows = facts.rows["worse"]
    if not rows:
        return
    yield Table(
        (
            *(Column("audited", is_right=True), Column("checkpoint"), Column("figure"), Column("item")),
            *(Column("before", ".4g"), Column("now", ".4g"), Column("change", "+.3g")),
        ),
        [
            (
                *(_day(row["finished"]), facts.link(row["audit_id"], row["source"])),
                *(f"{row['summary']}.{row['measure']}", row["item"]),
                *(row["predecessor_value"], row["value"], row["delta"]),
            )
            for row in rows
        ],
        "Changes beyond noise and tolerance since the previous revision, newest first",
        more="embaudit query regressions",
    )


def _over_time(facts: IndexFacts) -> Iterator[Part]:
    """Two figures of the most often audited checkpoints, as many as there are colours."""
    audits = Counter(row["source"] for row in facts.rows["figures"])
    often = [source for source, number in audits.most_common(len(PALETTE)) if number > 1]
    rows = [row for row in facts.rows["figures"] if row["source"] in often]
    # To the minute: a checkpoint may be audited twice a day.
    when = {row["audit_id"]: f"{row['finished']:%Y-%m-%d %H:%M}" for row in rows}
    days = list(dict.fromkeys(when.values()))
    if len(days) < 2:
        return

    def panel(name: str, title: str, form: str) -> Panel:
        marks = [
            Mark(
                x=when[row["audit_id"]], y=row[name], series=row["source"], label=f"{row['source']}, {row['audit_id']}"
            )
            for row in rows
            if row[name] is not None
        ]
        ends = [
            one
            for row in rows
            for one in interval(when[row["audit_id"]], row.get(f"{name}_low"), row.get(f"{name}_high"), row["source"])
        ]
        layers = [Layer("rule", ends, is_data=False), Layer("line", marks, is_data=False), Layer("point", marks)]
        return Panel(layers, Axis(categories=days), Axis(title, form, has_zero=True), title=title)

    chart = Chart(
        "How checkpoints changed",
        "Each point is an audit; a line joins those of one checkpoint, revision after revision. More "
        "tokens at loss ≥ .25, with their 95 % intervals, are worse: each takes a quarter or more of a text's "
        "similarities.",
        [
            [panel("estimated", "tokens at loss ≥ .25", ",.0f")],
            [panel("socm", "mean SOCM over corpora", ".2f")],
        ],
        more="embaudit query sticky-severity",
    )
    if not chart.is_empty:
        yield chart


def _failed(facts: IndexFacts) -> Iterator[Part]:
    failed = [row for row in facts.rows["audits"] if row["status"] == "failed"]
    if failed:
        yield Table(
            (Column("audit"), Column("checkpoint"), Column("ended", is_right=True), Column("why", is_prose=True)),
            [(row["audit_id"], row["source"], _day(row["finished"]), row["reason"]) for row in failed],
            "Audits",
            more="embaudit query audits",
        )
    checks = facts.rows["checks"]
    if checks:
        yield Table(
            (
                *(Column("audit"), Column("severity", levels=ENDS), Column("table"), Column("check")),
                *(Column("column"), Column("rows", ",d")),
            ),
            [
                (
                    *(facts.link(row["audit_id"], row["audit_id"]), row["severity"], row["table_name"]),
                    *(row["expectation"], row["column_name"], row["rows"]),
                )
                for row in checks
            ],
            "Checks",
            more="embaudit query failed-checks",
        )


def _day(when: datetime | None) -> str:
    return "" if when is None else f"{when:%Y-%m-%d}"
