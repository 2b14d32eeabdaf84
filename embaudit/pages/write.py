"""Writes HTML pages to files that are complete or absent.

Builds the page of an audit, or of a checkpoint's state, from what was read; lists the sections in order.

Reads everything that an audit's pages show from the warehouse in one go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from embaudit.declared.document import Page
from embaudit.declared.rule import LEVELS
from embaudit.measures import MEASURES
from embaudit.pages import general
from embaudit.pages.compare import FACTS as SHARES
from embaudit.pages.compare import of_one_audit
from embaudit.pages.html import render
from embaudit.pages.index import NAME, index_page, read_index
from embaudit.system.files import replace_atomically
from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import LATEST, find_checkpoint, find_state
from embaudit.words.errors import StorageError, UsageError


class Written(NamedTuple):
    """Where a page was written, and the page itself, for other media: reading an audit takes some sixty queries."""

    path: Path
    page: Page


def write_page(
    warehouse: Warehouse | str, audit: str, folder: Path, out: Path | None = None, wait_seconds: float = 5.0
) -> Written:
    """Render a published audit's page to ``out``, or to ``folder`` under the audit's id.

    Args:
        audit: an id, its first digits, or ``latest``; or a checkpoint for its state, under the checkpoint's id.

    Raises:
        UsageError: if there is no such audit.
        CheckFailed: if it is not published, so there is nothing to show.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
        StorageError: if the file cannot be written.
    """
    with open_reader(warehouse, wait_seconds) as connection:
        state = find_state(connection, audit)
    # An id is hex digits, unless the warehouse was tampered with.
    path = out or folder / f"{quote(state.checkpoint_id or state.newest, safe='')}.html"
    audits = [(read_audit(warehouse, audit_id, wait_seconds), counted) for audit_id, counted in state.audits.items()]
    page = state_page(audits)
    write_file(render(page, _existing_page(path)), path)
    return Written(path, page)


def write_index(warehouse: Warehouse | str, folder: Path, out: Path | None = None, wait_seconds: float = 5.0) -> Path:
    """Render the page of a whole warehouse to ``out``, or to ``folder`` with the pages of its audits.

    Raises:
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
        StorageError: if the file cannot be written.
    """
    path = out or folder / NAME
    facts = read_index(warehouse_at(warehouse), path.parent, wait_seconds)
    write_file(render(index_page(facts), _existing_page(path)), path)
    return path


def _existing_page(path: Path) -> str:
    """The existing page; empty if there is none or it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def write_file(text: str, path: Path) -> None:
    """Write text to a file that is complete or absent.

    Raises:
        StorageError: if the file cannot be written.
    """
    try:
        with replace_atomically(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Cannot write the report {path}: {error}.",
            kept="The published tables are unchanged.",
            next_step="Free some space, or choose another file: embaudit report AUDIT --out FILE",
        ) from error


FIRST = (general.stored_gate_section, general.regression_section, of_one_audit)
LAST = (general.published_section, general.backbone_section, general.check_section, general.settings_section)
# Lines of an audit's identity that say when and how it ran; a state has one line per audit instead.
OF_ONE_RUN = ("audit", "profile", "finished", "ran on")


def audit_page(facts: dict[str, Any], link: str = "", measures: Collection[str] | None = None) -> Page:
    """The page; for an unpublished audit, only the reason.

    Args:
        link: address of its HTML page, for other media.
        measures: those that count, and ``audit`` for what was found about the audit as a whole; None for all.
    """
    counted = [measure for measure in MEASURES.values() if measures is None or measure.name in measures]
    if measures is not None:
        facts = facts | {"findings": [row for row in facts["findings"] if row["measure"] in measures]}
    makers = (*FIRST, *(measure.parts().page.section for measure in counted), *LAST)
    sections = [make(facts) for make in makers] if facts["status"] == "published" else []
    return Page(
        title=facts["source"] or facts["checkpoint_id"],
        identity=general.identity(facts),
        findings=list(general.page_findings(facts)),
        sections=[section for section in sections if section is not None],
        link=link,
    )


