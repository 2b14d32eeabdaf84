"""The last tasks of an audit, and those of maintenance.

Staged tables are checked, logged and published if they passed; a fine-tuned checkpoint's audit is linked to its
backbone's; a policy is applied, and its findings are published like any other table. Beside the warehouse lie the copy
that dashboards read (``EMBAUDIT_SNAPSHOT``), the HTML pages and a checkpoint's passport. Maintenance prunes rows,
deletes files that are no longer needed, and reclaims space. A question's tasks find an answer that holds, find a new
one, keep it, and write its page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import task

from embaudit.declared.document import Page
from embaudit.declared.table import Row
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.pages.html import render
from embaudit.pages.write import write_file, write_index, write_page
from embaudit.questions.answered import again
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import read_passport, write_passport
from embaudit.questions.question import Progress, Question
from embaudit.questions.report import AnswerRow, Report
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of, in_full_precision, stage_rows
from embaudit.steps.staging.files import delete_leftovers, find_leftovers
from embaudit.system.installed import content_key
from embaudit.system.settings import Settings, warehouse_at
from embaudit.warehouse.answers import beside_kept, find_answer, is_worse_again
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.expectations.check import check_tables
from embaudit.warehouse.export import export
from embaudit.warehouse.gate import GateVerdict, load_policy, run_gate
from embaudit.warehouse.prune import Keep, prune, vacuum
from embaudit.warehouse.publish import AuditRecord, ExpectationRow, MeasureRun, publish, publish_content
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.tables.audits import AuditBackboneRow, GateResultRow
from embaudit.warehouse.write import StagedTable
from embaudit.watch.open_items import gate_outcome
from embaudit.words.errors import CheckFailed, EmbauditError, StorageError
from embaudit_tasks.steps import audit_task, run_logger, say


@audit_task("check tables")
def check_staged(staged: list[Staged], planned_rows: dict[str, int]) -> list[dict[str, Any]]:
    """Run the Great Expectations suites on the staged files; what has passed is not checked again."""
    # The staging folder, from STAGING/<measure>/<key>/<file>: results of checks are cached there.
    staging = staged[0].path.rsplit("/", 3)[0]
    return [asdict(row) for row in check_tables(group_by_table(staged), planned_rows, staging)]


@audit_task("publish")
def publish_audit(
    warehouse: str,
    wait_seconds: float,
    audit: dict[str, Any],
    runs: list[dict[str, Any]],
    expectations: list[dict[str, Any]],
    staged: list[Staged],
) -> dict[str, int]:
    """Write the audit log; publish the tables if ``audit["status"]`` says so."""
    return publish(
        warehouse,
        wait_seconds,
        AuditRecord(**audit),
        [MeasureRun(**run) for run in runs],
        [ExpectationRow(**row) for row in expectations],
        group_by_table(staged),
    )


@audit_task("publish corpus")
def publish_corpus(warehouse: str, wait_seconds: float, staged: list[Staged]) -> dict[str, int]:
    """Publish an ingested corpus, which belongs to no audit."""
    return publish_content(warehouse, wait_seconds, group_by_table(staged))


def publish_checked(staged: list[Staged], warehouse: str, wait_seconds: float, *, kept: str = "") -> dict[str, int]:
    """Publish tables outside an audit's own transaction, if they pass their suites. For use inside a task.

    Args:
        kept: what else is kept, for the error message.

    Raises:
        CheckFailed: naming the first expectation that fails.
    """
    planned: dict[str, int] = {}
    for part in staged:
        planned[part.table] = planned.get(part.table, 0) + part.rows
    failed = [check for check in check_staged.fn(staged, planned) if not check["success"]]
    if failed:
        first = failed[0]
        raise CheckFailed(
            f"{first['table_name']} fails its check {first['expectation']} ({first['column_name'] or 'the table'}).",
            kept=f"The rows are staged in {staged[0].path}, and are not published. {kept}".strip(),
            next_step="Please report it.",
        )
    return publish_content(warehouse, wait_seconds, group_by_table(staged))


def group_by_table(staged: list[Staged]) -> list[StagedTable]:
    """Staged files by published table, shards in order, without tables that are not published."""
    return [
        StagedTable(name, paths)
        for name in TABLES
        if (paths := tuple(dict.fromkeys(part.path for part in staged if part.table == name)))
    ]


@task(name="link backbone", task_run_name="link backbone", persist_result=False)
def link_backbone(audit_id: str, backbone_audit_id: str, warehouse: str, wait_seconds: float, staging: str) -> int:
    """Check and publish the link; returns the number of summary figures that the two audits share."""
    row = {"audit_id": audit_id, "backbone_audit_id": backbone_audit_id}
    staged = stage_rows(staging, "audit", audit_id, AuditBackboneRow, [row])
    publish_checked([staged], warehouse, wait_seconds, kept="Both audits are published.")
    with open_reader(warehouse) as connection:
        counted = connection.execute(
            "SELECT count(*) FROM backbone_delta WHERE audit_id = ? AND backbone_audit_id = ?",
            [audit_id, backbone_audit_id],
        ).fetchone()
    return int(counted[0]) if counted else 0


@audit_task("gate")
def gate_audit(audit_id: str, policy: str, warehouse: str, wait_seconds: float, staging: str) -> GateVerdict:
    """Compare a published audit with the policy in a file, and publish the findings."""
    verdict = run_gate(warehouse, audit_id, load_policy(policy), wait_seconds=wait_seconds)
    key = content_key(audit=audit_id, policy=verdict.policy_hash, evaluated=verdict.evaluated.isoformat())
    staged = stage_rows(staging, "gate", key, GateResultRow, gate_rows(verdict))
    publish_checked([staged], warehouse, wait_seconds, kept=f"The audit {audit_id} is published.")
    return verdict


def gate_now(audit_id: str, policy: str, warehouse: str, wait_seconds: float, staging: str) -> tuple[str, str]:
    """The hash of the policy as it is now, and ``passed``, ``tripped`` or ``accepted``; unless it was before."""
    policy_hash = load_policy(policy).hash
    known = gate_outcome(warehouse, audit_id, policy_hash, wait_seconds)
    if known is None:
        gate_audit(audit_id, policy, warehouse, wait_seconds, staging)
        known = gate_outcome(warehouse, audit_id, policy_hash, wait_seconds)
    if known is None:
        raise ValueError(f"the gate of audit {audit_id} was stored, and is not there")
    return policy_hash, known


def gate_rows(verdict: GateVerdict) -> list[dict[str, object]]:
    """The rows of ``gate_result``: the verdict's findings, each with its audit and policy."""
    of = {
        "audit_id": verdict.audit_id,
        "policy": verdict.policy,
        "policy_hash": verdict.policy_hash,
        "baseline_audit_id": verdict.baseline_audit_id or "",
        "evaluated": verdict.evaluated,
    }
    return [{**of, **finding.model_dump()} for finding in verdict.findings]


