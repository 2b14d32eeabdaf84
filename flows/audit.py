"""The main job: one checkpoint, from its name to published tables.

Resolve the checkpoint to content, ingest the corpora, run the measures, check every table, publish all or
nothing, and write the log whatever happens.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prefect import flow
from pydantic import BaseModel

from embaudit import __version__
from embaudit.errors import CheckFailed, EmbauditError
from embaudit.settings import Settings
from embaudit.warehouse.stage import read_rows, staged_path, write_rows
from embaudit_flows.cached import pooled, run_cached
from embaudit_flows.layers import layers
from embaudit_flows.length import length
from embaudit_flows.plan import STICKY_CORPUS, AuditPlan, library_versions, plan_audit
from embaudit_flows.socm import socm
from embaudit_flows.sticky import sticky
from embaudit_flows.summary import publish_artifacts
from embaudit_flows.tempscale import tempscale
from embaudit_tasks.corpora import ingest_corpus
from embaudit_tasks.mining import mine_corpus
from embaudit_tasks.publish import check_staged, publish_audit
from embaudit_tasks.results import Staged, StagedCorpus
from embaudit_tasks.tempscale import ingest_judged
from embaudit_tasks.vocabulary import describe_checkpoint

# A collection of documents, which brings its queries as a corpus of their own.
JUDGED = "retrieval"
# Where each measure's version stands.
MEASURE_MODULES = {
    "sticky": "embaudit.sticky.validation",
    "socm": "embaudit.socm",
    "layers": "embaudit.concentration",
    "length": "embaudit.length",
    "tempscale": "embaudit.remedy",
}


class AuditOutcome(BaseModel):
    """What a finished audit says of itself; the tables say the rest."""

    audit_id: str
    checkpoint_id: str
    warehouse: str
    max_length: int
    rows: dict[str, int]
    corpora: dict[str, str]
    warnings: list[str]
    seconds: float


@flow(name="audit", flow_run_name="audit {checkpoint}, {profile}", persist_result=False)
def audit(
    checkpoint: str,
    profile: str = "quick",
    measures: list[str] | None = None,
    corpora: dict[str, str] | None = None,
    warehouse: str | None = None,
    limit_tokens: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    pooling: str | None = None,
    max_length: int | None = None,
    seed: int = 0,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    pairs: dict[str, str] | None = None,
    exhaustive: bool = False,
    reference: bool = False,
    temperatures: dict[str, Any] | None = None,
) -> AuditOutcome:
    """Audit a text-embedding checkpoint.

    Args:
        checkpoint: ``packaged:NAME``, a local folder, or ``owner/name@revision``.
        profile: quick, standard, paper, or a TOML file.
        measures: sticky, socm, layers, length (the default), tempscale.
        corpora: where each corpus comes from, by name; the embedded sample where none is given.
        warehouse: DuckDB file; default from ``EMBAUDIT_WAREHOUSE`` or ``EMBAUDIT_HOME``.
        limit_tokens: scan only so many tokens, drawn by the seed.
        pairs: sentence pairs of your own, by purpose (``scoring``, ``validation``) the file that holds them.
        exhaustive: every token all draws, every candidate all points, whatever the profile saves.
        reference: the published code's protocol too: 120 encodes a scanned token.
        temperatures: settings of the profile's ``tempscale`` to change.
    """
    settings = Settings()
    plan = plan_audit(
        checkpoint, profile, measures, limit_tokens, device, dtype, pooling, max_length, seed, allow_pickle,
        trust_remote_code, warehouse, pairs=pairs, exhaustive=exhaustive, reference=reference, corpora=corpora,
        temperatures=temperatures,
    )  # fmt: skip
    ingested = _ingest(plan, corpora or {})
    audit_id = plan.audit_id(ingested)
    log = AuditLog(plan, audit_id, settings.lock_wait_seconds)
    try:
        staged = _shared_tables(plan, ingested, audit_id)
        if "sticky" in plan.measures:
            log.add("sticky", pooled(sticky)(plan, ingested[STICKY_CORPUS], settings.tokens_per_shard))
        if "socm" in plan.measures:
            texts = [ingested[name] for name in plan.profile.socm.corpora]
            log.add("socm", socm(plan, texts, settings.pairs_per_shard))
        if "layers" in plan.measures:
            log.add("layers", layers(plan, [ingested[name] for name in plan.profile.layers.corpora]))
        if "length" in plan.measures:
            log.add("length", length(plan, [ingested[name] for name in plan.profile.length.corpora]))
        if "tempscale" in plan.measures:
            log.add("tempscale", tempscale(plan, ingested))
        staged += log.staged
        checks = check_staged(staged, planned_rows(staged))
        rows = log.publish(checks, staged)
    except EmbauditError as error:
        log.record_failure(error)
        raise
    outcome = AuditOutcome(
        audit_id=audit_id,
        checkpoint_id=plan.spec.checkpoint_id,
        warehouse=plan.warehouse,
        max_length=_max_length(staged),
        rows=rows,
        corpora={name: f"{corpus.source}: {corpus.report}" for name, corpus in ingested.items()},
        warnings=[
            *(describe_check(check) for check in checks if not check["success"]),
            *(part.detail["text"] for part in staged if part.table == "note"),
        ],
        seconds=(datetime.now(UTC) - plan.started).total_seconds(),
    )
    publish_artifacts(audit_id, plan.source, staged)
    return outcome


def _ingest(plan: AuditPlan, sources: dict[str, str]) -> dict[str, StagedCorpus]:
    from embaudit.errors import UsageError

    unused = [name for name in sources if name not in plan.corpus_names]
    if unused:
        raise UsageError(
            f"No chosen measure reads a corpus called {unused[0]!r}.",
            next_step=f"This audit reads: {', '.join(plan.corpus_names)}.",
        )
    ingested: dict[str, StagedCorpus] = {}
    for name in plan.corpus_names:
        source = sources.get(name, "sample")
        if name == JUDGED:
            ingested |= ingest_judged(source=source, staging=plan.staging)
        else:
            ingested[name] = _ingest_one(plan, name, source)
    return ingested


def _ingest_one(plan: AuditPlan, name: str, source: str) -> StagedCorpus:
    from embaudit.corpora import MinedSource

    mined = MinedSource.parse(name, source)
    if mined is None:
        return ingest_corpus(name=name, source=source, staging=plan.staging)
    return mine_corpus(
        spec=plan.spec,
        name=name,
        method=mined.method,
        folder=str(mined.folder),
        negatives=plan.profile.socm.negatives,
        staging=plan.staging,
    )


def _shared_tables(plan: AuditPlan, ingested: dict[str, StagedCorpus], audit_id: str) -> list[Staged]:
    """The checkpoint's row, the corpora's rows, and which corpora this audit read."""
    from pathlib import Path

    described = run_cached(
        describe_checkpoint,
        plan.spec,
        source=plan.source,
        key=plan.key("checkpoint", 1, source=plan.source),
        staging=plan.staging,
    )
    path = staged_path(Path(plan.staging), "audit", audit_id, "audit_corpus")
    rows = [{"name": name, "corpus_id": corpus.corpus_id} for name, corpus in ingested.items()]
    used = Staged(table="audit_corpus", path=str(path), rows=write_rows(path, rows))
    return [described, used, *(file for corpus in ingested.values() for file in corpus.files)]


def _max_length(staged: list[Staged]) -> int:
    """Tokens that the checkpoint reads of a text, special tokens included."""
    (path,) = {part.path for part in staged if part.table == "checkpoint"}
    return int(read_rows([path])[0]["max_length"])


def planned_rows(staged: list[Staged]) -> dict[str, int]:
    """How many rows each table must have over all its shards, from what the tasks were asked to do."""
    plan: dict[str, int] = {}
    # By path: one content under two names is staged, and published, once.
    for part in {part.path: part for part in staged}.values():
        plan[part.table] = plan.get(part.table, 0) + part.rows
    # All pairs of the N texts that have a mean, whatever the shards say they wrote.
    pairs = [part.detail["all_pairs"] for part in staged if "all_pairs" in part.detail]
    if pairs:
        plan["socm_pair"] = sum(pairs)
    return plan


def describe_check(check: dict[str, Any]) -> str:
    """One failed expectation in one line, with the rows it names."""
    where = f"{check['table_name']}.{check['column_name']}" if check["column_name"] else check["table_name"]
    wanted = ", ".join(
        f"{name.replace('_value', '')} {value}"
        for name, value in check["kwargs"].items()
        if name in ("min_value", "max_value", "value_set") and value is not None
    )
    text = f"{where}: {check['expectation'].removeprefix('expect_').replace('_', ' ')}"
    text += f" ({wanted}) fails" if wanted else " fails"
    if check["raised_exception"]:
        return f"{text} because it could not run: {check['observed']}"
    if check["unexpected_count"]:
        text += f" in {check['unexpected_count']} rows"
    elif check["observed"] is not None:
        text += f", observed {check['observed']}"
    examples = "; ".join(", ".join(f"{k}={v}" for k, v in row.items()) for row in check["examples"][:3])
    return f"{text} ({examples})" if examples else text


class AuditLog:
    """Collects what the measures staged, and writes the audit's log in its own transaction."""

    def __init__(self, plan: AuditPlan, audit_id: str, lock_wait_seconds: float) -> None:
        self.plan, self.audit_id, self.lock_wait_seconds = plan, audit_id, lock_wait_seconds
        self.staged: list[Staged] = []
        self.runs: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []

    def add(self, measure: str, staged: list[Staged]) -> None:
        """Take over a finished measure's files."""
        from importlib import import_module

        self.staged += staged
        module = import_module(MEASURE_MODULES[measure])
        self.runs.append(
            {
                "measure": measure,
                "measure_key": self.plan.key(
                    measure, module.MEASURE_VERSION, files=[part.path.rsplit("/", 2)[-2] for part in staged]
                ),
                "version": module.MEASURE_VERSION,
                "settings": self.plan.profile.settings_of(measure),
                "started": self.plan.started,
                "seconds": sum(part.seconds for part in staged),
                "encodes": sum(part.encodes for part in staged),
                "status": "done",
            }
        )

    def publish(self, checks: list[dict[str, Any]], staged: list[Staged]) -> dict[str, int]:
        """Publish, unless a blocking expectation failed.

        Raises:
            CheckFailed: naming the expectations and rows.
        """
        self.checks = checks
        blocking = [check for check in checks if not check["success"] and check["severity"] == "critical"]
        if blocking:
            raise CheckFailed(
                f"{len(blocking)} of {len(checks)} checks block this audit: "
                + "; ".join(describe_check(check) for check in blocking[:3]),
                kept="Nothing was published; the staged files are kept, and every check is in expectation_result.",
                next_step="Look at them: embaudit query failed-checks",
            )
        return publish_audit(
            self.plan.warehouse, self.lock_wait_seconds, self._record("published"), self.runs, checks, staged
        )

    def record_failure(self, error: EmbauditError) -> None:
        """Put the reason on record; a warehouse that cannot be written must not hide the first error."""
        try:
            publish_audit(
                self.plan.warehouse,
                self.lock_wait_seconds,
                self._record("failed", error.happened),
                self.runs,
                self.checks,
                [],
            )
        except EmbauditError as second:
            error.kept = f"{error.kept} The audit log could not be written either: {second.happened}".strip()

    def _record(self, status: str, reason: str | None = None) -> dict[str, Any]:
        plan, finished = self.plan, datetime.now(UTC)
        return {
            "audit_id": self.audit_id,
            "checkpoint_id": plan.spec.checkpoint_id,
            "profile": plan.profile.name,
            "settings": {
                **plan.profile.model_dump(mode="json"),
                "source": plan.source,
                "measures": list(plan.measures),
                "limit_tokens": plan.limit_tokens,
                "pairs": plan.pair_sources,
            },
            "seed": plan.seed,
            "device": plan.spec.device,
            "dtype": plan.spec.dtype,
            "embaudit_version": __version__,
            "libraries": library_versions(),
            "started": plan.started,
            "finished": finished,
            "seconds": (finished - plan.started).total_seconds(),
            "status": status,
            "reason": reason,
        }
