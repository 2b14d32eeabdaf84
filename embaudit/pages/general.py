"""The parts of every audit's page that do not depend on the measures: identity, gate, comparisons, settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.declared.document import Column, Part, Section, Table, count
from embaudit.declared.rule import LEVELS, Finding
from embaudit.measures import MEASURES
from embaudit.questions.check.verdict import FIRST, LEVEL_OF
from embaudit.warehouse.gate import GateVerdict
from embaudit.words.estimate import Estimate

PASSED_SHOWN = 40
# Number of rows on the short terminal page.
IN_SHORT = 8
GATE_COLUMNS = (
    *(Column("rule", is_prose=True), Column("figure", is_prose=True), Column("value", is_prose=True)),
    *(Column("allowed", is_prose=True), Column("baseline", is_right=True)),
    Column("outcome", levels={"passed": "ok", "tripped": "problem", "missing": "problem", "missing, warned": "look"}),
    Column("reason", is_prose=True),
)
PUBLISHED = {
    "socm_mean": "SOCM",
    "u": "u",
    "reference_scanned": "reference: scanned",
    "reference_candidates": "reference: candidates",
    "reference_cutoff": "reference: cutoff",
    "reference_sticky": "reference: sticky",
}
PUBLISHED_COUNTS = ("reference_scanned", "reference_candidates", "reference_sticky")
HEADLINE_FIGURES = {
    summary: figures for measure in MEASURES.values() for summary, figures in measure.headline_figures.items()
}


def identity(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What was audited, when and on which device, as far as known."""
    shape = [facts["architecture"]] if facts["architecture"] else []
    for name, what in (("layer_count", "layers"), ("heads", "heads"), ("hidden_size", "dimensions")):
        if facts[name]:
            shape.append(f"{facts[name]:,} {what}")
    if facts["parameters"]:
        millions = facts["parameters"] / 1e6
        shape.append(f"{millions:,.1f} million parameters" if millions >= 1 else f"{facts['parameters']:,} parameters")
    rows = [
        ("audit", facts["audit_id"]),
        ("checkpoint", facts["checkpoint_id"]),
        ("revision", facts["revision"]),
        ("model", ", ".join(shape)),
        ("pooling", facts["pooling"]),
        ("prompt", _prompts(facts)),
        ("reads", _reads(facts["max_length"]) if facts["max_length"] else None),
        ("profile", facts["profile"]),
        ("finished", f"{facts['finished']:%Y-%m-%d %H:%M %Z}" if facts["finished"] else None),
        ("ran on", f"{facts['device']}, {_precision(facts)}, seed {facts['seed']}"),
    ]
    return [(name, value) for name, value in rows if value]


def _precision(facts: dict[str, Any]) -> str:
    """The audit's precision, and whether some of its figures are in another one."""
    others = [f"{row['figures']:,} of {row['of_all']:,} figures in {row['dtype']}" for row in facts["precisions"]]
    return f"{facts['dtype']} ({', '.join(others)})" if others else str(facts["dtype"])


def _reads(limit: int) -> str:
    return "texts of any length" if limit >= NO_LIMIT else f"{limit:,} tokens"


def _prompts(facts: dict[str, Any]) -> str:
    """The prompts, quoted to show spaces and line breaks; empty if there are none."""
    text, query, document = (facts[name] or "" for name in ("prompt", "query_prompt", "document_prompt"))
    if not (text or query or document):
        return ""
    if text == query == document:
        said = repr(text)
    else:
        named = (("texts", text), ("queries", query), ("documents", document))
        said = "; ".join(f"{what} {prompt!r}" if prompt else f"{what} none" for what, prompt in named)
    return said if facts["pools_prompt"] else f"{said}, not pooled"