@audit_task("refresh snapshot")
def refresh_snapshot(warehouse: str) -> str | None:
    """Export the warehouse to the path in the settings. Whatever happens here, what was published stays published.

    Returns:
        Why it failed, for the audit's warnings; None if it succeeded, or if no path is set.
    """
    settings = Settings()
    if settings.snapshot is None:
        return None
    try:
        made = export(warehouse, settings.snapshot, settings.lock_wait_seconds, with_bulk=settings.snapshot_bulk)
    except EmbauditError as error:
        run_logger().warning("The snapshot was not refreshed: %s", error)
        return f"The snapshot was not refreshed. {error}"
    run_logger().info("Snapshot %s: %d rows", made.path, sum(made.rows.values()))
    return None


@audit_task("write report", "write report of {audit_id}")
def write_report(audit_id: str, warehouse: str, wait_seconds: float, folder: str) -> tuple[str, Page]:
    """Write ``FOLDER/<audit_id>.html``, replacing an earlier one; returns its path, and the page."""
    written = write_page(warehouse, audit_id, Path(folder), wait_seconds=wait_seconds)
    return str(written.path), written.page


@audit_task("write index")
def write_overview(warehouse: str, wait_seconds: float, folder: str) -> str:
    """Write ``FOLDER/index.html``, replacing an earlier one; returns its path."""
    return str(write_index(warehouse, Path(folder), wait_seconds=wait_seconds))


