"""Endpoints on a watch list: asked every time, recorded, and said where they serve something else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import run_here

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.warehouse.query import run_query
from embaudit_flows.watch import watch
from embaudit_flows.watch_record import OTHERWISE_STATE


@pytest.mark.slow
def test_a_hosted_model_is_held_against_its_own_first_passport(
    tmp_path: Path, home: Path, put: Callable[[Path, int], Path]
) -> None:
    served = Served(faithful(load_checkpoint(str(put(tmp_path / "model", 0)), LoadOptions(device="cpu"))))
    watch_list = tmp_path / "watch.toml"
    with serving(served) as address:
        watch_list.write_text(f'[[endpoint]]\naddress = "{address}"\n')
        first = watch(str(watch_list))
        assert first.summary == "1 seen for the first time"
        assert watch(str(watch_list)).summary == "1 served as audited"
        # Another model behind the same name: it is red that night, and every night after it.
        served.encode = faithful(load_checkpoint(str(put(tmp_path / "other", 1)), LoadOptions(device="cpu")))
        for _ in range(2):
            state = watch(str(watch_list), return_state=True)
            assert state.name == OTHERWISE_STATE
            assert state.result().summary == f"not served as audited: {address}"
        (passport,) = (home / "reports" / "endpoints").iterdir()
        passport.unlink()
        assert watch(str(watch_list)).summary == "1 seen for the first time"
    verdicts = run_query(home / "warehouse.duckdb", "SELECT verdict FROM served ORDER BY asked").rows
    assert [verdict for (verdict,) in verdicts] == [
        *("first seen", "the same function", "another function", "another function", "first seen")
    ]


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
        assert right.summary == "1 served as audited"
        assert (right.served[0].verdict, right.served[0].kinds_apart) == ("the same function", 0)
        # The same server, wrongly configured overnight.
        served.encode = faithful(replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=("cls",))))
        state = watch(str(watch_list), return_state=True)
        assert state.name == OTHERWISE_STATE
        wrong = state.result()
        assert wrong.summary == f"not served as audited: {address}"
        assert "takes cls instead of mean pooling" in wrong.served[0].line
    gone = watch(str(watch_list))
    assert gone.summary == f"not compared: {address}"
    assert "Nothing answers at" in gone.served[0].line
    (row,) = run_query(home / "warehouse.duckdb", "served").rows
    assert row[:2] == (address, "could not be compared")
    with_rows = run_query(home / "warehouse.duckdb", "SELECT verdict, differs FROM served ORDER BY asked").rows
    assert [verdict for verdict, _ in with_rows] == ["the same function", "another function", "could not be compared"]
    assert "takes cls" in with_rows[1][1]
    seen = run_here(("watch", str(watch_list), "--dry-run"), os.environ, tmp_path)
    assert f"ask whether it serves {folder}" in seen.stdout