def page_findings(facts: dict[str, Any]) -> Iterator[Finding]:
    """The findings to show first, worst first."""
    if facts["status"] != "published":
        yield Finding(
            "problem",
            f"This audit is {facts['status']}, and nothing of it is published: {facts['reason'] or 'no reason given'}",
        )
        return
    rows = sorted(facts["findings"], key=lambda row: LEVELS.index(row["level"]))
    above = []
    for verdict in facts["verdict"]:
        # It says what its cause says.
        cause = next((row for row in rows if row["name"] == verdict["cause"] and row["measure"] in FIRST), None)
        meaning, advice = ((cause or {}).get(name) or "" for name in ("meaning", "advice"))
        above.append(Finding(LEVEL_OF[verdict["kind"]], verdict["line"], meaning, advice, "verdict"))
        rows = [row for row in rows if row is not cause]
    if gate := stored_verdict(facts):
        above.append(_accepted(gate, facts["accepted"]) or headline(gate))
    # A gate that tripped is worse than things to look at.
    yield from sorted(above, key=lambda one: LEVELS.index(one.level))
    for row in rows:
        yield Finding(row["level"], row["sentence"], row["meaning"] or "", row["advice"] or "")


def stored_verdict(facts: dict[str, Any]) -> GateVerdict | None:
    """The audit's last gate; None if there was none."""
    (gate,) = facts["gate"] or [None]
    if gate is None:
        return None
    given = {"source": facts["source"] or facts["checkpoint_id"], "findings": facts["gate_findings"]}
    return GateVerdict.model_validate({**gate, **given})


def headline(verdict: GateVerdict) -> Finding:
    return Finding("problem" if verdict.tripped else "ok", verdict.headline)


def _accepted(verdict: GateVerdict, accepted: list[dict[str, Any]]) -> Finding | None:
    """The headline of a tripped gate of which somebody accepted every rule that tripped; None if not."""
    by_rule = {row["item"]: row for row in accepted}
    if not verdict.tripped or any(finding.rule not in by_rule for finding in verdict.tripped):
        return None
    first = by_rule[verdict.tripped[0].rule]
    return Finding("look", f"{verdict.headline} Accepted by {first['accepted_by']}: {first['reason']}.")


def stored_gate_section(facts: dict[str, Any]) -> Section | None:
    verdict = stored_verdict(facts)
    return gate_section(verdict, "embaudit query gate-findings") if verdict else None


def gate_section(verdict: GateVerdict, more: str) -> Section:
    """A gate's findings: what tripped, then warnings about missing figures, then what passed.

    Args:
        more: the command that lists all of them.
    """
    what = "answer" if verdict.is_of_answers else "audit"
    against = f", against {what} {verdict.baseline_audit_id}" if verdict.baseline_audit_id else ""
    passed = [finding for finding in verdict.findings if finding.outcome == "passed"]
    first = [*verdict.tripped, *verdict.warnings]
    rows = [
        (
            *(finding.rule, finding.figure, finding.shown_value, finding.allowed, finding.shown_baseline),
            finding.outcome if finding.trips or finding.outcome == "passed" else "missing, warned",
            finding.reason,
        )
        for finding in (*first, *passed)
    ]
    parts: list[Part] = [
        f"Policy {verdict.policy} ({verdict.policy_hash}) on {what} {', '.join(verdict.audits) or verdict.audit_id} of "
        f"{verdict.source}{against}; "
        f"evaluated {verdict.evaluated:%Y-%m-%d %H:%M %Z}.",
        Table(GATE_COLUMNS, rows, "Rules of the gate", brief=len(first) + PASSED_SHOWN, headline=len(first), more=more),
    ]
    in_half: dict[str, list[str]] = {}
    for finding in verdict.findings:
        if finding.precision:
            in_half.setdefault(finding.precision, []).append(finding.rule)
    if in_half:
        said = (f"{', '.join(dict.fromkeys(rules))} ({precision})" for precision, rules in in_half.items())
        parts.append(f"Not all in float32: {'; '.join(said)}.")
    return Section(f"Gate {verdict.outcome}", parts)


WORSE = {
    **{"figure": Column("figure"), "item": Column("item"), "predecessor_value": Column("before", ".4g")},
    **{"value": Column("now", ".4g"), "delta": Column("change", "+.4g"), "tolerance": Column("noise", ".4g")},
    "worse_when": Column("worse when", levels={"higher": "problem", "lower": "problem"}),
}
STICKY_CHANGES = {
    "token": Column("token"),
    "change": Column("change", levels={"newly sticky": "problem", "no longer sticky": "ok"}),
    **{"predecessor_loss": Column("loss before", ".4g"), "loss": Column("loss now", ".4g")},
    "severity": Column("severity"),
}


