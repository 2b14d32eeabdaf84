"""Says whether the checkpoint may be served as soon as that is known: the measures that tell run first."""

from __future__ import annotations

import logging

from embaudit.questions.check.verdict import FIRST, Verdict, verdict_of_audit
from embaudit.steps.results import Staged, StagedCorpus
from embaudit_flows.estimate import HowLong
from embaudit_flows.findings import findings_of
from embaudit_flows.plan import AuditPlan
from embaudit_flows.summary import publish_verdict
from embaudit_tasks.audit_task import in_a_run
from embaudit_tasks.progress import say

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
