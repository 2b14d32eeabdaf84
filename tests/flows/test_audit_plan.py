"""What a request becomes: ids and keys that hold everything that a result depends on, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_hub import COMMIT, ModelHub

from embaudit.errors import UsageError
from embaudit.profile import load_profile
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


@pytest.mark.parametrize(("changed", "is_same"), [("geometry", True), ("socm", False)])
def test_settings_of_a_measure_that_is_left_out_ask_nothing(
    home: Path, tiny_checkpoint: Path, tmp_path: Path, changed: str, is_same: bool
) -> None:
    """Such as those of a measure that came with a later embaudit."""
    ids, keys = set(), set()
    for texts in (20, 30):
        profile = tmp_path / f"{texts}.toml"
        profile.write_text(f'name = "own"\nversion = 1\ndescription = "{texts}"\n[{changed}]\ntexts = {texts}\n')
        request = AuditRequest(checkpoint=str(tiny_checkpoint), profile=str(profile), measures=["socm"], device="cpu")
        ids.add(plan_audit(request).audit_id({}))
        settings = load_profile(str(profile)).asked_of(request.chosen_measures)
        keys.add(request.key)
        assert set(settings) == {"name", "version", "socm"}
    assert (len(ids) == 1) is (len(keys) == 1) is is_same


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
