"""What a request becomes: ids and keys that hold everything that a result depends on, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_hub import COMMIT, ModelHub

from embaudit.errors import UsageError
from embaudit.request import AuditRequest
from embaudit.warehouse.stage import read_rows
from embaudit_flows.audit import checkpoint_row
from embaudit_flows.plan import plan_audit


def test_a_precision_that_was_asked_for_is_another_audit(home: Path, tiny_checkpoint: Path) -> None:
    by_itself, float32, bfloat16 = (
        plan_audit(AuditRequest(checkpoint=str(tiny_checkpoint), device="cpu", dtype=dtype)).audit_id({})
        for dtype in ("auto", "float32", "bfloat16")
    )
    assert by_itself == float32 != bfloat16


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
