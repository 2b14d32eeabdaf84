"""Every state that a verification can end in is told in every form, and what is said is true in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from told_in_full import assert_told, faults_of_page

from embaudit.checkpoint import Checkpoint
from embaudit.comparisons.passport.passport import Passport
from embaudit.comparisons.passport.verify import verify_with
from embaudit.functions.checkpoint import CheckpointFunction

CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "itself": lambda rows: rows,
    "longer": lambda rows: 3 * rows,
    "cut": lambda rows: rows[:, :16],
    "one dimension": lambda rows: rows[:, :1],
    "wider": lambda rows: np.pad(rows, ((0, 0), (0, 3))),
    "turned": lambda rows: rows[:, ::-1].copy(),
    "zeros": lambda rows: 0 * rows,
    "NaN": lambda rows: rows * np.nan,
    "half precision": lambda rows: rows.astype(np.float16).astype(np.float32),
}


class Changed(CheckpointFunction):
    """The checkpoint behind something that changes its vectors; an endpoint may, and may know no roles."""

    def __init__(self, checkpoint: Checkpoint, change: Callable[[np.ndarray], np.ndarray], **facts: Any) -> None:
        super().__init__(checkpoint)
        self.change = change
        for name, value in facts.items():
            setattr(self, name, value)

    def encode(self, *given: Any, **more: Any) -> Any:
        found = super().encode(*given, **more)
        return replace(found, vectors=self.change(found.vectors))


@pytest.mark.parametrize("facts", [{}, {"takes_roles": False}, {"may_depend_on_asking": True}], ids=str)
@pytest.mark.parametrize("name", CHANGES)
def test_a_verification_is_told(name: str, facts: dict[str, Any], passed: Checkpoint, tiny_passport: Passport) -> None:
    report = verify_with(tiny_passport, Changed(passed, CHANGES[name], **facts))
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
