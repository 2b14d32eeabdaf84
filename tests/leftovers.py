"""Whatever ends a test run, kill -9 included, ends the servers and commands that it started. A plugin of conftest.py.

A watchdog holds the reading end of a pipe whose other end closes with the test run. It then kills every process that
was started with this run's name in its environment, in whatever session it is and under whatever parent.

A Prefect server that a test started for this process ends with the test: the next one finds none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from uuid import uuid4

import pytest

NAME = "TEST_RUN_NAME"
WATCHDOG = f"""
import os, signal, sys
mark = b"{NAME}=" + sys.argv[1].encode()
sys.stdin.read()
while True:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{{pid}}/environ", "rb") as file:
                if int(pid) != os.getpid() and mark in file.read().split(b"\\0"):
                    found.append(int(pid))
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
    # What was about to start another process when it was looked at is found in the next round.
    if not found:
        break
"""


class Leftovers:
    def __init__(self) -> None:
        name = uuid4().hex
        # Every worker of xdist has a name and a watchdog of its own: what it starts ends with it.
        os.environ[NAME] = name
        self.watchdog = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", WATCHDOG, name], stdin=subprocess.PIPE, start_new_session=True
        )

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        temporary = sys.modules.get("embaudit_flows.server.temporary")
        if temporary is not None:
            while temporary._started:
                temporary._started.pop().stop()

    def pytest_unconfigure(self) -> None:
        assert self.watchdog.stdin is not None
        self.watchdog.stdin.close()
        self.watchdog.wait()


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform.startswith("linux"):
        config.pluginmanager.register(Leftovers())
