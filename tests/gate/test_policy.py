"""What a policy may say: every mistake is answered with the key that was probably meant, before an audit runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from embaudit.cli.main import cli
from embaudit.warehouse.gate import Policy, load_policy
from embaudit.warehouse.gate.policy import FIGURES
from embaudit.words.errors import UsageError

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
