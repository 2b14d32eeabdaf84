"""Reads policy files."""

from __future__ import annotations

from pathlib import Path

from embaudit.system.small_files import read_toml
from embaudit.warehouse.gate.policy import Policy
from embaudit.words.errors import UsageError


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


def load_audit_policy(path: str | Path) -> Policy:
    """The policy of an audit that is still to run, so that what is wrong with it is said now, and not hours later.

    Raises:
        UsageError: as ``load_policy``; or if it is about answers, which no audit has.
    """
    policy = load_policy(path)
    if policy.is_of_answers:
        raise UsageError(
            f"The policy {policy.name} is about answers, and an audit has none.",
            next_step=f"Check what was asked about a store with it: embaudit gate STORE --policy {path}",
        )
    return policy
