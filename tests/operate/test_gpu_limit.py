"""The GPU's concurrency limit: strict where it is asked for, out of the way elsewhere."""

from __future__ import annotations

import threading
from typing import Any

import pytest

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
