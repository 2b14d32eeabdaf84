"""Compares an audit with a policy; pure functions without I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fnmatch import fnmatchcase

from embaudit.declared.figure import FULL, moved_by_precision
from embaudit.declared.rule import LEVELS
from embaudit.questions.names import ASKS
from embaudit.warehouse.gate.facts import AuditFacts, Cell, GateFinding
from embaudit.warehouse.gate.policy import SEVERITIES, Change, FigureRule, Limit, Policy, Requirements, Severity

# A change is a difference of two doubles: 0.52 - 0.5 is slightly more than 0.02 and must pass a limit of 0.02.
ROUNDING = 1e-12
TOKENS_NAMED = 5


def evaluate(policy: Policy, audit: AuditFacts, baseline: AuditFacts | None) -> tuple[GateFinding, ...]:
    """One finding for each rule and figure that it applies to, and at least one per rule."""
    return (
        *_required(policy.require, audit),
        *(finding for rule in policy.limit for finding in _limit(rule, audit)),
        *(finding for rule in policy.change for finding in _change(rule, audit, baseline, policy.no_baseline)),
        *(_severity(rule, audit) for rule in policy.severity),
    )


def _limit(rule: Limit, audit: AuditFacts) -> Iterator[GateFinding]:
    cells = _matching(rule, audit)
    if not cells:
        yield _missing(rule, Cell(rule.summary, rule.item, rule.measure, None), f"no such figure{_there(rule, audit)}")
    for cell in cells:
        if cell.value is None:
            yield _missing(rule, cell, f"null in this {_what(rule)}")
            continue
        is_within = (rule.max is None or cell.value <= rule.max) and (rule.min is None or cell.value >= rule.min)
        yield GateFinding(
            rule=rule.title,
            kind="limit",
            **cell.names,
            value=cell.value,
            lowest=rule.min,
            highest=rule.max,
            outcome="passed" if is_within else "tripped",
            trips=not is_within,
            reason=rule.reason,
            precision=_in_half(cell.dtype),
        )


def _change(rule: Change, audit: AuditFacts, baseline: AuditFacts | None, no_baseline: str) -> Iterator[GateFinding]:
    if baseline is None:
        nowhere = Cell(rule.summary, rule.item, rule.measure, None)
        yield _missing(rule, nowhere, "no baseline to compare with", trips=no_baseline == "trip")
        return
    own = {(cell.item, cell.question): cell for cell in _matching(rule, audit)}
    before = {(cell.item, cell.question): cell for cell in _matching(rule, baseline)}
    if not own and not before:
        yield _missing(
            rule, Cell(rule.summary, rule.item, rule.measure, None), f"no such figure in either {_what(rule)}"
        )
    for item, question in dict.fromkeys((*own, *before)):
        nothing = Cell(rule.summary, item, rule.measure, None, question=question)
        mine, other = own.get((item, question), nothing), before.get((item, question), nothing)
        if mine.value is None or other.value is None:
            where = [
                name for name, one in ((f"this {_what(rule)}", mine), ("the baseline", other)) if one.value is None
            ]
            yield _missing(rule, mine, f"missing in {' and in '.join(where)}", baseline_value=other.value)
        else:
            yield _changed(rule, mine, other, mine.value, other.value)


def _changed(rule: Change, cell: Cell, baseline: Cell, value: float, before: float) -> GateFinding:
    """Relative to a baseline of 0 every change is infinite, so no change is allowed.

    Two precisions may differ by themselves: what the rule allows is wider by as much.
    """
    unit = abs(before) if rule.relative else 1.0
    by_precision = moved_by_precision(cell, baseline)
    highest = None if rule.max_increase is None else before + rule.max_increase * unit + by_precision
    lowest = None if rule.max_decrease is None else before - rule.max_decrease * unit - by_precision
    slack = ROUNDING * max(abs(value), abs(before))
    is_within = (highest is None or value <= highest + slack) and (lowest is None or value >= lowest - slack)
    change = (value - before) / unit if unit else (0.0 if value == before else None)
    return GateFinding(
        rule=rule.title,
        kind="change",
        **cell.names,
        value=value,
        lowest=lowest,
        highest=highest,
        baseline_value=before,
        # Dividing by a tiny baseline may overflow.
        change=change if change is not None and math.isfinite(change) else None,
        observed="relative" if rule.relative else "",
        outcome="passed" if is_within else "tripped",
        trips=not is_within,
        reason=rule.reason,
        precision=f"in {cell.dtype}, the baseline in {baseline.dtype}: {by_precision:.2g} more is allowed for that"
        if by_precision
        else _in_half(cell.dtype),
    )


def _in_half(dtype: str) -> str | None:
    """The note on a figure that is not in float32; None if it is."""
    return None if dtype == FULL else f"in {dtype}"


def _severity(rule: Severity, audit: AuditFacts) -> GateFinding:
    cell = Cell("sticky_token", "retention", f"{rule.at_least}_or_worse", None)
    if audit.tokens is None:
        return _missing(rule, cell, "the audit has no sticky-token measure")
    counted = SEVERITIES[: SEVERITIES.index(rule.at_least) + 1]
    tokens = [token for token, severity in audit.tokens if severity in counted]
    # Only shortlisted tokens are validated; if there must be more, the estimate counts.
    amount = round(audit.capped.get(rule.at_least, len(tokens)))
    is_within = amount <= rule.most
    named = tokens[:TOKENS_NAMED]
    more = f" and {amount - len(named):,} more" if amount > len(named) else ""
    return GateFinding(
        rule=rule.title,
        kind="severity",
        **cell.names,
        value=float(amount),
        highest=float(rule.most),
        observed=", ".join(named) + more,
        outcome="passed" if is_within else "tripped",
        trips=not is_within,
        reason=rule.reason,
        precision=_in_half(audit.validated_in),
    )


def _required(required: Requirements, audit: AuditFacts) -> Iterator[GateFinding]:
    if required.sound and audit.verdict is not None and audit.verdict[0] != "not checked":
        kind, line = audit.verdict
        yield _statement("sound checkpoint", "verdict", "kind", "may be served", kind != "do not serve", line)
    for measure in dict.fromkeys(required.measures):
        if measure in audit.measures:
            yield _statement("required measures", "measure_run", measure, "done", True, "")
        else:
            yield GateFinding(
                rule="required measures",
                kind="require",
                **Cell("measure_run", measure, "done", None).names,
                lowest=1.0,
                observed="not measured in this audit",
                outcome="missing",
                trips=True,
            )
    if required.profiles:
        found_profiles = {audit.profile, *audit.other_profiles}
        is_listed = found_profiles <= set(required.profiles)
        allowed = " or ".join(required.profiles)
        yield _statement("required profile", "audit", "profile", allowed, is_listed, ", ".join(sorted(found_profiles)))
    if required.basis is not None:
        is_strong = bool(audit.bases) and (required.basis == "screened" or audit.bases == {"validated"})
        found = ", ".join(sorted(audit.bases)) or "no sticky-token measure"
        yield _statement("required basis", "sticky_summary", "basis", required.basis, is_strong, found)
    if required.real_corpora:
        is_real = not audit.sample_corpora
        names = ", ".join(audit.sample_corpora)
        yield _statement("real corpora", "audit_corpus", "source", "not the sample", is_real, names)
    if required.most_failed_warnings is not None:
        failed = audit.failed_warnings
        is_within = len(failed) <= required.most_failed_warnings
        yield GateFinding(
            rule="failed warnings",
            kind="require",
            **Cell("expectation_result", "warning", "failed", None).names,
            value=float(len(failed)),
            highest=float(required.most_failed_warnings),
            observed=", ".join(failed[:TOKENS_NAMED]),
            outcome="passed" if is_within else "tripped",
            trips=not is_within,
        )
    if required.no_finding is not None:
        forbidden = LEVELS[: LEVELS.index(required.no_finding) + 1]
        named = [name for name, level in audit.findings if level in forbidden]
        yield GateFinding(
            rule=f"no finding of level {' or '.join(forbidden)}",
            kind="require",
            **Cell("finding", required.no_finding, "count", None).names,
            value=float(len(named)) if audit.findings else None,
            highest=0.0,
            # Audits by older versions of embaudit have no findings at all.
            observed=", ".join(named) if audit.findings else "this audit has no findings: run it again",
            outcome="tripped" if named else "passed" if audit.findings else "missing",
            trips=bool(named) or not audit.findings,
        )


def _statement(rule: str, summary: str, item: str, measure: str, holds: bool, observed: str) -> GateFinding:
    """A condition that must hold: 1 if it does, 0 if not."""
    return GateFinding(
        rule=rule,
        kind="require",
        **Cell(summary, item, measure, None).names,
        value=float(holds),
        lowest=1.0,
        observed=observed,
        outcome="passed" if holds else "tripped",
        trips=not holds,
    )


def _there(rule: FigureRule, audit: AuditFacts) -> str:
    """Where a figure was looked for; of an answer, whose figures depend on what was asked, what it has instead."""
    if rule.summary not in ASKS:
        return " in this audit"
    others = dict.fromkeys(cell.measure for cell in audit.cells if cell.summary == rule.summary)
    return f"; {rule.summary} has {', '.join(others)}" if others else f": {rule.summary} was not asked"


def _what(rule: FigureRule) -> str:
    return "answer" if rule.summary in ASKS else "audit"


def _matching(rule: FigureRule, audit: AuditFacts) -> list[Cell]:
    # Only * and ? are wildcards: a corpus name may contain brackets.
    pattern = rule.item.replace("[", "[[]")
    return [
        cell
        for cell in audit.cells
        if cell.summary == rule.summary and cell.measure == rule.measure and fnmatchcase(cell.item, pattern)
    ]


def _missing(
    rule: Limit | Change | Severity,
    cell: Cell,
    why: str,
    *,
    baseline_value: float | None = None,
    trips: bool | None = None,
) -> GateFinding:
    kinds = {Limit: "limit", Change: "change", Severity: "severity"}
    return GateFinding.model_validate(
        {
            "rule": rule.title,
            "kind": kinds[type(rule)],
            **cell.names,
            "value": cell.value,
            "baseline_value": baseline_value,
            "observed": why,
            "outcome": "missing",
            "trips": rule.missing == "trip" if trips is None else trips,
            "reason": rule.reason,
        }
    )
