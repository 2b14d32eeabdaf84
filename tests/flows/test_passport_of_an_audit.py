"""An audit leaves its checkpoint's passport beside its page, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_audits import AskedAgain, Audited

from embaudit.api.ask import verify
from embaudit.questions.audit import AuditRequest
from embaudit_flows.audit import audit

pytestmark = pytest.mark.slow


def test_the_passport_lies_beside_the_page_and_the_checkpoint_passes(audited: Audited, tiny_checkpoint: Path) -> None:
    path = audited.home / "reports" / f"{audited.outcome.checkpoint_id}.passport.json"
    assert audited.outcome.passport == str(path)
    assert Path(audited.outcome.report or "").parent == path.parent
    report = verify(path, tiny_checkpoint, device="cpu")
    assert report.line == "The same function."
    assert report.checkpoint_id == audited.outcome.checkpoint_id


def test_it_is_made_once(asked_again: AskedAgain) -> None:
    (path,) = (asked_again.home / "reports").glob("*.passport.json")
    assert path.stat().st_mtime_ns == asked_again.written[path].st_mtime_ns
    assert path.name in asked_again.said.stdout.replace("\n", "")


@pytest.mark.slow
def test_it_is_kept_if_somebody_edits_it(audited: Audited, audited_home: Path) -> None:
    (path,) = (audited_home / "reports").glob("*.passport.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["tolerances"]["same"] = 0.5
    path.write_text(json.dumps(content))
    warned = audit(AuditRequest(**audited.question))
    assert warned.passport is None
    (said,) = [warning for warning in warned.warnings if "passport" in warning]
    assert "was changed after it was made" in said
    assert "Make it later: embaudit passport" in said
    assert json.loads(path.read_text(encoding="utf-8")) == content
