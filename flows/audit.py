"""The main flow: audits one checkpoint, from its name to published tables.

It resolves the checkpoint to content, ingests the corpora, runs the measures, checks every table, publishes all or
nothing, and writes the log whatever happens. Then come the gate, the report and notifications (``flows/ending.py``).

Says whether the checkpoint may be served as soon as that is known: the measures that tell run first.

Puts an audit's figures into words: findings and verdict from its staged tables, checked and published with them.

An audit that was made before: the same flow as a plain call, if every step's files exist.

A Prefect run costs more than all the rest of such an audit: its server has to start, and each of some seventy tasks is
reported to it. Where the server is the command's own, nobody watches that run either.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from prefect import flow

from embaudit.checkpoint.loading import PROMPTS
from embaudit.checkpoint.reference import CheckpointRef
from embaudit.corpora.catalog import MinedSource
from embaudit.declared.rule import Finding
from embaudit.measures import MEASURES
from embaudit.measures.listed import find_all, load_profile
from embaudit.questions.audit import AuditRequest
from embaudit.questions.check.verdict import FIRST, Verdict, verdict_of_audit
from embaudit.steps.corpora import describe_checkpoint, rows_read
from embaudit.steps.progress import NoDisplay, measuring, show, shown_on
from embaudit.steps.results import NoteText, Staged, StagedCorpus, stage_rows
from embaudit.steps.staging.files import in_use
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import NotStaged, only_staged
from embaudit.steps.tables import AuditCorpusRow
from embaudit.system.settings import Settings
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.gate import load_audit_policy
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.tables.audits import FindingRow, VerdictRow
from embaudit.words.errors import ProblemFound, UsageError, WarehouseError
from embaudit.words.estimate import Estimate
from embaudit_flows.audit_log import AuditLog, describe_check
from embaudit_flows.ending import ends_in_words, pass_gate, publish_verdict, put_passport, put_report, show_and_end
from embaudit_flows.measure import HowLong, run_measure, say_how_long
from embaudit_flows.notify import Notifier, notify_on_failure
from embaudit_flows.plan import AuditOutcome, AuditPlan, plan_audit
from embaudit_flows.server.set_up import gpu_slot
from embaudit_tasks.publish import check_staged, refresh_snapshot
from embaudit_tasks.steps import AUDIT_LABEL, GATE_LABEL, in_a_run, ingest_corpus, label_run, mine_corpus, run_step, say


def stage_findings(
    plan: AuditPlan, ingested: dict[str, StagedCorpus], audit_id: str, staged: list[Staged]
) -> list[Staged]:
    """The table of findings, if there are any, and the verdict that follows from them."""
    found = findings_of(plan, ingested, staged, plan.measures)
    verdict = verdict_of_audit(found)
    said = {
        "kind": verdict.kind,
        "line": verdict.line,
        "cause": verdict.cause and verdict.cause.name,
        "looks": verdict.looks,
        "unmeasured": len(verdict.unmeasured),
    }
    tables = [(FindingRow, [_row(place, *one) for place, one in enumerate(found)]), (VerdictRow, [said])]
    return [stage_rows(plan.staging, "audit", audit_id, table, of_table) for table, of_table in tables if of_table]


def findings_of(
    plan: AuditPlan, ingested: dict[str, StagedCorpus], staged: list[Staged], measures: Iterable[str]
) -> list[tuple[str, Finding]]:
    """What some of the measures found, and what is found about the audit as a whole, each with its measure.

    Args:
        staged: at least what these measures staged, and the tables that belong to no measure.
    """

    @cache
    def rows(table: str) -> list[dict[str, Any]]:
        # By path: the same content under two names is staged once.
        return read_rows(list(dict.fromkeys(part.path for part in staged if part.table == table)))

    settings = {name: getattr(plan.profile, name) for name in measures}
    samples = [name for name, corpus in ingested.items() if corpus.source == "sample"]
    return list(find_all(settings, rows, samples))


def _row(place: int, measure: str, finding: Finding) -> dict[str, Any]:
    return {
        **{"measure": measure, "name": finding.name, "place": place, "level": finding.level},
        **{"sentence": finding.sentence, "meaning": finding.meaning or None, "advice": finding.advice or None},
        **Estimate.holding(finding.value, (finding.low, finding.high)).as_json(),
    }


STOP = "if you stop it here (Ctrl-C), what is measured is kept, and the same command continues"


class VerdictSoFar:
    """The verdict of an audit that goes on: once it is known, and at once where the checkpoint is broken.

    Nothing is said where nothing follows, or where the audit measures neither: its end says that.
    """

    def __init__(
        self, plan: AuditPlan, ingested: dict[str, StagedCorpus], shared: list[Staged], how_long: HowLong | None
    ) -> None:
        self._plan, self._ingested, self._shared, self._how_long = plan, ingested, shared, how_long
        self._done: list[str] = []
        self._said = ""

    def after(self, measure: str, staged: list[Staged]) -> None:
        """Say the verdict if this measure is what it waited for.

        Args:
            staged: by all measures so far.
        """
        # Without a run everything was measured before, and the end follows at once.
        if measure not in FIRST or not in_a_run():
            return
        self._done.append(measure)
        if set(self._plan.measures) <= set(self._done):
            return
        found = findings_of(self._plan, self._ingested, [*self._shared, *staged], self._done)
        verdict = verdict_of_audit(found)
        waits = any(name in self._plan.measures and name not in self._done for name in FIRST)
        if verdict.kind == "not checked" or verdict.so_far == self._said or (waits and not _is_broken(verdict)):
            return
        self._said = verdict.so_far
        line = f"{self._plan.source}: {verdict.so_far} {self._rest(verdict)}"
        say(line, logging.WARNING if _is_broken(verdict) else logging.INFO)
        publish_verdict(self._plan.source, verdict.so_far)

    def _rest(self, verdict: Verdict) -> str:
        rest = "The rest is being measured"
        if self._how_long is not None:
            rest = f"The rest takes about {self._how_long.rest(self._done)}"
        return f"{rest}; {STOP}." if _is_broken(verdict) else f"{rest}."


def _is_broken(verdict: Verdict) -> bool:
    return verdict.kind == "do not serve"


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


PUBLISHED = """
SELECT 1 FROM audit
WHERE status = 'published' AND profile = ? AND json_extract_string(settings, '$.source') = ?
    AND list_has_all(CAST(json_extract(settings, '$.measures') AS VARCHAR[]), ?)
LIMIT 1
"""


def audit_again(request: AuditRequest) -> AuditOutcome | None:
    """Everything that the flow does (names resolved, sources read, tables checked and published, gate, page), no run.

    None if something has to be computed, or if it fails: a run can retry it, and reports it.

    Raises:
        ProblemFound: as the flow.
    """
    # A notification block is on a server. Within somebody's flow, the audit's tasks are tasks of that run.
    if request.notify or in_a_run() or not _was_published(request):
        return None
    try:
        # A run that follows would show the same measures again.
        with only_staged(), shown_on(NoDisplay()):
            outcome = audit.fn(request)
    except ProblemFound:
        raise
    except (NotStaged, Exception):
        return None
    show("Nothing to compute: every result was staged by an earlier audit.")
    return outcome


def _was_published(request: AuditRequest) -> bool:
    """Whether an audit measured the same of this checkpoint: without one, its corpora need not be read."""
    source = CheckpointRef.parse(request.checkpoint)
    asked = [load_profile(request.profile).name, str(source), list(request.chosen_measures)]
    try:
        with open_reader(request.published_to, wait_seconds=0) as connection:
            return connection.execute(PUBLISHED, asked).fetchone() is not None
    except WarehouseError:
        return False
