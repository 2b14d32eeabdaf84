"""The libraries of stores: loaded when one is read, named when it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from embaudit.words.errors import UsageError


def needed(module: str, extra: str, shown: str) -> Any:
    """A library that a store is read by.

    Args:
        module: as it is imported.
        extra: of embaudit, that installs it.
        shown: the store, for the message.

    Raises:
        UsageError: if it is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{shown} is read by {error.name}, which is not installed.",
            next_step=f"pip install 'embaudit[{extra}]'",
        ) from error
    except ImportError as error:
        raise UsageError(
            f"{shown} is read by {module}, which cannot be imported: {error}.",
            next_step=f"Repair it: pip install --force-reinstall 'embaudit[{extra}]'",
        ) from error
