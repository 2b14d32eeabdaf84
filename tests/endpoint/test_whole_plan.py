"""What a check asks of a slow address is one plan, whose time is told from how long the answers took."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.serving.server import Served, serving
from embaudit.cli import waiting as waits
from embaudit.embedders import kept
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.embedders.kept import RequestPlan, VectorCache
from embaudit.measures.quality.material import sample_material
from embaudit.questions.check.served import check_served

# (seconds for a request, and for a character)
SERVERS = {"a request": (2.0, 0.0), "a character": (0.0, 0.01), "both": (0.5, 0.004)}


@pytest.mark.parametrize("name", SERVERS)
def test_what_is_left_is_told_from_the_answers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for_each, for_a_character = SERVERS[name]
    rng = np.random.default_rng(0)
    short, long = rng.integers(1, 80, 34), rng.integers(200, 8_000, 60)
    now = [100.0]
    begun = now[0]
    monkeypatch.setattr(kept.time, "monotonic", lambda: now[0])
    plan = RequestPlan(len(short) + len(long), int(short.sum() + long.sum()), begun)
    assert plan.left is None
    told = []
    for characters in (*short, *long):
        now[0] += (for_each + for_a_character * characters) * rng.uniform(0.9, 1.1)
        plan.answered(int(characters))
        told.append((now[0] - begun, plan.left))
    whole = now[0] - begun
    for passed, left in told[20:]:
        assert left is not None
        assert whole / 1.5 <= passed + left <= 1.5 * whole
    assert told[-1][1] == pytest.approx(0.0, abs=1e-6)


def vectors(texts: list[str]) -> np.ndarray:
    """Of the bytes of the first sixty characters."""
    return np.array([np.bincount(list(text[:60].encode()), minlength=256) + 0.01 for text in texts], dtype=float)


def test_a_check_has_one_plan_that_is_about_what_it_asks(tmp_path: Path) -> None:
    lines: list[tuple[str, int, int, float | None]] = []

    def told(what: str, done: int, total: int, left: float | None = None) -> None:
        lines.append((what, done, total, left))

    served = Served(vectors)
    with serving(served) as address, open_endpoint(address) as endpoint:
        cache = VectorCache(endpoint, tmp_path, told=told)
        check_served(cache, sample_material().part(0.3))
        assert cache.told is told
        assert endpoint.answered is None
    assert {what for what, *_ in lines} == {f"requests to {endpoint.name}"}
    # From the first few, no time is told.
    assert [done for _, done, _, _ in lines] == list(range(kept.FEWEST, len(served.requests) + 1))
    assert len(served.requests) / 1.5 <= lines[0][2] <= 1.5 * len(served.requests)
    assert all(left is not None for _, _, _, left in lines)


def test_how_long_is_said_once_and_again_if_it_was_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(waits.time, "monotonic", lambda: now[0])
    told = waits.time_left()
    for done in range(1, 31):
        now[0] += 10.0
        told("requests to a slow one", done, 60, 10.0 * (60 - done) * (1 if done < 20 else 3))
    left = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert [line.split(",")[0] for line in left] == [
        "Requests to a slow one: 1 of about 60",
        "Requests to a slow one: 20 of about 60",
    ]
    assert "about 10 min left" in left[0]
    assert "about 20 min left" in left[1]
