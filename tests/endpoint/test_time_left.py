"""How long a slow function takes is said once for each plan, from the rate that was measured of it."""

from __future__ import annotations

import pytest

from embaudit.cli import waiting


def test_a_plan_is_said_once_from_its_own_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])
    told = waiting.time_left()
    # Of what came before, a hundred seconds passed: they are none of this plan's.
    now[0] = 100.0
    for done in range(1, 21):
        told("texts asked of a slow one", done, 20)
        now[0] += 10.0
    # Another plan has another rate.
    for done in range(1, 5):
        told("texts asked of a slow one", done, 4)
        now[0] += 60.0
    lines = capsys.readouterr().err.splitlines()
    left = [line for line in lines if "left" in line]
    assert len(left) == 2
    assert "2 of 20, about 3 min left" in left[0]
    assert "2 of 4, about 2 min left" in left[1]
    assert all("slow one: " in line for line in lines)
