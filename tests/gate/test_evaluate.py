"""Comparing figures with rules: against a slow implementation of its own, and with figures that are not there."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from embaudit.cli.main import cli
from embaudit.warehouse.gate import GateFinding, Policy, load_policy
from embaudit.warehouse.gate.evaluate import evaluate
from embaudit.warehouse.gate.facts import AuditFacts, Cell
from embaudit.warehouse.gate.policy import FIGURES
from embaudit.words.errors import UsageError

CORPORA = ("msmarco", "wikipedia", "sts [dev]")
# Round figures: a decimal's error is then nothing beside their differences.
FIGURE = st.one_of(st.none(), st.integers(-40, 40).map(lambda whole: whole / 8))
BOUND = st.one_of(st.none(), st.integers(0, 16).map(lambda whole: whole / 8))


def facts(audit_id: str = "a1", **changes: Any) -> AuditFacts:
    given: dict[str, Any] = {
        "audit_id": audit_id,
        "source": "owner/model",
        "profile": "quick",
        "measures": frozenset({"sticky", "socm"}),
        "cells": (),
        "tokens": (("a", "strong"), ("b", "moderate"), ("c", "moderate"), ("d", "weak"), ("e", "negligible")),
        "capped": {},
        "bases": frozenset({"screened"}),
        "failed_warnings": (),
        "sample_corpora": (),
        "findings": (("sticky.worst_token", "look"), ("socm.cut_texts", "ok")),
    }
    return AuditFacts(**{**given, **changes})


def socm(**means: float | None) -> tuple[Cell, ...]:
    return tuple(Cell("socm_summary", corpus, "socm_mean", value) for corpus, value in means.items())


def judged(policy: dict[str, Any], audit: AuditFacts, baseline: AuditFacts | None = None) -> tuple[GateFinding, ...]:
    return evaluate(Policy.model_validate(policy), audit, baseline)


def rule(**more: Any) -> dict[str, Any]:
    return {"summary": "socm_summary", "measure": "socm_mean", **more}


def outcomes(findings: tuple[GateFinding, ...]) -> list[tuple[str, str, bool]]:
    return [(finding.item, finding.outcome, finding.trips) for finding in findings]


@given(value=st.integers(-40, 40), low=st.one_of(st.none(), st.integers(-9, 0)), high=st.integers(0, 9))
def test_a_limit_lets_through_what_lies_within_it_and_the_limit_itself(value: int, low: int | None, high: int) -> None:
    limits = {"max": high} | ({} if low is None else {"min": low})
    (found,) = judged({"limit": [rule(**limits)]}, facts(cells=socm(wikipedia=float(value))))
    inside = value in range(-1000 if low is None else low, high + 1)
    assert (found.outcome, found.trips) == (("passed", False) if inside else ("tripped", True))
    assert (found.value, found.lowest, found.highest) == (value, low, high)


def slowly(own: Any, before: Any, up: Any, down: Any, relative: bool) -> str:
    """The rule in exact fractions, one case after the other."""
    if own is None or before is None:
        return "missing"
    delta = Fraction(own) - Fraction(before)
    if delta == 0:
        return "passed"
    grows: Fraction | None = delta
    if relative:
        grows = delta / abs(Fraction(before)) if before else None
    if delta > 0:
        return "passed" if up is None or (grows is not None and grows <= Fraction(up)) else "tripped"
    return "passed" if down is None or (grows is not None and -grows <= Fraction(down)) else "tripped"


@given(
    own=st.dictionaries(st.sampled_from(CORPORA), FIGURE, min_size=1),
    before=st.dictionaries(st.sampled_from(CORPORA), FIGURE, min_size=1),
    up=BOUND,
    down=BOUND,
    relative=st.booleans(),
)
def test_a_change_is_what_a_slow_implementation_says(
    own: dict[str, Any], before: dict[str, Any], up: Any, down: Any, relative: bool
) -> None:
    if up is None and down is None:
        up = 0.0
    bounds = {name: bound for name, bound in (("max_increase", up), ("max_decrease", down)) if bound is not None}
    found = judged(
        {"change": [rule(relative=relative, **bounds)]}, facts(cells=socm(**own)), facts("a0", cells=socm(**before))
    )
    assert {finding.item for finding in found} == {*own, *before}
    for finding in found:
        values = own.get(finding.item), before.get(finding.item)
        assert finding.outcome == slowly(*values, up, down, relative), (finding, bounds)
        assert finding.trips == (finding.outcome != "passed")
        assert (finding.value, finding.baseline_value) == values
        assert finding.change is None or math.isfinite(finding.change)


def test_a_bound_in_decimals_is_allowed_itself() -> None:
    """0.52 - 0.5 is a little more than 0.02 in doubles, and 3 · 0.1 more than 0.3."""
    for before, own, bound in ((0.5, 0.52, 0.02), (0.3, 0.1 + 0.1 + 0.1, 0.0), (0.1, 0.3, 0.2)):
        change = rule(max_increase=bound)
        (found,) = judged({"change": [change]}, facts(cells=socm(w=own)), facts("a0", cells=socm(w=before)))
        assert found.outcome == "passed", (before, own, bound)
    (found,) = judged(
        {"change": [rule(max_increase=0.02)]}, facts(cells=socm(w=0.5200001)), facts("a0", cells=socm(w=0.5))
    )
    assert found.outcome == "tripped"


@given(
    missing=st.sampled_from(["trip", "warn"]),
    own=st.dictionaries(st.sampled_from(CORPORA), st.none(), max_size=3),
)
def test_a_gate_never_passes_because_a_figure_is_missing(missing: str, own: dict[str, None]) -> None:
    """No such figure, or only nulls: every rule has a finding, and none of them passed."""
    given = {"missing": missing}
    found = judged(
        {
            "limit": [rule(max=1000.0, **given)],
            "change": [rule(max_increase=1000.0, **given)],
            "severity": [{"at_least": "weak", "most": 1000, **given}],
        },
        facts(cells=socm(**own), tokens=None),
        facts("a0", cells=socm(**own)),
    )
    assert {finding.kind for finding in found} == {"limit", "change", "severity"}
    assert {finding.outcome for finding in found} == {"missing"}
    assert {finding.trips for finding in found} == {missing == "trip"}
    assert all(finding.observed for finding in found), "each says what is missing where"


def test_one_null_among_figures_is_not_passed_over() -> None:
    found = judged({"limit": [rule(max=1.0)]}, facts(cells=socm(msmarco=0.4, wikipedia=None)))
    assert outcomes(found) == [("msmarco", "passed", False), ("wikipedia", "missing", True)]


def test_a_figure_that_only_the_baseline_has_is_missing() -> None:
    found = judged(
        {"change": [rule(max_increase=1.0)]}, facts(cells=socm(a=0.4)), facts("a0", cells=socm(a=0.4, b=0.1))
    )
    assert outcomes(found) == [("a", "passed", False), ("b", "missing", True)]
    assert found[1].observed == "missing in this audit"


@pytest.mark.parametrize(("no_baseline", "trips"), [("trip", True), ("warn", False)])
def test_a_change_without_a_baseline_does_what_the_policy_says(no_baseline: str, trips: bool) -> None:
    policy = {"no_baseline": no_baseline, "change": [rule(max_increase=1.0)]}
    (found,) = judged(policy, facts(cells=socm(a=0.4)))
    assert (found.outcome, found.trips) == ("missing", trips)


def test_items_are_chosen_by_a_pattern_that_reads_brackets_as_they_are() -> None:
    """A corpus may be called what a pattern would read as a set of characters."""
    cells = socm(**{"sts [dev]": 9.0, "sts d": 9.0, "wikipedia": 0.1})
    assert outcomes(judged({"limit": [rule(max=1.0, item="w*a")]}, facts(cells=cells))) == [
        ("wikipedia", "passed", False)
    ]
    assert outcomes(judged({"limit": [rule(max=1.0, item="sts [dev]")]}, facts(cells=cells))) == [
        ("sts [dev]", "tripped", True)
    ]
    assert len(judged({"limit": [rule(max=1.0, item="sts ?")]}, facts(cells=cells))) == 1


@pytest.mark.parametrize(
    ("at_least", "count", "named"), [("strong", 1, "a"), ("moderate", 3, "a, b, c"), ("weak", 4, "a, b, c, d")]
)
def test_severities_include_what_is_worse_and_name_the_tokens(at_least: str, count: int, named: str) -> None:
    for most in (count - 1, count):
        (found,) = judged({"severity": [{"at_least": at_least, "most": most}]}, facts())
        assert (found.value, found.highest, found.observed) == (count, most, named)
        assert found.trips == (most < count)


def test_a_count_that_the_shortlist_caps_is_the_estimate() -> None:
    given = facts(capped={"moderate": 520.3})
    (found,) = judged({"severity": [{"at_least": "moderate", "most": 500}]}, given)
    assert (found.value, found.outcome) == (520.0, "tripped")
    assert found.observed == "a, b, c and 517 more"
    (strong,) = judged({"severity": [{"at_least": "strong", "most": 1}]}, given)
    assert (strong.value, strong.outcome) == (1.0, "passed")


def test_no_candidate_at_all_is_no_bad_token_where_the_measure_ran() -> None:
    (found,) = judged({"severity": [{"at_least": "strong", "most": 0}]}, facts(tokens=()))
    assert (found.outcome, found.value) == ("passed", 0.0)


@pytest.mark.parametrize(
    ("required", "changes", "trips"),
    [
        ({"measures": ["sticky", "socm"]}, {}, 0),
        ({"measures": ["sticky", "length", "layers"]}, {}, 2),
        ({"profiles": ["quick", "paper"]}, {}, 0),
        ({"profiles": ["standard", "paper"]}, {}, 1),
        ({"basis": "screened"}, {}, 0),
        ({"basis": "validated"}, {}, 1),
        ({"basis": "screened"}, {"bases": frozenset({"validated"})}, 0),
        ({"basis": "validated"}, {"bases": frozenset({"validated"})}, 0),
        ({"basis": "screened"}, {"bases": frozenset()}, 1),
        ({"real_corpora": True}, {}, 0),
        ({"real_corpora": True}, {"sample_corpora": ("sts",)}, 1),
        ({"most_failed_warnings": 0}, {}, 0),
        ({"no_finding": "problem"}, {}, 0),
        ({"no_finding": "problem"}, {"findings": (("length.long_pairs", "problem"),)}, 1),
        ({"no_finding": "look"}, {}, 1),
        ({"no_finding": "look"}, {"findings": (("length.long_pairs", "problem"),)}, 1),
        ({"no_finding": "look"}, {"findings": (("a.b", "ok"), ("c.d", "not measured"))}, 0),
        ({"no_finding": "problem"}, {"findings": ()}, 1),
        ({"most_failed_warnings": 1}, {"failed_warnings": ("a.b", "c")}, 1),
        ({"most_failed_warnings": 2}, {"failed_warnings": ("a.b", "c")}, 0),
    ],
)
def test_what_is_required_trips_where_it_is_not_so(required: dict[str, Any], changes: Any, trips: int) -> None:
    found = judged({"require": required}, facts(**changes))
    assert found
    assert sum(finding.trips for finding in found) == trips


def test_findings_read_well_whatever_they_are_of() -> None:
    found = judged(
        {
            "require": {"measures": ["socm", "length"], "profiles": ["paper"], "most_failed_warnings": 0},
            "severity": [{"at_least": "strong", "most": 0}],
            "limit": [rule(min=0.1, max=0.3), rule(name="half", max=0.5)],
            "change": [rule(max_increase=0.1), rule(name="share", max_increase=0.1, relative=True)],
        },
        facts(cells=socm(w=0.5, v=None), failed_warnings=("a.b",)),
        facts("a0", cells=socm(w=0.4)),
    )
    shown = [(one.rule, one.figure, one.shown_value, one.allowed, one.shown_baseline) for one in found]
    mean = "socm_summary.socm_mean"
    assert shown == [
        ("required measures", "measure_run, socm", "yes", "done", ""),
        ("required measures", "measure_run, length", "not measured in this audit", "done", ""),
        ("required profile", "audit, profile", "quick", "paper", ""),
        ("failed warnings", "expectation_result.failed, warning", "1 (a.b)", "≤ 0", ""),
        (f"limit on {mean}", f"{mean}, w", "0.5", "0.1 to 0.3", ""),
        (f"limit on {mean}", f"{mean}, v", "null in this audit", "", ""),
        ("half", f"{mean}, w", "0.5", "≤ 0.5", ""),
        ("half", f"{mean}, v", "null in this audit", "", ""),
        (f"change of {mean}", f"{mean}, w", "0.5 (+0.1)", "≤ 0.5", "0.4"),
        (f"change of {mean}", f"{mean}, v", "missing in this audit and in the baseline", "", ""),
        ("share", f"{mean}, w", "0.5 (+25.0%)", "≤ 0.44", "0.4"),
        ("share", f"{mean}, v", "missing in this audit and in the baseline", "", ""),
        ("tokens of severity strong or worse", "sticky_token.strong_or_worse, retention", "1 (a)", "≤ 0", ""),
    ]


@pytest.mark.parametrize(
    ("own", "before", "outcome"),
    [("float32", "float32", "tripped"), ("bfloat16", "bfloat16", "tripped"), ("bfloat16", "float32", "passed")],
)
def test_a_change_that_another_precision_explains_is_none(own: str, before: str, outcome: str) -> None:
    audits = [
        facts(name, cells=(Cell("socm_summary", "wikipedia", "socm_mean", value, dtype=dtype),))
        for name, value, dtype in (("a1", 0.525, own), ("a0", 0.5, before))
    ]
    (found,) = judged({"change": [rule(max_increase=0.02)]}, *audits)
    assert found.outcome == outcome
    if own != before:
        assert found.highest == pytest.approx(0.5 + 0.02 + 0.02 * 0.525)
        assert found.precision == "in bfloat16, the baseline in float32: 0.011 more is allowed for that"
    (far,) = judged({"change": [rule(max_increase=0.01)]}, *audits)
    assert far.outcome == "tripped"


def test_a_rule_on_figures_in_half_precision_says_so() -> None:
    audit = facts(
        cells=(Cell("socm_summary", "wikipedia", "socm_mean", 0.5, dtype="float16"), *socm(sts=0.4)),
        validated_in="bfloat16",
    )
    policy = {"limit": [rule(max=0.6)], "severity": [{"at_least": "strong", "most": 3}]}
    notes = [(one.item, one.precision) for one in judged(policy, audit)]
    assert notes == [("wikipedia", "in float16"), ("sts", None), ("retention", "in bfloat16")]


# ---- what a policy may say: every mistake is answered with the key that was probably meant, before an audit runs ----


LIMIT = '[[limit]]\nsummary = "socm_summary"\nmeasure = "socm_mean"\nmax = 0.6\n'
DOCUMENTED = (Path(__file__).parents[2] / "docs/gate.md").read_text(encoding="utf-8")


def written(folder: Path, text: str, name: str = "release.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policy_is_called_as_its_file_is_and_has_strict_defaults(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, LIMIT))
    assert (policy.name, policy.baseline, policy.no_baseline) == ("release", "previous", "trip")
    (limit,) = policy.limit
    assert (limit.title, limit.item, limit.missing) == ("limit on socm_summary.socm_mean", "*", "trip")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("no rule", "every audit would pass")),
        ('name = "x"\n[require]\n', ("no rule",)),
        ("limits = 3\n" + LIMIT, ("unknown key limits", "did you mean limit?")),
        (LIMIT + "maxx = 1\n", ("unknown key limit 1, maxx", "did you mean max?")),
        (LIMIT.replace("max = 0.6", ""), ("limit 1", "needs max or min")),
        (LIMIT + "min = 0.7\n", ("limit 1", "nothing would pass")),
        (LIMIT.replace("0.6", '"0.6"'), ("limit 1, max", "valid number")),
        (LIMIT.replace("0.6", "true"), ("limit 1, max", "valid number")),
        (LIMIT.replace("0.6", "nan"), ("limit 1, max", "finite")),
        (LIMIT.replace("0.6", "inf"), ("limit 1, max", "finite")),
        (LIMIT.replace("socm_summary", "socm_sumary"), ("socm_sumary", "did you mean socm_summary?")),
        (LIMIT.replace("socm_mean", "socm_men"), ("socm_men", "did you mean socm_mean?")),
        (LIMIT.replace("socm_mean", "worst_loss"), ("worst_loss", "figure of sticky_token")),
        (LIMIT.replace('measure = "socm_mean"\n', ""), ("limit 1, measure is missing",)),
        (LIMIT + LIMIT, ("two rules are named", "rename one of them")),
        ('[require]\nmeasures = ["socmm"]\n', ("require, measures 1", "no measure is called 'socmm'", "socm, layers")),
        ('[require]\nprofile = ["paper"]\n', ("unknown key require, profile", "did you mean profiles?")),
        ('[[severity]]\nat_least = "awful"\nmost = 0\n', ("severity 1, at_least", "'strong'")),
        ('[[severity]]\nat_least = "strong"\nmost = -1\n', ("severity 1, most", "greater than or equal to 0")),
        (LIMIT.replace("limit", "change").replace("max", "max_increase").replace("0.6", "-1"), ("max_increase",)),
        (LIMIT.replace("limit", "change").replace("max = 0.6", ""), ("needs max_increase or max_decrease",)),
        (LIMIT + 'missing = "pass"\n', ("limit 1, missing", "'trip' or 'warn'")),
        ("limit = [", ("not TOML",)),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        load_policy(written(tmp_path, text))
    for word in words:
        assert word in caught.value.happened


def test_a_file_that_is_not_there_or_no_text_is_one_paragraph(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no policy"):
        load_policy(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_policy(tmp_path)
    broken = tmp_path / "broken.toml"
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not TOML"):
        load_policy(broken)


def test_the_hash_is_of_what_it_says_and_not_of_its_layout(tmp_path: Path) -> None:
    plain = load_policy(written(tmp_path, LIMIT))
    commented = load_policy(written(tmp_path, "# why\n\n" + LIMIT.replace("0.6", "0.60"), "release.toml"))
    other = load_policy(written(tmp_path, LIMIT.replace("0.6", "0.61")))
    assert plain.hash == commented.hash
    assert plain.hash != other.hash
    assert re.fullmatch("[0-9a-f]{16}", plain.hash)


@given(st.sampled_from([(summary, measure) for summary, measures in FIGURES.items() for measure in measures]))
def test_every_figure_that_there_is_can_be_limited(figure: tuple[str, str]) -> None:
    summary, measure = figure
    policy = Policy.model_validate({"limit": [{"summary": summary, "measure": measure, "max": 1}]})
    assert policy.limit[0].max == 1


def test_the_documented_policy_loads_and_has_every_kind_of_rule(tmp_path: Path) -> None:
    text, golden, answers = re.findall(r"```toml\n(.*?)```", DOCUMENTED, flags=re.DOTALL)
    assert load_policy(written(tmp_path, golden)).limit
    assert load_policy(written(tmp_path, answers)).is_of_answers
    policy = load_policy(written(tmp_path, text))
    assert policy.limit
    assert policy.change
    assert policy.severity
    assert not policy.require.is_empty
    assert all(rule.reason for rule in policy.rules), "the example says why each rule is there"


def test_an_audit_takes_no_policy_of_answers(tmp_path: Path) -> None:
    policy = written(tmp_path, '[[limit]]\nsummary = "search"\nmeasure = "recall_at_10"\nmin = 0.9\n')
    assert load_policy(policy).is_of_answers
    result = CliRunner().invoke(cli, ["audit", "packaged:all-MiniLM-L6-v2", "--policy", str(policy)])
    assert isinstance(result.exception, UsageError)
    assert "is about answers, and an audit has none" in result.exception.happened


@pytest.mark.parametrize("model", ["Policy", "Requirements", "Limit", "Change", "Severity", "PolicyRule", "FigureRule"])
def test_every_key_is_in_the_docs(model: str) -> None:
    from embaudit.warehouse.gate import policy

    for key in getattr(policy, model).model_fields:
        assert f"`{key}`" in DOCUMENTED, key
