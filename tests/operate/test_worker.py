"""``embaudit worker`` before it becomes Prefect's worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from commands import run_here


def test_a_worker_that_a_script_starts_in_the_background_takes_sigint_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What Prefect's worker makes of SIGTERM is SIGINT; tests/faults/test_server.py sends one to a real worker."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    executed = []
    monkeypatch.setattr(
        os, "execv", lambda program, words: executed.append((words[3:5], signal.getsignal(signal.SIGINT)))
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
            ended = run_here(("worker",), {**os.environ, "EMBAUDIT_HOME": "here"}, tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.returncode == 0, ended.stderr
    assert f"results go to {tmp_path / 'here'}" in ended.stdout
    assert executed == [(["worker", "start"], signal.SIG_DFL)]
