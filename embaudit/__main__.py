"""``python -m embaudit``: the same as ``embaudit``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command; an interrupt while its modules are imported is one like any other."""
    try:
        from embaudit.cli.main import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
