"""The temporary Prefect server of a process without a configured one; it never outlives the process."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys

from prefect.settings import get_current_settings

from embaudit.server.process import MODULE

SECONDS_TO_STOP = 5
_started: list[TemporaryServer] = []


def temporary_server() -> TemporaryServer:
    """This process's server: started by the first call, and restarted if it has died."""
    if not _started or not _started[-1].is_running:
        _started.append(TemporaryServer())
    return _started[-1]


class TemporaryServer:
    """Prefect's server in a child process, started while the command still imports what it needs.

    Prefect would start one when it first needs it, but it imports the whole server into the command for that (4 s and
    78 MB), and after a kill -9 of the command the server (230 MB) would keep running forever.

    The command opens the socket and hands it over: clients that connect before the server is up wait in the socket's
    queue, no other program can take the port, and if the server dies, so does its socket.
    """

    def __init__(self) -> None:
        prefect = get_current_settings()
        # For its database. Prefect creates the folder, but not its parents.
        prefect.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = prefect.to_environment_variables(exclude_unset=True)
        own = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.api_url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(listening.fileno()), str(os.getpid())],
                env={**os.environ, **own, **settings},
                stdin=subprocess.PIPE,
                pass_fds=(listening.fileno(),),
            )
        atexit.register(self.stop)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Let it write what it received last."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_STOP)
        self._process.kill()
        self._process.wait()
