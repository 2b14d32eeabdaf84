"""The log of one audit: what its measures staged, which checks failed, and how it ended.

Used only by ``flows/audit.py``. The log is written in its own transaction, before the tables, whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from embaudit.measures import Measure
from embaudit.questions.audit import NOT_ASKED, AuditRequest
from embaudit.steps.results import Staged, versions_of
from embaudit.system.installed import content_key
from embaudit.system.settings import Settings
from embaudit.words.errors import CheckFailed, EmbauditError, is_of_interrupt, machine_failure, one_line
from embaudit.words.masking import mask_error, masked
from embaudit_flows.plan import AuditPlan, library_versions
from embaudit_tasks.publish import publish_audit


def describe_check(check: dict[str, Any]) -> str:
    """One line about a failed expectation, with up to three of the rows that fail it."""
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
    """Collects what the measures staged, and writes the audit's log in its own transaction.

    Attributes:
        plan: None until the names are resolved.
        audit_id: until the corpora are read, an id of the request: the content that the audit's own is made of is not
            known.
    """

    def __init__(self, request: AuditRequest, settings: Settings) -> None:
        self.request, self.lock_wait_seconds = request, settings.lock_wait_seconds
        self.warehouse = str(request.published_to)
        self.started = datetime.now(UTC)
        self.plan: AuditPlan | None = None
        self.audit_id = content_key(request=request.model_dump(mode="json", exclude={"warehouse", *NOT_ASKED}))
        self.staged: list[Staged] = []
        self.runs: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []

    @contextmanager
    def failures_recorded(self) -> Iterator[None]:
        """Log whatever ends the block, except an interrupt: the same command continues.

        Raises:
            EmbauditError: what was raised, or what a lack of memory means.
        """
        try:
            yield
        except Exception as error:
            if is_of_interrupt(error):
                raise
            failure = error if isinstance(error, EmbauditError) else machine_failure(error)
            reason = f"{type(error).__name__}: {one_line(error)}" if failure is None else failure.happened
            second = self._record_failure(masked(reason))
            if failure is None:
                # Prefect keeps its message as that of the run's state.
                mask_error(error)
                raise
            if second:
                failure.kept = f"{failure.kept} The audit log could not be written either: {second}".strip()
            if failure is error:
                raise
            raise failure from error

    def add(self, measure: Measure, staged: list[Staged]) -> None:
        """Record a finished measure and its staged files."""
        plan = self._planned()
        self.staged += staged
        self.runs.append(
            {
                "measure": measure.name,
                "measure_key": content_key(
                    measure=measure.name,
                    version=measure.version,
                    seed=plan.seed,
                    files=[part.key for part in staged],
                    **plan.spec.key_parts,
                ),
                "version": measure.version,
                "settings": plan.profile.settings_of(measure.name),
                "started": plan.started,
                # Null if nothing had to be computed: what an earlier audit paid for is not paid again.
                "seconds": sum(part.seconds for part in staged if not part.is_reused)
                if not all(part.is_reused for part in staged)
                else None,
                "encodes": sum(part.encodes for part in staged),
                "status": "done",
                "libraries": versions_of(staged),
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
            self.warehouse, self.lock_wait_seconds, self._record("published"), self.runs, checks, staged
        )

    def _record_failure(self, reason: str) -> str | None:
        """Log why the audit failed; if the warehouse cannot be written, the reason for that.

        Not as a task: the server may be what failed.
        """
        try:
            publish_audit.fn(
                self.warehouse, self.lock_wait_seconds, self._record("failed", reason), self.runs, self.checks, []
            )
        except EmbauditError as second:
            return second.happened
        return None

    def _record(self, status: str, reason: str | None = None) -> dict[str, Any]:
        finished = datetime.now(UTC)
        return {
            "audit_id": self.audit_id,
            **(_asked_by(self.request) if self.plan is None else _planned_as(self.plan)),
            "embaudit_version": version("embaudit"),
            "libraries": library_versions(self.staged),
            "started": self.started,
            "finished": finished,
            "seconds": (finished - self.started).total_seconds(),
            "status": status,
            "reason": reason,
        }

    def _planned(self) -> AuditPlan:
        assert self.plan is not None
        return self.plan


def _planned_as(plan: AuditPlan) -> dict[str, Any]:
    return {
        "checkpoint_id": plan.spec.checkpoint_id,
        "profile": plan.profile.name,
        "settings": {
            **plan.profile.asked_of(plan.measures),
            "description": plan.profile.description,
            "source": plan.source,
            "measures": list(plan.measures),
            "pooling": plan.spec.pooling,
            "max_length": plan.spec.max_length,
            **plan.spec.asked_prompts,
            "pairs": plan.pair_sources,
        },
        "seed": plan.seed,
        "device": plan.spec.device,
        "dtype": plan.spec.dtype,
    }


def _asked_by(request: AuditRequest) -> dict[str, Any]:
    """The request in its own words: its checkpoint, profile or device may be what does not exist."""
    return {
        "checkpoint_id": "",
        "profile": request.profile,
        "settings": {"source": request.checkpoint, **request.model_dump(mode="json", exclude_defaults=True)},
        "seed": request.seed,
        "device": request.device,
        "dtype": request.dtype,
    }
