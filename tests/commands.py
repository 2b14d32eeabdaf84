"""The command line as a list of words, and the type of the fixture that runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

CLI = [sys.executable, "-c", "from embaudit.cli.main import main; main()"]
Embaudit = Callable[..., "subprocess.CompletedProcess[str]"]
