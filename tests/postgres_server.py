"""A real PostgreSQL for the session: Debian's, laid in a temporary folder, on a free port, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

USER = "embaudit"


@dataclass(frozen=True)
class Postgres:
    """A running server; ``USER`` may do everything, without a password, from this machine."""

    programs: Path
    port: int
    folder: Path

    @property
    def host(self) -> str:
        return "127.0.0.1"

    def create(self, database: str) -> str:
        """A new, empty database; returns its name."""
        run = ["createdb", "--host", self.host, "--port", str(self.port), "--username", USER, database]
        subprocess.run([str(self.programs / run[0]), *run[1:]], check=True, capture_output=True)
        return database

    def ask(self, database: str, sql: str) -> str:
        """What a statement answers, as psql prints it without a frame."""
        run = ["psql", "--host", self.host, "--port", str(self.port), "--username", USER, "-Atc", sql, database]
        return subprocess.run(
            [str(self.programs / run[0]), *run[1:]], check=True, capture_output=True, text=True
        ).stdout.strip()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    programs = _programs()
    # Not under pytest's own folder: that is root's alone, and PostgreSQL refuses to run as root.
    folder = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if other:
        shutil.chown(folder, "postgres")
    data, port = folder / "data", free_port()

    def run(*command: str) -> None:
        done = subprocess.run([*other, *command], capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, (command, done.stdout, done.stderr)

    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
    try:
        run(str(programs / "initdb"), "--pgdata", str(data), "--username", USER, "--auth", "trust", "--no-sync")
        # Its output goes to a file: the server inherits it, and would hold a pipe open for ever.
        log = folder / "log"
        run(str(programs / "pg_ctl"), "--pgdata", str(data), "--log", str(log), "--options", options, "--wait", "start")
        try:
            yield Postgres(programs, port, folder)
        finally:
            run(str(programs / "pg_ctl"), "--pgdata", str(data), "--mode", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Where Debian keeps them, newest first; or wherever PATH says."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    if not found and (on_path := shutil.which("initdb")):
        found = [Path(on_path).parent]
    if not found:
        pytest.skip("needs PostgreSQL (apt-get install postgresql), which is not here")
    if os.geteuid() == 0 and subprocess.run(["id", "postgres"], capture_output=True, check=False).returncode != 0:
        pytest.skip("PostgreSQL refuses to run as root, and this machine has no user called postgres")
    return found[0]
