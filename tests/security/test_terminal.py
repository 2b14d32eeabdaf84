"""A real terminal shows tokens, names and reasons as text: no colour, title or link of theirs reaches it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import CLI
from plausible import audit_record, measure_runs, plausible_rows, stage_all

from embaudit.warehouse.publish import publish

# Colour, window title, clear screen, cursor, an 8-bit control, a carriage return, and rich's own markup.
ESCAPES = (
    "\x1b[31m",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x1b[1A",
    "\x9b31m",
    "\r",
    "[red]",
    "[/bold]",
    "[link=x]y[/link]",
)
HOSTILE = "".join(f"{escape}CANARY" for escape in ESCAPES)
SHOWN = (
    *(r"\x1b[31mCANARY", r"\x1b]0;title\x07CANARY", r"\x1b[2JCANARY", r"\x1b[1ACANARY", r"\x9b31mCANARY", r"\rCANARY"),
    *("[red]CANARY", "[/bold]CANARY", "[link=x]y[/link]CANARY"),
)
Terminal = Callable[..., str]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Run a command in a pseudo-terminal, wide enough for everything; what it sent there."""

    def run(*arguments: str) -> str:
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "2000", "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(
            [*CLI, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment
        )
        os.close(theirs)
        received, deadline = b"", time.monotonic() + 120
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    received += os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
            elif process.poll() is not None:
                break
        process.wait(timeout=30)
        os.close(ours)
        return received.decode("utf-8", errors="surrogateescape")

    return run


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit whose checkpoint, tokens and corpora have such names; and one that failed for such a reason."""
    folder = tmp_path_factory.mktemp("terminal")
    rows = plausible_rows(source=HOSTILE)
    for row in rows["token"]:
        row["token"] = f"{row['token_id']}{HOSTILE}"
        row["text"] = HOSTILE
    for row in rows["corpus"]:
        row["source"] = HOSTILE
    path = folder / "warehouse.duckdb"
    publish(path, 0, audit_record(), measure_runs(), [], stage_all(folder / "staged", rows))
    failed = replace(audit_record("f1"), status="failed", reason=HOSTILE, profile=HOSTILE)
    publish(path, 0, failed, [], [], [])
    return path


def obeys_nothing(received: str) -> None:
    for escape in ESCAPES[:6]:
        assert f"{escape}CANARY" not in received, f"{escape!r} reached the terminal"
    assert "CANARY" in received


@pytest.mark.parametrize(
    ("arguments", "shows_all"),
    [
        (("show", "a1"), True),
        (("show", "f1"), True),
        (("list", "checkpoints"), True),
        (("list", "audits"), True),
        (("query", "worst-tokens"), True),
        (("query", "SELECT source, token FROM checkpoint, token LIMIT 1"), True),
        (("query", "failed-checks"), None),
    ],
)
def test_names_and_tokens_are_text(
    terminal: Terminal, warehouse: Path, arguments: tuple[str, ...], shows_all: bool | None
) -> None:
    received = terminal(*arguments, "--warehouse", str(warehouse))
    assert "Traceback" not in received
    if shows_all is None:
        return
    obeys_nothing(received)
    for text in SHOWN:
        assert text in received, f"{text} is not shown"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", HOSTILE),
        ("audit", "packaged:all-MiniLM-L6-v2", "--profile", HOSTILE),
        ("audit", "packaged:all-MiniLM-L6-v2", "--measures", HOSTILE),
        ("audit", "packaged:all-MiniLM-L6-v2", "--corpus", HOSTILE),
        ("ingest", HOSTILE, "sample"),
        ("ingest", "wikipedia", HOSTILE),
        ("query", f'SELECT "{HOSTILE}" FROM audit'),
        ("show", HOSTILE),
        ("show", "--warehouse", HOSTILE),
    ],
    ids=lambda arguments: " ".join(ascii(word)[1:20] for word in arguments),
)
def test_error_paragraphs_are_text(terminal: Terminal, warehouse: Path, arguments: tuple[str, ...]) -> None:
    needs_one = arguments[0] in ("query", "show") and "--warehouse" not in arguments
    received = terminal(*arguments, *(("--warehouse", str(warehouse)) if needs_one else ()))
    assert "Error" in received
    assert "Traceback" not in received
    obeys_nothing(received)
