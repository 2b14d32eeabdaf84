"""A page about a whole warehouse: the state of each checkpoint, open findings, regressions and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from embaudit.declared.chart import PALETTE, Axis, Chart, Layer, Mark, Panel, interval
from embaudit.declared.document import Column, Link, Page, Part, Section, Table, Value, count
from embaudit.declared.rule import LEVELS, Finding, Level
from embaudit.measures import MEASURES
from embaudit.questions.check.verdict import LEVEL_OF as LEVEL_OF_VERDICT
from embaudit.system.settings import Warehouse
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.words.sentences import first_of

NAME = "index.html"
Row = dict[str, Any]
# The checkpoint that each name stands for: different revisions are different checkpoints, but only the newest counts.
# A name with a revision is one of the same without.
NAMED = "SELECT name AS source, checkpoint_id FROM named_checkpoint WHERE name LIKE '/%' OR NOT contains(name, '@')"
# A checkpoint's newest gate under each policy; a later audit without a policy, or under another, decides nothing.
GATES = """
    SELECT
        newest.checkpoint_id,
        CASE
            WHEN count(item.item) FILTER (item.accepted IS NULL) > 0 THEN 'tripped'
            WHEN count(item.item) > 0 THEN 'accepted'
            ELSE 'passed'
        END AS gate
    FROM (
        SELECT DISTINCT audit.checkpoint_id, gate.audit_id, gate.policy_hash
        FROM gate_result AS gate
        JOIN audit USING (audit_id)
        WHERE audit.status = 'published'
        QUALIFY rank() OVER (
            PARTITION BY audit.checkpoint_id, gate.policy
            ORDER BY gate.evaluated DESC, gate.policy_hash, gate.audit_id, gate.baseline_audit_id
        ) = 1
    ) AS newest
    LEFT JOIN found_item AS item
        ON item.what = 'gate' AND item.audit_id = newest.audit_id AND item.against = newest.policy_hash
    GROUP BY newest.checkpoint_id