@audit_task("write passport", "write passport of {spec.reference}")
def write_passport_of(spec: CheckpointSpec, folder: str) -> str:
    """Write ``FOLDER/<checkpoint_id>.passport.json``, unless it is there; returns its path."""
    path = Path(folder) / f"{spec.checkpoint_id}.passport.json"
    # The id covers the settings that change vectors; a file that was edited is kept, and the writing says so.
    if path.exists() and read_passport(path).checkpoint.id == spec.checkpoint_id:
        return str(path)
    full = spec.in_float32
    with in_full_precision("a passport"):
        write_passport(make_passport(CheckpointFunction(checkpoint_of(full)), full.load_options), path)
    return str(path)


@task(name="prune rows", task_run_name="prune rows", persist_result=False)
def prune_rows(
    warehouse: str, wait_seconds: float, keep_days: int | None, keep_audits: int | None
) -> list[dict[str, Any]]:
    """Delete the detail rows of audits that no rule keeps; returns one row per audit and table."""
    return [asdict(one) for one in prune(warehouse, wait_seconds, Keep(keep_days, keep_audits))]


@task(name="delete staged files", task_run_name="delete staged files", persist_result=False)
def delete_staged(staging: str, warehouse: str, days: int) -> dict[str, int]:
    """Delete staged files not created or used for ``days`` days, and partial files; returns their number and bytes."""
    place = warehouse_at(warehouse)
    left = find_leftovers(staging, place if isinstance(place, Path) else None, days)
    delete_leftovers(left)
    return {"files": left.files, "bytes": left.bytes}


@task(name="vacuum", task_run_name="vacuum", persist_result=False)
def vacuum_warehouse(warehouse: str, wait_seconds: float) -> dict[str, Any]:
    """Reclaim the space of deleted rows."""
    return asdict(vacuum(warehouse, wait_seconds))


FOLDER = "answers"


@audit_task("look for an answer", "look for an answer {key}")
def reuse_answer(key: str, warehouse: str, wait_seconds: float, staging: str) -> dict[str, Any] | None:
    """The answer to the same question about the same content, which holds; that it was asked again is recorded."""
    kept = find_answer(warehouse, key, wait_seconds)
    # What is worse than last night is found anew, so that its finding is kept.
    if kept is None or is_worse_again(kept, warehouse, wait_seconds):
        return None
    row = again(kept, datetime.now(UTC))
    keep_answer.fn({AnswerRow: [row]}, warehouse, wait_seconds, staging)
    return row


@audit_task("answer", "{name}")
def answer_question(question: Question, name: str, warehouse: str, wait_seconds: float) -> Report:
    """Find the answer, and what of it is worse than before."""
    report = question.answer(Progress(say))
    if not isinstance(report, Report):
        raise TypeError(f"{question.asks} ends in no report")
    return beside_kept(question, report, warehouse, wait_seconds)


@audit_task("keep the answer")
def keep_answer(
    rows: Mapping[type[Row], Sequence[Mapping[str, Any]]], warehouse: str, wait_seconds: float, staging: str
) -> None:
    """Check and publish the rows of an answer, all or nothing."""
    key = str(rows[AnswerRow][0]["answer_id"])
    staged = [stage_rows(staging, "answer", key, row, list(some)) for row, some in rows.items() if some]
    publish_checked(staged, warehouse, wait_seconds, kept="Other answers are as they were.")


@audit_task("write page", "write page of {answer_id}")
def write_answer(report: Report, answer_id: str, reports: str) -> str:
    """Write ``REPORTS/answers/<answer_id>.html``, replacing an earlier one; returns its path."""
    path = page_of(answer_id, reports)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"Cannot write the page {path}: {error}.", kept="The answer is kept.") from error
    write_file(render(report.page()), path)
    return str(path)


def page_of(answer_id: str, reports: str) -> Path:
    return Path(reports) / FOLDER / f"{answer_id}.html"
