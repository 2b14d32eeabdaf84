"""The log of one audit: what its measures staged, which checks failed, and how it ended.

Used only by ``flows/audit.py``. The log is written in its own transaction, before the tables, whatever happens.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from embaudit import __version__
from embaudit.errors import CheckFailed, EmbauditError
from embaudit.keys import content_key
from embaudit.measures import Measure
from embaudit.request import PROMPTS
from embaudit_flows.plan import AuditPlan, library_versions
from embaudit_tasks.publish import publish_audit
from embaudit_tasks.results import Staged, versions_of


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
    """Collects what the measures staged, and writes the audit's log in its own transaction."""

    def __init__(self, plan: AuditPlan, audit_id: str, lock_wait_seconds: float) -> None:
        self.plan, self.audit_id, self.lock_wait_seconds = plan, audit_id, lock_wait_seconds
        self.staged: list[Staged] = []
        self.runs: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []

    def add(self, measure: Measure, staged: list[Staged]) -> None:
        """Record a finished measure and its staged files."""
        self.staged += staged
        self.runs.append(
            {
                "measure": measure.name,
                "measure_key": content_key(
                    measure=measure.name,
                    version=measure.version,
                    seed=self.plan.seed,
                    files=[part.key for part in staged],
                    **self.plan.spec.key_parts,
                ),
                "version": measure.version,
                "settings": self.plan.profile.settings_of(measure.name),
                "started": self.plan.started,
                "seconds": sum(part.seconds for part in staged),
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
            self.plan.warehouse, self.lock_wait_seconds, self._record("published"), self.runs, checks, staged
        )

    def record_failure(self, error: EmbauditError) -> None:
        """Log why the audit failed; if the warehouse cannot be written, that must not hide the first error."""
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
        # Only prompts that were set: without any, the settings are the same as before prompts could be set.
        asked_prompts = plan.spec.model_dump(include=set(PROMPTS), exclude_none=True)
        return {
            "audit_id": self.audit_id,
            "checkpoint_id": plan.spec.checkpoint_id,
            "profile": plan.profile.name,
            "settings": {
                **plan.profile.asked_of(plan.measures),
                "description": plan.profile.description,
                "source": plan.source,
                "measures": list(plan.measures),
                "limit_tokens": plan.limit_tokens,
                "pooling": plan.spec.pooling,
                "max_length": plan.spec.max_length,
                **asked_prompts,
                "pairs": plan.pair_sources,
            },
            "seed": plan.seed,
            "device": plan.spec.device,
            "dtype": plan.spec.dtype,
            "embaudit_version": __version__,
            "libraries": library_versions(self.staged),
            "started": plan.started,
            "finished": finished,
            "seconds": (finished - plan.started).total_seconds(),
            "status": status,
            "reason": reason,
        }