def state_page(audits: Sequence[tuple[dict[str, Any], Collection[str] | None]]) -> Page:
    """The page of what a name stands for (``read_state``): one audit, or a checkpoint's newest results.

    Each section comes from the audit that has the result; where several have one, its title says which.
    """
    if len(audits) == 1:
        return audit_page(audits[0][0])
    pages = [audit_page(facts, measures=measures) for facts, measures in audits]
    repeated = Counter(section.title for page in pages for section in page.sections)
    found = [one for page in pages for one in page.findings]
    # A checkpoint has one verdict: the newest, of the audits that measured what decides it.
    verdicts = sorted((one for one in found if one.name == "verdict"), key=lambda one: one.level == "not measured")
    found = [one for one in found if one.name != "verdict" or one is verdicts[0]]
    return replace(
        pages[0],
        kind="Newest results of",
        identity=[
            *(line for line in pages[0].identity if line[0] not in OF_ONE_RUN),
            *(("audit", _summary(facts, measures or ())) for facts, measures in audits),
        ],
        findings=sorted(found, key=lambda one: LEVELS.index(one.level)),
        sections=[
            replace(section, title=f"{section.title} (audit {facts['audit_id'][:6]})")
            if repeated[section.title] > 1
            else section
            for page, (facts, _) in zip(pages, audits, strict=True)
            for section in page.sections
        ],
    )


def _summary(facts: dict[str, Any], measures: Collection[str]) -> str:
    """When and how a part of a state was measured, and what it has."""
    counted = ", ".join(name for name in MEASURES if name in measures)
    when = f"{facts['finished']:%Y-%m-%d %H:%M %Z}"
    return f"{facts['audit_id']}, {when}, {facts['profile']}, {facts['dtype']}, seed {facts['seed']}: {counted}"


# Queries for one audit, by name; each measure has its own (``FACTS`` in its page).
GENERAL = {
    "published": "SELECT * FROM published_beside_audit WHERE audit_id = ? ORDER BY measure DESC, corpus DESC",
    # If the backbone's audit is in another warehouse, there is nothing to compare.
    "backbones": (
        "SELECT link.backbone_audit_id, coalesce(audit.settings ->> '$.source', checkpoint.source) AS backbone "
        "FROM audit_backbone AS link JOIN audit ON audit.audit_id = link.backbone_audit_id "
        "LEFT JOIN checkpoint USING (checkpoint_id) WHERE link.audit_id = ? ORDER BY ALL"
    ),
    "backbone_deltas": (
        "SELECT backbone_audit_id, summary, item, measure, backbone_value, value, delta, delta_low, delta_high, "
        "interval_is FROM backbone_change WHERE audit_id = ? ORDER BY ALL"
    ),
    "backbone_changes": (
        "SELECT backbone_audit_id, corpus, change, change_low, change_high FROM backbone_socm_change "
        "WHERE audit_id = ? ORDER BY ALL"
    ),
    **SHARES,
    # Half precision beside an audit in float32; quality is in float32 whatever the audit is.
    "precisions": (
        "SELECT figure.dtype, count(*) AS figures, any_value(of_all) AS of_all "
        "FROM (SELECT *, count(*) OVER () AS of_all FROM summary_figure WHERE audit_id = ?) AS figure "
        "JOIN audit USING (audit_id) "
        "WHERE figure.dtype NOT IN (audit.dtype, 'float32') GROUP BY ALL ORDER BY ALL"
    ),
    "verdict": "SELECT * EXCLUDE (audit_id) FROM verdict WHERE audit_id = ?",
    "findings": "SELECT * EXCLUDE (audit_id) FROM finding WHERE audit_id = ? ORDER BY place",
    "gate": "SELECT * FROM gate_outcome WHERE audit_id = ?",
    "gate_findings": (
        "SELECT * EXCLUDE (audit_id) FROM gate_finding WHERE audit_id = ? "
        "ORDER BY trips DESC, outcome = 'passed', rule, item, measure, summary"
    ),
    "accepted": (
        "SELECT item, accepted_by, reason FROM found_item "
        "WHERE audit_id = ? AND what = 'gate' AND accepted IS NOT NULL ORDER BY accepted DESC, policy, item"
    ),
    "regressions": (
        "SELECT * EXCLUDE (audit_id) FROM regression WHERE audit_id = ? AND is_worse "
        "ORDER BY abs(relative_change) DESC NULLS FIRST, summary, item, measure, predecessor_audit_id"
    ),
    "compared": (
        "SELECT predecessor_audit_id, count(*) AS figures, count(*) FILTER (is_worse) AS worse "
        "FROM regression WHERE audit_id = ? GROUP BY ALL ORDER BY predecessor_audit_id"
    ),
    "weight_changes": "SELECT * EXCLUDE (audit_id) FROM weight_change WHERE audit_id = ? ORDER BY ALL",
    "sticky_changes": "SELECT * EXCLUDE (audit_id) FROM sticky_change WHERE audit_id = ? ORDER BY ALL",
    "runs": "SELECT * EXCLUDE (audit_id) FROM measure_run WHERE audit_id = ? ORDER BY measure",
    "checks": (
        "SELECT count(*) AS run, count(*) FILTER (NOT success) AS failed FROM expectation_result WHERE audit_id = ?"
    ),
    "failed_checks": (
        "SELECT table_name, column_name, expectation, severity, unexpected_count, observed "
        "FROM expectation_result WHERE audit_id = ? AND NOT success ORDER BY ALL"
    ),
    "corpora": (
        "SELECT audit_corpus.name, corpus.source, corpus.kept, corpus.read, corpus.share_read, "
        "corpus.blank + corpus.broken + corpus.undecodable AS dropped "
        "FROM audit_corpus JOIN corpus USING (corpus_id) WHERE audit_id = ? ORDER BY audit_corpus.name"
    ),
}

