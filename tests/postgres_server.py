"""A real PostgreSQL for the session: Debian's, laid in a temporary folder, on a free port, gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ports import start_server, stop_server

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


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    programs = _programs()
    # Not under pytest's own folder: that is root's alone, and PostgreSQL refuses to run as root.
    folder = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    other: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    if other:
        shutil.chown(folder, "postgres")
    data, log = folder / "data", folder / "log"

    def start(port: int) -> subprocess.Popen[bytes]:
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "fsync": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with log.open("a") as output:
            command = [str(programs / "postgres"), "-D", str(data), *options]
            return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, cwd=folder, **other)

    def answers(port: int) -> bool:
        ready = [str(programs / "pg_isready"), "--host", "127.0.0.1", "--port", str(port), "--quiet"]
        return subprocess.run(ready, check=False).returncode == 0

    try:
        make = [str(programs / "initdb"), "--pgdata", str(data), "--username", USER, "--auth", "trust"]
        done = subprocess.run([*make, "--no-sync"], capture_output=True, text=True, check=False, cwd=folder, **other)
        assert done.returncode == 0, (done.stdout, done.stderr)
        server, port = start_server(start, answers)
        try:
            yield Postgres(programs, port, folder)
        finally:
            stop_server(server)
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
