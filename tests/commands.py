"""The command line: as a list of words for a process of its own, and in this one; the type of the fixtures that run it.

A process takes seconds to import what an audit needs, so that only what is about processes starts one.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

CLI = [sys.executable, "-c", "from embaudit.__main__ import main; main()"]
Embaudit = Callable[..., "subprocess.CompletedProcess[str]"]


def run_here(
    arguments: tuple[str, ...], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """What ``embaudit`` prints and ends with, by the same ``main``, with its environment and its folder."""
    from huggingface_hub import constants

    from embaudit.cli.main import main

    interrupts = signal.getsignal(signal.SIGINT)
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", ["embaudit", *arguments]),
        # Read once, at import.
        mock.patch.object(constants, "HF_HUB_OFFLINE", environment.get("HF_HUB_OFFLINE") == "1"),
        chdir(folder),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as ending:
            code = ending.code
        finally:
            signal.signal(signal.SIGINT, interrupts)
    assert isinstance(code, int)
    printed = (stream.buffer.getvalue().decode() for stream in (output, errors))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(["embaudit", *arguments], code, *printed)
