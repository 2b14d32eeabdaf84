"""The GPU's concurrency limit: strict where it is asked for, out of the way elsewhere."""

from __future__ import annotations

import os
import signal
import threading
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from commands import run_here
from told_in_full import wrong_in

from embaudit.cli import doctor
from embaudit.cli.doctor import LIBRARIES, Checked
from embaudit.words.errors import ServerError


def test_without_the_setting_or_on_a_cpu_no_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from embaudit_flows.server.set_up import gpu_slot

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.delenv("EMBAUDIT_GPU_LIMIT", raising=False)
    with gpu_slot("cuda:0"):
        pass
    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "embaudit-gpu")
    with gpu_slot("cpu"):
        pass


def test_a_limit_that_the_server_lacks_is_an_error(prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from embaudit_flows.server.set_up import gpu_slot

    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "no-such-limit")
    with pytest.raises(ServerError, match="no concurrency limit 'no-such-limit'") as caught, gpu_slot("cuda"):
        raise AssertionError("it went on without the limit")
    assert "setup-server" in caught.value.next_step


def test_one_holds_the_slot_and_the_next_waits(prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.client.orchestration import PrefectClient

    from embaudit_flows.server.set_up import gpu_slot, set_up_server

    lines = set_up_server(1)
    assert set_up_server(1) == lines
    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "embaudit-gpu")
    first_is_in, second_has_asked = threading.Event(), threading.Event()
    seen: list[str] = []
    ask = PrefectClient.increment_concurrency_slots_with_lease

    async def asking(*arguments: Any, **named: Any) -> Any:
        try:
            return await ask(*arguments, **named)
        finally:
            # Its answer has come: the first one's slot, or that there is none.
            if first_is_in.is_set():
                second_has_asked.set()

    monkeypatch.setattr(PrefectClient, "increment_concurrency_slots_with_lease", asking)

    def measure(name: str, inside: threading.Event, until: threading.Event) -> None:
        with gpu_slot("cuda:0"):
            seen.append(f"{name} in")
            inside.set()
            assert until.wait(120)
            seen.append(f"{name} out")

    done = threading.Event()
    done.set()
    first = threading.Thread(target=measure, args=["first", first_is_in, second_has_asked])
    first.start()
    assert first_is_in.wait(120)
    second = threading.Thread(target=measure, args=["second", threading.Event(), done])
    second.start()
    for thread in (first, second):
        thread.join(180)
    assert seen == ["first in", "first out", "second in", "second out"]


def test_an_error_inside_gives_the_slot_back(prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from embaudit_flows.server.set_up import gpu_slot, set_up_server

    set_up_server(1)
    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "embaudit-gpu")
    with pytest.raises(ZeroDivisionError), gpu_slot("cuda"):
        1 / 0  # noqa: B018
    with gpu_slot("cuda"):
        pass


def test_setting_up_twice_leaves_one_of_each(prefect_api: str) -> None:
    from prefect.client.orchestration import get_client

    from embaudit_flows.server.set_up import WORK_POOL, ZOMBIES, set_up_server

    set_up_server(1)
    assert "2 measures" in "".join(set_up_server(2))
    with get_client(sync_client=True) as client:
        assert client.read_global_concurrency_limit_by_name("embaudit-gpu").limit == 2
        assert len(client.read_automations_by_name(ZOMBIES)) == 1
        assert client.read_work_pool(WORK_POOL).type == "process"


# ---- ``embaudit worker`` before it becomes Prefect's worker ----


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


# ---- what doctor says ----


@pytest.mark.parametrize("missing", LIBRARIES)
def test_a_library_that_is_missing_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.version

    def version(name: str) -> str:
        if name == missing:
            raise PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor, "version", version)
    found = doctor._versions()
    assert not found.is_good
    assert f"{missing} is missing" in found.found
    assert found.advice


def test_a_library_that_is_too_old_is_named_with_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.version
    monkeypatch.setattr(doctor, "version", lambda name: "0.0.1" if name == "numpy" else real(name))
    assert "numpy 0.0.1 is not" in doctor._versions().found


def test_no_state_of_the_disk_or_the_warehouse_is_told_in_broken_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    told: list[Checked] = [doctor._disk(tmp_path / "none" / "yet"), doctor._warehouse(tmp_path / "none.duckdb")]
    told += doctor._server()
    monkeypatch.setattr(doctor, "MIN_FREE_BYTES", 10**30)
    told.append(doctor._disk(tmp_path))
    for one in told:
        assert one.found
        assert not wrong_in(one.found)
        assert not wrong_in(one.advice)
        assert one.is_good or one.advice
