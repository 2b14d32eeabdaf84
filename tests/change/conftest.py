"""One base for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from change_copies import base_in


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_in(tmp_path_factory.mktemp("change") / "base")
