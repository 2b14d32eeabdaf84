"""Endpoints on a watch list: asked every time, recorded, and said where they serve something else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run_here

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.warehouse.query import run_query
from embaudit.watch.happening import NightProblem
from embaudit_flows.watch import watch


def red_of(state: Any) -> NightProblem:
    """What a run ended with."""
    found = state.result(raise_on_failure=False)
    assert isinstance(found, NightProblem), found
    return found


@pytest.mark.slow
def test_a_hosted_model_is_held_against_its_own_first_passport(
    tmp_path: Path, home: Path, put: Callable[[Path, int], Path]
) -> None:
    served = Served(faithful(load_checkpoint(str(put(tmp_path / "model", 0)), LoadOptions(device="cpu"))))
    watch_list = tmp_path / "watch.toml"
    with serving(served) as address:
        watch_list.write_text(f'[[endpoint]]\naddress = "{address}"\n')
        first = watch(str(watch_list))
        assert first.summary == "1 question answered well"
        assert watch(str(watch_list)).summary == "1 question answered well"
        # Another model behind the same name: it is red that night, and every night after it.
        served.encode = faithful(load_checkpoint(str(put(tmp_path / "other", 1)), LoadOptions(device="cpu")))
        for _ in range(2):
            state = watch(str(watch_list), return_state=True)
            assert (state.name, state.type.value) == ("Not served as audited", "FAILED")
            assert red_of(state).outcome.summary == f"1 problem: Not served as audited: {address}"
        (passport,) = (home / "reports" / "endpoints").iterdir()
        passport.unlink()
        assert watch(str(watch_list)).summary == "1 question answered well"
    verdicts = run_query(home / "warehouse.duckdb", "SELECT verdict FROM endpoint_history ORDER BY asked").rows
    assert [verdict for (verdict,) in verdicts] == [*("the same function", "another function", "another function")]


def test_what_is_served_is_asked_every_time(
    tmp_path: Path, home: Path, put: Callable[[Path, int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = put(tmp_path / "model", 0)
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    served = Served(faithful(checkpoint))
    watch_list = tmp_path / "watch.toml"
    with serving(served) as address:
        entry = f'[[endpoint]]\naddress = "{address}"\ncheckpoint = "model"\n'
        watch_list.write_text('[settings]\ndevice = "cpu"\n' + entry)
        right = watch(str(watch_list))
        assert right.summary == "1 question answered well"
        assert [one.verdict for one in right.answers] == ["the same function"]
        # The same server, wrongly configured overnight.
        served.encode = faithful(replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=("cls",))))
        night = red_of(watch(str(watch_list), return_state=True))
        wrong = night.outcome
        assert (night.state, night.exit_code) == ("Not served as audited", 1)
        assert wrong.summary == f"1 problem: Not served as audited: {address}"
        assert "takes cls instead of mean pooling" in wrong.answers[0].line
        # Somebody accepts it, and it stays accepted as long as it is the same; nothing else is.
        assert [(row[2], row[4]) for row in run_query(home / "warehouse.duckdb", "open-items").rows] == [
            ("answer", "parity: another function")
        ]
        accepted = run_here(
            ("accept", address, "--reason", "known", "--by", "me"), {**os.environ, "EMBAUDIT_HOME": str(home)}, tmp_path
        )
        assert "parity: another function" in accepted.stdout, accepted.stderr
        assert watch(str(watch_list)).summary == "1 question answered as accepted"
        served.encode = faithful(replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=("max",))))
        assert red_of(watch(str(watch_list), return_state=True)).state == "Not served as audited"
    silent = red_of(watch(str(watch_list), return_state=True))
    gone = silent.outcome
    assert (silent.state, silent.exit_code) == ("Endpoint silent", 2)
    assert gone.summary == f"1 problem: Endpoint silent: {address}"
    assert "Nothing answers at" in gone.answers[0].line
    history = run_query(
        home / "warehouse.duckdb", "SELECT endpoint, verdict, line FROM endpoint_history ORDER BY asked"
    )
    assert [row[:2] for row in history.rows] == [
        (address, verdict) for verdict in ("the same function", *["another function"] * 3)
    ]
    assert "takes cls" in history.rows[1][2]
    seen = run_here(("watch", str(watch_list), "--dry-run"), os.environ, tmp_path)
    assert "ask parity" in seen.stdout
    assert str(folder) in seen.stdout
