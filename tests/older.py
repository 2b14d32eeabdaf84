"""What the oldest supported versions cannot do (requirements-lowest.lock): tests of it are skipped there by name."""

from __future__ import annotations

from importlib.metadata import version

import pytest


def is_transformers_4() -> bool:
    return version("transformers").startswith("4.")


def transformers_5(what: str) -> None:
    """Skip a test of what transformers 4 does not have."""
    if is_transformers_4():
        pytest.skip(f"transformers {version('transformers')} does not know {what}")


def sentence_transformers_6(what: str) -> None:
    """Skip a comparison with what only sentence-transformers 6 reads."""
    if int(version("sentence-transformers").partition(".")[0]) < 6:
        pytest.skip(f"sentence-transformers {version('sentence-transformers')} does not know {what}")
