"""``python -m embaudit``: the same as ``embaudit``."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run a command; an interrupt while its modules are imported is one like any other."""
    # A command imports a million objects that all stay. Looked through at the usual rate, they took a sixth of a check.
    gc.set_threshold(10_000, 10, 10)
    try:
        from embaudit.cli.main import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