"""
FACTS = {
    "audits": (
        "SELECT audit_id, coalesce(audit.settings ->> '$.source', checkpoint.source) AS source, profile, status, "
        "finished, reason FROM audit LEFT JOIN checkpoint USING (checkpoint_id) "
        "ORDER BY finished DESC NULLS LAST, audit_id"
    ),
    "checkpoints": (
        "SELECT named.source, board.* EXCLUDE (source), left(checkpoint.revision, 12) AS revision, gates.gate "
        f"FROM ({NAMED}) AS named JOIN leaderboard AS board USING (checkpoint_id) "
        f"LEFT JOIN checkpoint USING (checkpoint_id) LEFT JOIN ({GATES}) AS gates USING (checkpoint_id) "
        "ORDER BY board.finished DESC, named.source"
    ),
    "results": (
        "SELECT named.source, result.audit_id, result.measure, result.is_lead "
        f"FROM latest_result AS result JOIN ({NAMED}) AS named USING (checkpoint_id) "
        "ORDER BY named.source, result.finished DESC, result.audit_id, result.measure"
    ),
    "findings": (
        "SELECT named.source, result.is_lead, finding.* "
        "FROM finding JOIN latest_result AS result USING (audit_id, measure) "
        f"JOIN ({NAMED}) AS named USING (checkpoint_id) "
        "ORDER BY named.source, result.finished DESC, finding.audit_id, finding.measure, finding.place"
    ),
    "worse": (
        "SELECT audit.audit_id, coalesce(audit.settings ->> '$.source', checkpoint.source) AS source, audit.finished, "
        "regression.* EXCLUDE (audit_id), acceptance.accepted_by FROM regression JOIN audit USING (audit_id) "
        "LEFT JOIN checkpoint USING (checkpoint_id) LEFT JOIN acceptance ON acceptance.what = 'worse' "
        "AND acceptance.audit_id = audit.audit_id AND acceptance.against = regression.predecessor_audit_id "
        "AND acceptance.item = concat(summary, '.', measure, ', ', regression.item) WHERE is_worse "
        "ORDER BY audit.finished DESC, audit.audit_id, predecessor_audit_id, summary, regression.item, measure"
    ),
    "figures": (
        "SELECT named.source, named.asked AS finished, named.audit_id, severity.estimated, severity.estimated_low, "
        "severity.estimated_high, socm.socm FROM audit_named AS named "
        "LEFT JOIN (SELECT * FROM sticky_severity WHERE severity = 'moderate') AS severity USING (audit_id) "
        "LEFT JOIN (SELECT audit_id, avg(socm_mean) AS socm FROM socm_summary GROUP BY audit_id) AS socm "
        "USING (audit_id) ORDER BY named.asked, named.audit_id, named.source"
    ),
    "watched": (
        "WITH looked AS ("
        "SELECT subject AS name, 'answer' AS what, concat(asks, ': ', verdict) AS verdict, asked, line "
        "FROM latest_answer "
        "UNION ALL SELECT source, 'watched', status, last_seen, coalesce(reason, '') FROM watched_source "
        "WHERE status IN ('failed', 'gone') "
        "QUALIFY row_number() OVER (PARTITION BY source ORDER BY last_seen DESC, parameters_key) = 1) "
        "SELECT looked.*, count(item.item) FILTER (item.accepted IS NULL) AS open_items, "
        "count(item.accepted) AS accepted "
        "FROM looked LEFT JOIN found_item AS item ON item.what = looked.what AND item.against = looked.name "
        # Several questions may be asked of one index.
        "AND (looked.what <> 'answer' OR item.item = looked.verdict) "
        "GROUP BY ALL ORDER BY open_items = 0, looked.what, looked.name, looked.verdict"
    ),
    "checks": (
        "SELECT audit_id, table_name, expectation, column_name, severity, sum(unexpected_count)::BIGINT AS rows "
        "FROM expectation_result WHERE NOT success GROUP BY ALL ORDER BY severity, audit_id, table_name, expectation, "
        "column_name"
    ),
}
HEADLINES = 5
# Of what a watch looks at.
OPEN_STATES: dict[str, Level] = {"open": "problem", "no answer": "not measured", "accepted": "look", "fine": "ok"}
OPEN_LEVELS = ("problem", "look")
LEVEL_OF: dict[str, Level] = {level: level for level in LEVELS}
ENDS: dict[str, Level] = {
    "failed": "problem",
    "tripped": "problem",
    "passed": "ok",
    "accepted": "look",
    "critical": "problem",
}


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
    audits, checkpoints = facts.rows["audits"], facts.rows["checkpoints"]
    ends = Counter(row["status"] for row in audits)
    sections = [
        Section("Checkpoints", list(_checkpoints(facts))),
        Section("What is watched and asked", list(_watched(facts))),
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
            ("checkpoints", f"{len(checkpoints):,}"),
            ("audits", f"{ends['published']:,} published, {ends['failed']:,} failed"),
            ("last audit", last),
        ],
        findings=list(_headlines(facts)),
        sections=[section for section in sections if section.parts],
    )


def _headlines(facts: IndexFacts) -> Iterator[Finding]:
    """Which checkpoints have problems, or that none has; and what was not measured in all of them."""
    checkpoints, watched = facts.rows["checkpoints"], facts.rows["watched"]
    if red := [f"{row['name']} ({row['verdict']})" for row in watched if row["open_items"]]:
        yield Finding("problem", f"Open: {_some(red)}.", advice="embaudit query open-items")
    elif watched:
        yield Finding("ok", "Nothing is open in what is watched and asked.")
    if not checkpoints:
        if not watched:
            yield Finding("not measured", "This warehouse has no published audits.", advice="embaudit audit CHECKPOINT")
        return
    total = count(len(checkpoints), "checkpoint")
    broken = [row["source"] for row in checkpoints if row["verdict"] == "do not serve"]
    if broken:
        yield Finding("problem", f"Do not serve {len(broken):,} of {total}: {_some(broken)}.")
    found = {level: _found_by(facts, level) for level in OPEN_LEVELS}
    problems = found["problem"]
    if problems:
        yield Finding(
            "problem",
            f"Problems in {len(problems):,} of {total}: {_some(_with_measures(problems, facts))}.",
        )
    looked_at = {name: measures for name, measures in found["look"].items() if name not in problems}
    if looked_at:
        said = _some(_with_measures(looked_at, facts))
        yield Finding("look", f"Something to look at in {len(looked_at):,} of {total}: {said}.")
    if not problems and not looked_at:
        yield Finding("ok", f"Of {total}, none has a problem or something to look at.")
    tripped = [row["source"] for row in checkpoints if row["gate"] == "tripped"]
    if tripped:
        yield Finding("problem", f"The gate tripped for {count(len(tripped), 'checkpoint')}: {_some(tripped)}.")
    if partly := _measured_in_some(facts):
        said = ", ".join(f"{measure} in {number:,} of {len(checkpoints):,}" for measure, number in partly.items())
        yield Finding("not measured", f"Not every checkpoint was measured by everything: {said}.")


def _watched(facts: IndexFacts) -> Iterator[Part]:
    """What a watch looks at every night: by its last look, what is open first."""
    rows = facts.rows["watched"]
    if not rows:
        return
    columns = (
        *(Column("what", is_prose=True), Column("state", levels=OPEN_STATES), Column("verdict", is_prose=True)),
        *(Column("looked at", is_right=True), Column("it says", is_prose=True)),
    )
    cells = [
        (
            row["name"],
            _state(row),
            row["verdict"],
            _day(row["asked"]),
            row["line"],
        )
        for row in rows
    ]
    yield Table(columns, cells, more="embaudit query index-history (or endpoint-history, nights)")


def _state(row: Row) -> str:
    if row["open_items"]:
        return "open"
    if row["verdict"].endswith("could not be compared"):
        return "no answer"
    return "accepted" if row["accepted"] else "fine"


def _found_by(facts: IndexFacts, level: str) -> dict[str, list[str]]:
    """The measures that found something of a level, by checkpoint."""
    found: dict[str, list[str]] = {}
    for row in facts.rows["findings"]:
        if row["level"] == level and row["measure"] not in found.setdefault(row["source"], []):
            found[row["source"]].append(row["measure"])
    return found


def _with_measures(found: Mapping[str, Collection[str]], facts: IndexFacts) -> list[str]:
    """The checkpoints; with the measures where nobody knows whether the others would have fared better."""
    partly = _measured_in_some(facts)
    return [
        f"{name} ({', '.join(measures)}, not measured in all)" if set(measures) <= partly.keys() else name
        for name, measures in found.items()
    ]


def _some(names: Collection[str]) -> str:
    return first_of(names, HEADLINES)


def _measured_in_some(facts: IndexFacts) -> dict[str, int]:
    """The measures that some checkpoints lack, and how many have them."""
    having = Counter(measure for _, measure in {(row["source"], row["measure"]) for row in facts.rows["results"]})
    total = len(facts.rows["checkpoints"])
    return {measure: having[measure] for measure in MEASURES if 0 < having[measure] < total}


def _checkpoints(facts: IndexFacts) -> Iterator[Part]:
    """One row each. Only what all of them were measured by decides their order: to be measured by more is no fault."""
    checkpoints, partly = facts.rows["checkpoints"], _measured_in_some(facts)
    if not checkpoints:
        return
    shared: dict[str, list[str]] = {}
    further: dict[str, list[str]] = {}
    for row in facts.rows["findings"]:
        if row["measure"] in partly:
            further.setdefault(row["source"], []).append(row["level"])
        elif row["is_lead"]:
            shared.setdefault(row["source"], []).append(row["level"])

    def worst(found: Mapping[str, Collection[str]], row: Row) -> str:
        return next((level for level in LEVELS if level in found.get(row["source"], ())), "")

    def rank(row: Row) -> tuple[bool, int]:
        level = worst(shared, row)
        return row["verdict"] != "do not serve", LEVELS.index(LEVEL_OF[level]) if level else len(LEVELS)

    pages = {row["source"]: row["audit_id"] for row in reversed(facts.rows["results"])}
    columns = (
        *(Column("checkpoint", is_prose=True), Column("revision"), Column("audited", is_right=True), Column("profile")),
        Column("verdict", levels=LEVEL_OF_VERDICT),
        *(Column("worst finding", levels=LEVEL_OF), Column("by what not all have", levels=LEVEL_OF)),
        *(Column("gate", levels=ENDS), Column("worst loss", ".2f")),
        *(Column("tokens at loss ≥ .25", ",.0f"), Column("mean SOCM", ".3f"), Column("of", is_prose=True)),
    )
    cells = [
        (
            *(facts.link(pages[row["source"]], row["source"]), row["revision"], _day(row["finished"]), row["profile"]),
            row["verdict"],
            *(worst(shared, row), worst(further, row), row["gate"]),
            *(row["worst_loss"], row["strong_or_moderate_tokens"], row["socm_mean"], row["socm_corpora"]),
        )
        for row in sorted(checkpoints, key=rank)
    ]
    used = [place for place in range(len(columns)) if any(row[place] not in (None, "") for row in cells)]
    order = ", worst first by what all of them were measured by" if partly else ", worst first"
    yield Table(
        [columns[place] for place in used],
        [[row[place] for place in used] for row in cells],
        f"The newest result of each measure{order}",
        more="embaudit query leaderboard",
    )


OPEN = {
    **{"level": Column("level", levels=LEVEL_OF), "checkpoint": Column("checkpoint"), "measure": Column("measure")},
    "sentence": Column("what was found", is_prose=True),
    "advice": Column("what to do next", is_prose=True),
}
WORSE = {
    **{"audited": Column("audited", is_right=True), "checkpoint": Column("checkpoint"), "figure": Column("figure")},
    **{"item": Column("item"), "predecessor_value": Column("before", ".4g"), "value": Column("now", ".4g")},
    **{"delta": Column("change", "+.3g"), "accepted_by": Column("accepted by")},
}


def _open(facts: IndexFacts) -> Iterator[Part]:
    found = sorted(
        (row for row in facts.rows["findings"] if row["level"] in OPEN_LEVELS),
        key=lambda row: OPEN_LEVELS.index(row["level"]),
    )
    # Of several questions that found the same, the worst and newest answer.
    distinct: dict[tuple[str, str, str], Row] = {}
    for row in found:
        distinct.setdefault((row["source"], row["measure"], row["name"]), row)
    if not distinct:
        return
    yield Table.of(
        OPEN,
        [{**row, "checkpoint": facts.link(row["audit_id"], row["source"])} for row in distinct.values()],
        more="embaudit query findings",
    )


def _worse(facts: IndexFacts) -> Iterator[Part]:
    rows = facts.rows["worse"]
    if not rows:
        return
    yield Table.of(
        WORSE,
        [
            {
                **row,
                **{"audited": _day(row["finished"]), "checkpoint": facts.link(row["audit_id"], row["source"])},
                "figure": f"{row['summary']}.{row['measure']}",
            }
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