def regression_section(facts: dict[str, Any]) -> Section | None:
    """What got worse since the previous audit; None if no watch has compared them."""
    parts: list[Part] = [
        Finding(
            "look" if row["worse"] else "ok",
            f"{row['worse']} of {row['figures']} figures are worse than in audit {row['predecessor_audit_id']}.",
        )
        for row in facts["compared"]
    ]
    for row in facts["compared"]:
        of_pair = [one for one in facts["weight_changes"] if one["predecessor_audit_id"] == row["predecessor_audit_id"]]
        parts += [weights_changed(of_pair)] if of_pair else []
    parts.append(
        Table.of(
            WORSE,
            [{**row, "figure": f"{row['summary']}.{row['measure']}"} for row in facts["regressions"]],
            "Figures that are worse than in the previous audit",
            headline=IN_SHORT,
            more="embaudit query regressions",
        )
    )
    parts.append(Table.of(STICKY_CHANGES, facts["sticky_changes"], more="embaudit query sticky-changes"))
    return Section("Compared with the previous audit", parts) if facts["compared"] else None


def weights_changed(layers: Sequence[Mapping[str, Any]]) -> Finding:
    """Which weights changed since another audit, from the rows of ``weight_change`` for the two."""
    read = [row for row in layers if row["is_read"]]
    changed, tensors = (sum(row[name] for row in read) for name in ("changed", "tensors"))
    if not changed:
        others = sum(row["changed"] for row in layers)
        only = f"; only {count(others, 'tensor')} that no vector depends on did" if others else ""
        return Finding(
            "look",
            f"No weight that a vector depends on has changed{only}.",
            "If this revision was trained, the training did not reach it: frozen parameters, an adapter that was not "
            "merged, or the wrong folder saved.",
            name="nothing_changed",
        )
    where = [
        f"layer {row['layer']}" if row["layer"] is not None else "outside the layers" for row in read if row["changed"]
    ]
    all_of = "everywhere" if len(where) == len(read) else ", ".join(where)
    return Finding("ok", f"{changed} of {tensors} tensors that vectors depend on changed: {all_of}.", name="changed")


def published_section(facts: dict[str, Any]) -> Section | None:
    """Published figures next to the audit's own; None if there are none."""
    rows = sorted(facts["published"], key=lambda row: [*PUBLISHED].index(row["measure"]))
    if not rows:
        return None
    matched = "" if rows[0]["matched_by"] == "id" else ", matched by name alone"
    columns = (
        *(Column("figure"), Column("ours [95 %]", ".3f"), Column("ours on", is_right=True)),
        *(Column("published", is_right=True), Column("difference", is_right=True), Column("in")),
    )
    table = Table(
        columns,
        [_published(row) for row in rows],
        f"Published and measured ({rows[0]['published_checkpoint']}{matched})",
    )
    return Section("Published figures", [table])


def _published(row: dict[str, Any]) -> tuple[Any, ...]:
    name = PUBLISHED[row["measure"]] + (f", {row['corpus']}" if row["corpus"] else "")
    texts = f"{row['own_texts']:,} texts" if row["own_texts"] else ""
    if row["measure"] in PUBLISHED_COUNTS:
        numbers = (f"{row['own']:,.0f}", texts, f"{row['published']:,.0f}", f"{row['difference']:+,.0f}")
        return (name, *numbers, row["published_in"])
    own = Estimate.of(row, "own")
    return (name, own, texts, f"{row['published']:.3f}", f"{row['difference']:+.3f}", row["published_in"])


BACKBONE = {
    **{"item": Column("what"), "measure": Column("figure"), "backbone_value": Column("backbone", ".4g")},
    **{"value": Column("this checkpoint", ".4g"), "delta": Column("difference [95 %]", "+.4g", "+.4g")},
    "interval_is": Column("interval"),
}


