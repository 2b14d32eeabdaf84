"""A home folder for a process that has none: libraries keep caches and settings in ``~``, and fail without it.

Containers run with a user id that no account belongs to; ``cron`` and some supervisors unset ``HOME``.
"""

from __future__ import annotations

import os
from pathlib import Path


def missing_home() -> dict[str, str]:
    """``HOME`` in the folder of results, if nothing says where this user's home is; otherwise empty."""
    try:
        Path.home()
    except RuntimeError:
        # As ``embaudit.system.settings`` reads it, which imports pydantic; this is asked by every command.
        return {"HOME": str(Path(os.environ.get("EMBAUDIT_HOME") or ".embaudit").absolute())}
    return {}
