"""Situations of embedders, each with its healthy twin: named word for word, or passed without a word."""

from __future__ import annotations

import pytest
from some_rows import mostly_slow

from benchmarks.situations.command import SITUATIONS, outcome_of, totals

BY_NAME = {f"{one.command}: {one.name}": one for one in SITUATIONS}
# One of each part that takes a second or two.
QUICK = (
    "verify: prompts under names that nothing picks",
    "parity: base64 read as a list of bytes",
    "parity: padding to the longest so far without a mask",
)


def test_each_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(SITUATIONS) >= 27


@pytest.mark.parametrize("name", mostly_slow(BY_NAME, QUICK))
def test_a_situation_is_named_and_its_twin_is_right(name: str) -> None:
    outcome = outcome_of(BY_NAME[name])
    assert outcome.judged == "named", outcome.report.line
    assert not outcome.is_false_alarm, outcome.twin.line
    assert [line.found for line in totals([outcome])] == ["1 of 1", "0 of 1", "0 of 1", "0 of 1"]
