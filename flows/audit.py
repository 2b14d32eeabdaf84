"""The main flow: audits one checkpoint, from its name to published tables.

It resolves the checkpoint to content, ingests the corpora, runs the measures, checks every table, publishes all or
nothing, and writes the log whatever happens. Then come the gate, the report and notifications (``flows/ending.py``).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prefect import flow

from embaudit.checkpoint.loading import PROMPTS
from embaudit.corpora import MinedSource
from embaudit.measures import MEASURES
from embaudit.questions.audit import AuditRequest
from embaudit.steps.checkpoint import describe_checkpoint
from embaudit.steps.corpora import rows_read
from embaudit.steps.progress import measuring
from embaudit.steps.results import NoteText, Staged, StagedCorpus, stage_rows
from embaudit.steps.staging.files import in_use
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.tables import AuditCorpusRow
from embaudit.system.settings import Settings
from embaudit.warehouse.gate import load_audit_policy
from embaudit.warehouse.tables import TABLES
from embaudit.words.errors import UsageError
from embaudit_flows.audit_log import AuditLog, describe_check
from embaudit_flows.ending import pass_gate, put_passport, put_report, show_and_end
from embaudit_flows.estimate import say_how_long
from embaudit_flows.findings import stage_findings
from embaudit_flows.gpu import gpu_slot
from embaudit_flows.measure import run_measure
from embaudit_flows.notify import Notifier, notify_on_failure
from embaudit_flows.outcome import AuditOutcome
from embaudit_flows.plan import AuditPlan, plan_audit
from embaudit_flows.red import ends_in_words
from embaudit_flows.so_far import VerdictSoFar
from embaudit_tasks.audit_task import AUDIT_LABEL, GATE_LABEL, label_run
from embaudit_tasks.corpora import ingest_corpus
from embaudit_tasks.mining import mine_corpus
from embaudit_tasks.publish import check_staged
from embaudit_tasks.snapshot import refresh_snapshot
from embaudit_tasks.steps import run_step

__all__ = ["AuditOutcome", "audit"]


@flow(name="audit", flow_run_name="audit {request.checkpoint}, {request.profile}", persist_result=False)
@ends_in_words("Audit failed")
def audit(request: AuditRequest) -> AuditOutcome:
    """Audit a text-embedding checkpoint."""
    notifier = Notifier(request.notify)
    with notify_on_failure(notifier, f"Audit of {request.checkpoint}"):
        settings = Settings()
        if request.policy is not None:
            load_audit_policy(request.policy)  # Report errors in it now, not hours later.
        log = AuditLog(request, settings)
        with log.failures_recorded():
            log.plan = plan = plan_audit(request)
            with in_use(plan.staging):
                outcome, staged = _measure_and_publish(plan, request.corpora, log)
        outcome.warnings += notifier.warnings
        outcome.gate = pass_gate(plan, outcome.audit_id, request.policy, settings)
        if outcome.gate is not None:
            label_run({GATE_LABEL: outcome.gate.outcome})
        if settings.snapshot is not None and (why := refresh_snapshot(plan.warehouse)):
            outcome.warnings.append(why)
        put_report(outcome, settings)
        put_passport(plan.spec, outcome, settings)
        link = settings.report_link(outcome.audit_id) if outcome.report else None
        return show_and_end(outcome, request.gate, staged, link, notifier)


def _measure_and_publish(plan: AuditPlan, corpora: dict[str, str], log: AuditLog) -> tuple[AuditOutcome, list[Staged]]:
    """The audit itself, up to and including its published tables."""
    ingested = _ingest(plan, corpora)
    log.audit_id = audit_id = plan.audit_id(ingested)
    # A watch that started this run elsewhere finds its audit by this.
    label_run({AUDIT_LABEL: audit_id})
    staged = _shared_tables(plan, ingested, audit_id)
    read_as = _checkpoint_as_read(staged)
    how_long = say_how_long(plan, ingested, audit_id, read_as)
    so_far = VerdictSoFar(plan, ingested, staged, how_long)
    for measure in (MEASURES[name] for name in MEASURES if name in plan.measures):
        if how_long:
            how_long.before(measure.name)
        with gpu_slot(plan.spec.device), measuring(f"{measure.name} of {plan.source}"):
            log.add(measure, run_measure(measure, plan, ingested, log.staged))
        so_far.after(measure.name, log.staged)
    staged += log.staged
    staged += stage_findings(plan, ingested, audit_id, staged)
    checks = check_staged(staged, planned_rows(staged))
    rows = log.publish(checks, staged)
    outcome = AuditOutcome(
        audit_id=audit_id,
        checkpoint_id=plan.spec.checkpoint_id,
        source=plan.source,
        warehouse=plan.warehouse,
        max_length=read_as["max_length"],
        prompts={name: read_as[name] or "" for name in PROMPTS},
        rows=rows,
        corpora={name: f"{corpus.source}: {corpus.report}" for name, corpus in ingested.items()},
        warnings=[
            *(describe_check(check) for check in checks if not check["success"]),
            *dict.fromkeys(part.found(NoteText).text for part in staged if part.table == "note"),
        ],
        seconds=(datetime.now(UTC) - plan.started).total_seconds(),
        verdict=next(iter(read_rows([part.path for part in staged if part.table == "verdict"])), {}),
        findings=read_rows([part.path for part in staged if part.table == "finding"]),
    )
    return outcome, staged


def _ingest(plan: AuditPlan, sources: dict[str, str]) -> dict[str, StagedCorpus]:
    unused = [name for name in sources if name not in plan.corpus_names]
    if unused:
        raise UsageError(
            f"No chosen measure reads a corpus called {unused[0]!r}.",
            next_step=f"This audit reads: {', '.join(plan.corpus_names)}.",
        )
    ingested: dict[str, StagedCorpus] = {}
    for name in plan.corpus_names:
        source = sources.get(name, "sample")
        mined = MinedSource.parse(name, source)
        if mined:
            negatives = plan.negatives_of(name)
            corpora = [mine_corpus(plan.spec, name, mined.method, str(mined.folder), negatives, plan.staging)]
        else:
            corpora = ingest_corpus(name=name, source=source, staging=plan.staging, draw=plan.kept_of(name))
        ingested |= {corpus.name: corpus for corpus in corpora}
    return ingested


def _shared_tables(plan: AuditPlan, ingested: dict[str, StagedCorpus], audit_id: str) -> list[Staged]:
    """Tables that belong to no measure: the checkpoint's row, the corpora that were read, and the rows read of each."""
    rows = [{"name": name, "corpus_id": corpus.corpus_id} for name, corpus in ingested.items()]
    used = [stage_rows(plan.staging, "audit", audit_id, AuditCorpusRow, rows)] if rows else []
    read = (
        part
        for corpus in ingested.values()
        for part in rows_read(corpus, plan.draws_of(corpus.name, corpus.rows), plan.staging)
    )
    return [checkpoint_row(plan), *used, *read]


def checkpoint_row(plan: AuditPlan) -> Staged:
    """The checkpoint's row. It contains the revision, so another commit with the same content is staged separately."""
    (staged,) = run_step(describe_checkpoint, plan.staging, plan.spec, plan.source, plan.spec.reference)
    return staged


def _checkpoint_as_read(staged: list[Staged]) -> dict[str, Any]:
    """The checkpoint's row, which has its length limit and its prompts."""
    (path,) = {part.path for part in staged if part.table == "checkpoint"}
    return read_rows([path])[0]


def planned_rows(staged: list[Staged]) -> dict[str, int]:
    """Number of rows that each table must have over all its shards."""
    plan: dict[str, int] = {}
    # By path: the same content under two names is staged, and published, once.
    for part in {part.path: part for part in staged}.values():
        plan[part.table] = plan.get(part.table, 0) + part.rows
    # A sharded table must have what was planned beforehand, whatever its shards report.
    for table in TABLES.values():
        counts = [part.detail[table.planned] for part in staged if table.planned in part.detail]
        if counts:
            plan[table.name] = sum(counts)
    return plan