# Asked only if that has an answer: of an audit without a backbone, its changes took a quarter of the time of all.
ONLY_WITH = {"backbone_deltas": "backbones", "backbone_changes": "backbones"}


def read_state(
    warehouse: Warehouse | str, name: str, wait_seconds: float = 5.0
) -> list[tuple[dict[str, Any], frozenset[str] | None]]:
    """The audits of a checkpoint's state, newest first, as from ``read_audit``, each with its measures that count.

    Any other name is that of one audit, all of which counts.

    Raises:
        UsageError: if there is no such audit or checkpoint.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        state = find_checkpoint(connection, name)
    if state is None:
        return [(read_audit(warehouse, None if name == LATEST else name, wait_seconds), None)]
    return [(read_audit(warehouse, audit_id, wait_seconds), counted) for audit_id, counted in state.audits.items()]


def read_audit(warehouse: Warehouse | str, audit_id: str | None, wait_seconds: float = 5.0) -> dict[str, Any]:
    """Everything a page shows, as plain values.

    Args:
        audit_id: an id or its first digits; None for the newest.

    Raises:
        UsageError: if there is no such audit.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)

        def rows(sql: str, *parameters: Any) -> list[dict[str, Any]]:
            cursor = connection.execute(sql, list(parameters))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        found = rows(
            "SELECT audit.*, "
            "coalesce(audit.settings ->> '$.source', checkpoint.source) AS source, "
            "checkpoint.layers AS layer_count, checkpoint.* EXCLUDE (checkpoint_id, source, layers) "
            "FROM audit LEFT JOIN checkpoint USING (checkpoint_id) "
            "WHERE starts_with(audit_id, ?) ORDER BY finished DESC, audit_id LIMIT 1",
            audit_id or "",
        )
        if not found:
            raise UsageError(
                f"The warehouse {warehouse} has no audit {audit_id!r}."
                if audit_id
                else f"The warehouse {warehouse} has no audits.",
                next_step="List them: embaudit list audits",
            )
        one = found[0]["audit_id"]
        answers: dict[str, list[dict[str, Any]]] = {}
        for name, sql in _queries().items():
            answers[name] = rows(sql, one) if name not in ONLY_WITH or answers[ONLY_WITH[name]] else []
        return {**found[0], **answers}


def _queries() -> dict[str, str]:
    """What is asked of the warehouse for a page, by the name of the answer.

    Raises:
        UsageError: if a measure of another package takes a name that is taken.
    """
    queries = dict(GENERAL)
    for measure in MEASURES.values():
        facts = measure.parts().page.FACTS
        if taken := queries.keys() & facts.keys():
            raise UsageError(
                f"The page of the measure {measure.name} ({measure.package}) takes the name {sorted(taken)[0]!r}, "
                "which another has already.",
                next_step="Rename it in its FACTS, or uninstall that package.",
            )
        queries |= facts
    return queries
