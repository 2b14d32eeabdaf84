"""Every state that a verification can end in is told in every form, and what is said is true in it."""

from __future__ import annotations

from typing import Any

import pytest
from changed_vectors import CHANGES, Changed
from told_in_full import assert_told, faults_of_page

from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.passport.passport import Passport
from embaudit.questions.passport.verify import verify_with


@pytest.mark.parametrize("facts", [{}, {"takes_roles": False}, {"may_depend_on_asking": True}], ids=str)
@pytest.mark.parametrize("name", CHANGES)
def test_a_verification_is_told(name: str, facts: dict[str, Any], passed: Checkpoint, tiny_passport: Passport) -> None:
    report = verify_with(tiny_passport, Changed(passed, name, **facts))
    assert_told(report)
    assert (report.level == "ok") == (name in ("itself", "half precision"))


def test_a_passport_of_which_little_is_known_is_told(passed: Checkpoint, tiny_passport: Passport) -> None:
    """As of an endpoint: no weights, no pooling, no limit, no modules."""
    bare = tiny_passport.model_copy(
        update={
            "checkpoint": tiny_passport.checkpoint.model_copy(update={"weights_sha256": None}),
            "reading": tiny_passport.reading.model_copy(update={"pooling": None, "modules": (), "max_length": None}),
        }
    )
    report = verify_with(bare, CheckpointFunction(passed))
    assert not list(faults_of_page(report.page()))
