"""Reads policy files."""

from __future__ import annotations

from pathlib import Path

from embaudit.system.toml import read_toml
from embaudit.warehouse.gate.policy import Policy


def load_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML file; its name defaults to that of the file.

    Raises:
        UsageError: if there is no such file, it is not TOML, or it is invalid.
    """
    path = Path(path).expanduser()
    return read_toml(
        path,
        Policy,
        what="policy",
        next_step="docs/gate.md has an example that explains every key.",
        defaults={"name": path.stem},
    )
