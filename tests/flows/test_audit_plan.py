"""What a request becomes: ids and keys that hold everything that a result depends on, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_hub import COMMIT, ModelHub

from embaudit.errors import UsageError
from embaudit.request import AuditRequest
from embaudit.warehouse.stage import read_rows
from embaudit_flows.audit import checkpoint_row
from embaudit_flows.plan import AuditPlan, plan_audit


@pytest.fixture
def plan(home: Path, tiny_checkpoint: Path, tiny_profile: Path) -> AuditPlan:
    return plan_audit(AuditRequest(checkpoint=str(tiny_checkpoint), profile=str(tiny_profile), device="cpu"))


def in_bfloat16(plan: AuditPlan, *, is_given: bool) -> AuditPlan:
    """A scan in bfloat16: because a GPU computes so, or because the user asked for it everywhere."""
    spec = plan.spec.model_copy(update={"dtype": "bfloat16"})
    return plan.model_copy(update={"spec": spec, "is_dtype_given": is_given})


def test_a_precision_that_was_asked_for_is_another_audit(plan: AuditPlan) -> None:
    by_itself, given = in_bfloat16(plan, is_given=False), in_bfloat16(plan, is_given=True)
    assert by_itself.in_float32().spec.dtype == "float32"
    assert given.in_float32().spec.dtype == "bfloat16"
    assert by_itself.audit_id({}) != given.audit_id({})
    # On a CPU both are float32 throughout: one question, one audit.
    assert plan.audit_id({}) == plan.model_copy(update={"is_dtype_given": True}).audit_id({})


def test_another_commit_of_the_same_content_is_another_row(hub: ModelHub, tiny_checkpoint: Path, home: Path) -> None:
    hub.repositories["team/tiny"] = tiny_checkpoint
    ids, revisions = set(), []
    for commit in (COMMIT, "f" * 40):
        hub.commits["team/tiny"] = commit
        plan = plan_audit(AuditRequest(checkpoint="team/tiny", device="cpu"))
        (row,) = read_rows([checkpoint_row(plan).path])
        ids.add(row["checkpoint_id"])
        revisions.append(row["revision"])
    assert len(ids) == 1
    assert revisions == [COMMIT, "f" * 40]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"measures": ["stick"]}, "no measure is called 'stick'"),
        ({"pairs": {"training": "pairs.csv"}}, "Pairs are for scoring or validation, not for 'training'"),
        ({"limit_tokens": 0}, "limit_tokens: .* greater than or equal to 1, not 0"),
        ({"dtype": "int8"}, "dtype: .*'int8'"),
        ({"colour": "red"}, "no key colour"),
        ({"corpora": {"sts": "https://me:secret@example.com/a.csv"}}, "password"),
    ],
)
def test_what_does_not_fit_is_named(asked: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        AuditRequest.of(checkpoint="packaged:all-MiniLM-L6-v2", **asked)
    assert "secret" not in str(refused.value)
