"""What a night found and did, in words: a row a source, the problems, the run's message, the table for the morning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from pydantic import BaseModel

from embaudit.watch.asked import AnsweredNow
from embaudit.watch.happening import DO_NOT_SERVE, HAPPENINGS, WORSE, NightProblem, Problem, exit_code_of, in_order
from embaudit.words.sentences import cut

# What a watch did with a source, in the order of the summary; ``seen``: the revision was dealt with before.
OUTCOMES = ("audited", "unchanged", "known", "seen", "running", "failed", "gone", "unreachable")
# Of a source that was not audited, what happened.
NOT_AUDITED = {"failed": "checkpoint_unreadable", "gone": "checkpoint_gone", "unreachable": "hub_silent"}
PUBLISHED = "Everything else is done and recorded."
# Problems that a message tells in full, and characters of each; the log and the notification have all of them.
TOLD, MOST_TOLD = 5, 400


class WatchedRow(BaseModel):
    """The outcome of one source in this watch."""

    source: str
    revision: str
    outcome: str
    checkpoint_id: str | None
    audit_id: str | None
    predecessor_audit_id: str | None
    worse: list[str]
    # Which weights changed since the predecessor, and what becomes of the index that it built; None if not known.
    weights: str | None = None
    index: str | None = None
    gate: str | None
    reason: str | None
    # What nobody has accepted, whether this watch found it or an earlier one, and since when.
    open: list[str] = []
    open_since: datetime | None = None
    fails: bool = False
    # Of one that was not audited: whether its audit failed, and whether somebody accepted that it is so.
    audit_failed: bool = False
    is_accepted: bool = False

    @property
    def problems(self) -> Iterator[Problem]:
        """What is wrong with it."""
        is_old = self.open_since is not None and self.outcome != "audited"
        since = f" (open since {self.open_since:%Y-%m-%d})" if is_old else ""
        broken = [item.removeprefix(DO_NOT_SERVE) for item in self.open if item.startswith(DO_NOT_SERVE)]
        rules = [item for item in self.open if not item.startswith((DO_NOT_SERVE, WORSE))]
        worse = self.worse or [item.removeprefix(WORSE) for item in self.open if item.startswith(WORSE)]
        what = f"the audit {self.audit_id}" if self.audit_id else "its audit"
        if broken:
            yield self._problem("broken", f"{', '.join(broken)}{since}; see embaudit show {self.audit_id}.")
        if self.fails:
            yield self._problem("tripped", f"{what} fails {'; '.join(rules)}{since}.")
        if worse:
            said = "; ".join([*worse, *(change.rstrip(".") for change in (self.weights, self.index) if change)])
            yield self._problem("worse", f"{said}{since}.")
        if self.outcome in NOT_AUDITED and not self.is_accepted:
            name = "audit_failed" if self.audit_failed else NOT_AUDITED[self.outcome]
            reason = (self.reason or "it says nothing").rstrip(".")
            yield self._problem(name, f"{reason}. It is green when {HAPPENINGS[name].until}.")

    def _problem(self, name: str, said: str) -> Problem:
        return Problem(name, self.source, said)


class WatchOutcome(BaseModel):
    """What a watch found and did; ``watch_run``, ``watched_revision`` and ``answer`` keep it."""

    warehouse: str
    rows: list[WatchedRow]
    answers: list[AnsweredNow] = []

    @property
    def problems(self) -> list[Problem]:
        """Everything that must not look as if all were well, the gravest first."""
        found = [problem for row in self.rows for problem in row.problems]
        return in_order([*found, *(problem for answer in self.answers for problem in answer.problems)])

    @property
    def always_fails(self) -> bool:
        """Whether an audit failed or a policy that is set to fail did, which end a run red whatever is set."""
        return any(problem.name in ("tripped", "audit_failed") for problem in self.problems)

    @property
    def marked(self) -> list[WatchedRow]:
        """Sources whose gate is tripped and only marks."""
        return [row for row in self.rows if row.gate == "tripped" and not row.fails]

    @property
    def summary(self) -> str:
        """Such as ``1 problem: Do not serve: models/a; 2 audited, 5 seen; 3 questions answered well``."""
        problems, parts = self.problems, []
        if problems:
            named: dict[str, list[str]] = {}
            for problem in problems:
                named.setdefault(problem.happening.state, []).append(problem.subject)
            said = "; ".join(f"{state}: {', '.join(dict.fromkeys(subjects))}" for state, subjects in named.items())
            parts.append(f"{len(problems)} problem{'s' * (len(problems) > 1)}: {said}")
        counts = Counter(row.outcome for row in self.rows)
        if done := ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name]):
            parts.append(done)
        if self.marked:
            parts.append(f"the gate is tripped for {len(self.marked)}")
        fine = [answer for answer in self.answers if not any(answer.problems)]
        well = sum(not answer.is_accepted for answer in fine)
        for count, said in ((well, "well"), (len(fine) - well, "as accepted")):
            if count:
                parts.append(f"{count} question{'s' * (count > 1)} answered {said}")
        return "; ".join(parts) or "nothing watched"

    def problem(self) -> NightProblem | None:
        """The error that ends the night's run, under the name of its gravest problem; None of a green night."""
        found = self.problems
        if not found:
            return None
        told = [str(problem) if len(found) == 1 else cut(str(problem), MOST_TOLD) for problem in found[:TOLD]]
        more = [f"And {len(found) - TOLD} more."] if len(found) > TOLD else []
        count = [] if len(found) == 1 else [f"{len(found)} problems."]
        error = NightProblem(
            " ".join([*count, *told, *more]), kept=PUBLISHED, next_step="What is open: embaudit query open-items"
        )
        error.state, error.exit_code, error.outcome = found[0].happening.state, exit_code_of(found), self
        return error

    def table(self) -> list[dict[str, str]]:
        """What people read in the morning: a row a problem, with its reason, and one for all that is fine."""
        problems = self.problems
        rows = [
            {"what": problem.happening.state, "of": problem.subject, "reason": problem.said} for problem in problems
        ]
        subjects = {problem.subject for problem in problems}
        looked_at = [*(row.source for row in self.rows), *(answer.subject for answer in self.answers)]
        fine = [name for name in dict.fromkeys(looked_at) if name not in subjects]
        said = self.summary.split("; ", 1)[-1] if problems else self.summary
        if fine or not problems:
            rows.append({"what": "Nothing wrong", "of": f"{len(fine)} of {len(fine) + len(subjects)}", "reason": said})
        return rows
