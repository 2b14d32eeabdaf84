"""Ports for servers of tests, and starting one on a port that another program may have taken in between."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Below those that Linux gives to outgoing connections, so that none of them takes one that was free a moment ago.
PORTS = range(20_000, 32_000)
PATIENCE = 180


def free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def start_server(
    start: Callable[[int], subprocess.Popen[bytes]], answers: Callable[[int], bool]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server, in a session of its own, and wait until it answers; one that ends at once gets another port."""
    for _ in range(3):
        port = free_port()
        server = start(port)
        deadline = time.monotonic() + PATIENCE
        while server.poll() is None:
            if answers(port):
                return server, port
            if time.monotonic() > deadline:
                stop_server(server)
                raise AssertionError(f"the server on port {port} did not answer in {PATIENCE} s: {server.args}")
            time.sleep(0.1)
    raise AssertionError(f"the server ended at once, on three ports: {server.args}")


@contextmanager
def running_server(command: Sequence[str], path: str, log: Path, **options: Any) -> Iterator[str]:
    """The address of a server, once it answers at a path; PORT in its command is a free one."""

    def start(port: int) -> subprocess.Popen[bytes]:
        arguments = [str(port) if word == "PORT" else word for word in command]
        with log.open("a") as output:
            return subprocess.Popen(arguments, stdout=output, stderr=output, start_new_session=True, **options)

    def answers(port: int) -> bool:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2)
            return True
        return False

    server, port = start_server(start, answers)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop_server(server)


def stop_server(server: subprocess.Popen[bytes]) -> None:
    """kill -9 to it and to what it has started."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