def backbone_section(facts: dict[str, Any]) -> Section | None:
    """The differences to each backbone's audit in this warehouse; None without one."""
    parts = [part for link in facts["backbones"] for part in _backbone(link, facts)]
    return Section("Compared with its backbone", parts) if parts else None


def _backbone(link: dict[str, Any], facts: dict[str, Any]) -> Iterator[Part]:
    key = link["backbone_audit_id"]
    deltas = [row for row in facts["backbone_deltas"] if row["backbone_audit_id"] == key]
    if not deltas:
        yield f"{link['backbone']}: the two audits have no figures in common."
        return
    shown = [row for row in deltas if row["measure"] in HEADLINE_FIGURES.get(row["summary"], ())]
    shown.sort(key=lambda row: (list(HEADLINE_FIGURES).index(row["summary"]), row["item"], row["measure"]))
    title = f"Compared with the backbone {link['backbone']}, audit {key}"
    yield Table.of(BACKBONE, shown, title, headline=IN_SHORT)
    for row in facts["backbone_changes"]:
        if row["backbone_audit_id"] == key:
            bounds = Estimate.of(row, "change").interval("+.3f")
            interval = f"{bounds}, paired over texts" if bounds else ""
            yield f"Change of the average SOCM on {row['corpus']}: {row['change']:+.4f}{interval}."
    yield f"{count(len(deltas), 'figure')} compared; all: embaudit query backbone"


CHECKS = {
    **{"table_name": Column("table"), "column_name": Column("column"), "expectation": Column("check")},
    "severity": Column("severity", levels={"warning": "look"}),
    **{"unexpected_count": Column("rows", ","), "observed": Column("observed", is_prose=True)},
}
RUNS = {
    **{"measure": Column("measure"), "version": Column("version", "d")},
    **{"seconds": Column("seconds", ",.0f"), "encodes": Column("encodes", ",")},
}
CORPORA = {
    **{"name": Column("corpus"), "source": Column("source", is_prose=True), "kept": Column("rows kept", ",")},
    **{"read": Column("seen", ","), "dropped": Column("dropped: blank, broken, not UTF-8", ",")},
    "share_read": Column("share of the source read", ".1%"),
}


def check_section(facts: dict[str, Any]) -> Section:
    """The checks before publishing, and failed warnings."""
    (counts,) = facts["checks"]
    rows = [
        {**row, "expectation": row["expectation"].removeprefix("expect_").replace("_", " ")}
        for row in facts["failed_checks"]
    ]
    finding = Finding(
        "look" if counts["failed"] else "ok",
        f"{counts['run']:,} checks ran on the tables before publishing; {counts['failed']} failed.",
    )
    return Section("Checks", [finding, Table.of(CHECKS, rows, more="embaudit query failed-checks")])


def settings_section(facts: dict[str, Any]) -> Section:
    """Measures, corpora, settings and versions of the audit."""
    settings = [(name, value) for name, value in _flat(json.loads(facts["settings"])) if value]
    versions = {"embaudit": facts["embaudit_version"], **json.loads(facts["libraries"]), **_mixed(facts["runs"])}
    return Section(
        "Settings",
        [
            Table.of(RUNS, facts["runs"]),
            Table.of(CORPORA, facts["corpora"]),
            Table([Column("setting"), Column("value", is_prose=True)], settings),
            Table([Column("library"), Column("version")], list(versions.items())),
        ],
        is_folded=True,
    )


def _mixed(runs: list[dict[str, Any]]) -> dict[str, str]:
    """Packages of which measures were computed with different versions: which measure with which."""
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for name, version in json.loads(run["libraries"] or "{}").items():
            found.setdefault(name, {}).setdefault(version, []).append(run["measure"])
    return {
        name: "; ".join(f"{version} ({', '.join(measures)})" for version, measures in versions.items())
        for name, versions in found.items()
        if len(versions) > 1
    }


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested settings with dotted names."""
    if isinstance(value, dict) and value:
        return [found for key, item in value.items() for found in _flat(item, f"{name}.{key}" if name else str(key))]
    text = "" if value in (None, {}, []) else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [(name, text)]
