"""A site of one's own, as docs/operate.md sets it up: its commands, in a shell, with free ports and empty homes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "operate.md").read_text()


def commands_under(heading: str) -> list[str]:
    """The lines that a reader types, of all console blocks under one heading; a line that ends in \\ goes on."""
    lines = "".join(_blocks(heading, "console")).replace("\\\n", " ").split("\n")
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def toml_under(heading: str) -> list[str]:
    """The files that a section shows."""
    return _blocks(heading, "toml")


def _blocks(heading: str, language: str) -> list[str]:
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)


@dataclass
class Site:
    """Runs the page's commands with 4200 read as a free port; started processes end with the site."""

    folder: Path
    port: int
    environment: dict[str, str]
    replaced: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def shell(self, command: str, timeout: float = 600) -> str:
        """Run one of the page's commands to its end; what it printed."""
        done = subprocess.run(
            ["bash", "-c", self.here(command)],
            env=self.environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def start(self, command: str, log: str) -> subprocess.Popen[str]:
        """Start a command that stays."""
        with (self.folder / log).open("w") as output:
            process = subprocess.Popen(
                ["bash", "-c", self.here(command).removesuffix("&")],
                env=self.environment, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT, text=True,
                start_new_session=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    def here(self, command: str) -> str:
        for written, real in {"4200": str(self.port), **self.replaced}.items():
            command = command.replace(written, real)
        return command

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The server's API."""
        if body is None:
            answer = httpx.get(f"{self.url}/api/{path}", timeout=30)
        else:
            answer = httpx.post(f"{self.url}/api/{path}", json=body, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def page(self, path: str, expected: str, picture: Path | None = None) -> str:
        """The text of a page of the UI, as headless Chromium shows it; tried again until it holds what is expected."""
        text = ""
        for _ in range(4):
            text = _text_of(self._chromium(path, "--dump-dom"))
            if expected in text:
                break
        if picture:
            self._chromium(path, "--window-size=1400,900", f"--screenshot={picture}")
        return text

    def _chromium(self, path: str, *options: str) -> str:
        program = shutil.which("chromium")
        assert program
        command = [program, "--headless", "--disable-gpu", f"--user-data-dir={self.folder / 'chromium'}"]
        # Chromium's sandbox does not work for root.
        command += ["--no-sandbox"] if os.geteuid() == 0 else []
        # Virtual time runs the page's own timers to their end, however slow the machine is.
        command += ["--virtual-time-budget=20000", *options, f"{self.url}/{path}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout


@contextmanager
def new_site(folder: Path, port: int, replaced: dict[str, str] | None = None) -> Iterator[Site]:
    """A site whose server, worker and folders are gone afterwards."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "EMBAUDIT_"))}
    environment = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_SERVER_API_PORT": str(port),
        # Prefect's own commands, too, are to outlast a server that is busy for a moment (two cores, other tests).
        "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TERM": "dumb",
    }
    site = Site(folder, port, environment, replaced or {})
    try:
        yield site
    finally:
        for process in site.started:
            kill_all(process)


def kill_all(process: subprocess.Popen[str]) -> None:
    """kill -9 to a process and whatever it started, as when a machine dies: nobody has time to say a word."""
    found = [process.pid]
    for pid in found:
        children = subprocess.run(["pgrep", "--parent", str(pid)], capture_output=True, text=True, check=False)
        found += [int(child) for child in children.stdout.split()]
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(timeout=60)


def wait_until(condition: Callable[[], Any], seconds: float) -> Any:
    """The first true value of a condition."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := condition():
                return found
        except httpx.HTTPError:
            pass
        time.sleep(1)
    raise AssertionError("it did not happen in time")


def _text_of(page: str) -> str:
    without_code = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", without_code).split())
