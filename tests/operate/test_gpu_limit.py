"""The GPU's concurrency limit: strict where it is asked for, out of the way elsewhere."""

from __future__ import annotations

import threading
import time

import pytest

from embaudit.errors import ServerError


def test_without_the_setting_or_on_a_cpu_no_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from embaudit_flows.gpu import gpu_slot

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.delenv("EMBAUDIT_GPU_LIMIT", raising=False)
    with gpu_slot("cuda:0"):
        pass
    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "embaudit-gpu")
    with gpu_slot("cpu"):
        pass


def test_a_limit_that_the_server_lacks_is_an_error(prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from embaudit_flows.gpu import gpu_slot

    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "no-such-limit")
    with pytest.raises(ServerError, match="no concurrency limit 'no-such-limit'") as caught, gpu_slot("cuda"):
        raise AssertionError("it went on without the limit")
    assert "setup-server" in caught.value.next_step


def test_one_holds_the_slot_and_the_next_waits(prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from embaudit_flows.gpu import gpu_slot
    from embaudit_flows.server import set_up_server

    lines = set_up_server(1)
    assert set_up_server(1) == lines
    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "embaudit-gpu")
    spans: dict[str, tuple[float, float]] = {}

    def measure(name: str) -> None:
        with gpu_slot("cuda:0"):
            began = time.monotonic()
            time.sleep(0.3)
            spans[name] = began, time.monotonic()

    threads = [threading.Thread(target=measure, args=[name]) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (_, first_ended), (second_began, _) = sorted(spans.values())
    assert first_ended <= second_began


def test_an_error_inside_gives_the_slot_back(prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from embaudit_flows.gpu import gpu_slot
    from embaudit_flows.server import set_up_server

    set_up_server(1)
    monkeypatch.setenv("EMBAUDIT_GPU_LIMIT", "embaudit-gpu")
    with pytest.raises(ZeroDivisionError), gpu_slot("cuda"):
        1 / 0  # noqa: B018
    with gpu_slot("cuda"):
        pass


def test_setting_up_twice_leaves_one_of_each(prefect_api: str) -> None:
    from prefect.client.orchestration import get_client

    from embaudit_flows.server import WORK_POOL, ZOMBIES, set_up_server

    set_up_server(1)
    assert "2 measures" in "".join(set_up_server(2))
    with get_client(sync_client=True) as client:
        assert client.read_global_concurrency_limit_by_name("embaudit-gpu").limit == 2
        assert len(client.read_automations_by_name(ZOMBIES)) == 1
        assert client.read_work_pool(WORK_POOL).type == "process"
