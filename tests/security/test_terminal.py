"""A real terminal shows tokens, names and reasons as text: no colour, title or link of theirs reaches it."""

from __future__ import annotations

import json
import os
import pty
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from plausible import audit_record, measure_runs, plausible_rows
from ready_warehouses import put_audit

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
# Several commands in one process: each begins with a form feed, so that what it printed can be told apart.
COMMANDS = """
import json, sys
from embaudit.cli.main import main
for arguments in json.loads(sys.argv[1]):
    print("\\f", end="", flush=True)
    sys.argv = ["embaudit", *arguments]
    try:
        main()
    except SystemExit:
        sys.stdout.flush()
        sys.stderr.flush()
"""
Terminal = Callable[[Sequence[Sequence[str]]], list[str]]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Run commands in a pseudo-terminal, wide enough for everything; what each of them sent there."""

    def run(commands: Sequence[Sequence[str]]) -> list[str]:
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "2000", "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(
            [sys.executable, "-c", COMMANDS, json.dumps(commands)],
            **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
            cwd=tmp_path,
            env=environment,
        )
        os.close(theirs)
        received, deadline = b"", time.monotonic() + 240
        with selectors.DefaultSelector() as selector:
            selector.register(ours, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                if selector.select(0.2):
                    try:
                        received += os.read(ours, 65536)
                    except OSError:  # the other end is closed
                        break
                elif process.poll() is not None:
                    break
        process.wait(timeout=30)
        os.close(ours)
        before, *sent = received.decode("utf-8", errors="surrogateescape").split("\f")
        assert before == ""
        assert len(sent) == len(commands)
        return sent

    return run


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit whose checkpoint, tokens and corpora have such names; and one that failed for such a reason."""
    path = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("terminal")))
    rows = plausible_rows(source=HOSTILE)
    for row in rows["token"]:
        row["token"] = f"{row['token_id']}{HOSTILE}"
        row["text"] = HOSTILE
    for row in rows["corpus"]:
        row["source"] = HOSTILE
    put_audit(path, audit_record(), rows, measure_runs())
    put_audit(path, replace(audit_record("f1"), status="failed", reason=HOSTILE, profile=HOSTILE), {}, [])
    return path


def obeys_nothing(received: str) -> None:
    for escape in ESCAPES[:6]:
        assert f"{escape}CANARY" not in received, f"{escape!r} reached the terminal"
    assert "CANARY" in received


SHOW_ALL = [
    ("show", "a1"),
    ("show", "a1", "--full"),
    ("show", "f1"),
    ("list", "checkpoints"),
    ("list", "audits"),
    ("query", "worst-tokens"),
    ("query", "SELECT source, token FROM checkpoint, token LIMIT 1"),
]


@pytest.mark.slow
def test_names_and_tokens_are_text(terminal: Terminal, warehouse: Path) -> None:
    commands = [(*arguments, "--warehouse", str(warehouse)) for arguments in [*SHOW_ALL, ("query", "failed-checks")]]
    *shown, failed_checks = terminal(commands)
    assert "Traceback" not in failed_checks
    for arguments, received in zip(SHOW_ALL, shown, strict=True):
        assert "Traceback" not in received, arguments
        obeys_nothing(received)
        for text in SHOWN:
            assert text in received, f"{text} is not shown by {arguments}"


@pytest.mark.parametrize(
    "commands",
    [
        [
            ("query", f'SELECT "{HOSTILE}" FROM audit'),
            ("show", f"{HOSTILE} of no audit"),
            ("show", "--warehouse", HOSTILE),
        ],
        # What a flow needs before it can refuse takes its time.
        pytest.param(
            [
                ("ingest", HOSTILE, "sample"),
                ("ingest", "wikipedia", HOSTILE),
                ("audit", HOSTILE),
                ("audit", "packaged:all-MiniLM-L6-v2", "--profile", HOSTILE),
                ("audit", "packaged:all-MiniLM-L6-v2", "--measures", HOSTILE),
                ("audit", "packaged:all-MiniLM-L6-v2", "--corpus", HOSTILE),
            ],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["of what reads", "of what runs"],
)
def test_error_paragraphs_are_text(terminal: Terminal, warehouse: Path, commands: list[tuple[str, ...]]) -> None:
    of_warehouse = ("--warehouse", str(warehouse))
    commands = [
        (*words, *of_warehouse) if words[0] in ("query", "show") and "--warehouse" not in words else words
        for words in commands
    ]
    for words, received in zip(commands, terminal(commands), strict=True):
        assert "Error" in received, words
        assert "Traceback" not in received, words
        obeys_nothing(received)
