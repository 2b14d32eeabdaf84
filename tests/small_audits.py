"""One Prefect server for all tests that run flows or commands, and a small audit that takes seconds.

A plugin of ``tests/conftest.py``, so that flows, faults and security share the server: a session starts one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import CLI, Embaudit
from tiny import tiny_bert

PROFILE = """
name = "tiny"
version = 1
description = "for tests: everything, small"
[sticky]
sentences = 140
scoring_pairs = 6
validation_pairs = 24
rotate_operators = true
search = "sequential"
pilot_share = 0.1
rungs = [{ draws = 1, keep = 0.3 }, { draws = 6 }]
common_pairs = 10
longest_shortlist = 42
shortlist_share = 0.2
controls = 10
resamples = 100
dose_tokens = 0
shift_tokens = 0
attention_tokens = 0
basis = "screened"
[socm]
texts = 30
[layers]
texts = 20
[length]
texts = 12
control_texts = 4
sigma_texts = 2
"""
# The same with everything that stands beside the verdicts.
WHOLE = (
    PROFILE.replace('name = "tiny"', 'name = "whole"')
    .replace("dose_tokens = 0", "dose_tokens = 2\ndose_pairs = 10\ndoses = [1, 8]")
    .replace("shift_tokens = 0", "shift_tokens = 2\nshift_pairs = 20")
    .replace("attention_tokens = 0", "attention_tokens = 4\nattention_sentences = 2\npermutations = 100")
    .replace('basis = "screened"', 'reference = true\nreference_pairs = 1\nbasis = "screened"')
)


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[str]:
    """The one test server of the session; in-process flows use it, and so do commands that are given its URL."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        url = PREFECT_API_URL.value()
        assert url
        yield url


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="session")
def tiny_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "tiny.toml"
    path.write_text(PROFILE)
    return path


@pytest.fixture(scope="session")
def whole_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "whole.toml"
    path.write_text(WHOLE)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefect_api: str) -> Iterator[Path]:
    """An empty EMBAUDIT_HOME, with Prefect's results kept inside it."""
    from prefect.settings import PREFECT_LOCAL_STORAGE_PATH, temporary_settings

    folder = tmp_path / "home"
    monkeypatch.setenv("EMBAUDIT_HOME", str(folder))
    with temporary_settings({PREFECT_LOCAL_STORAGE_PATH: folder / "cache"}):
        yield folder


@pytest.fixture
def command_environment(home: Path, prefect_api: str) -> dict[str, str]:
    """What a command runs with: this session's server, and a home of its own."""
    return {**os.environ, "EMBAUDIT_HOME": str(home), "PREFECT_API_URL": prefect_api, "HF_HUB_OFFLINE": "1"}


@pytest.fixture
def embaudit(command_environment: dict[str, str], tmp_path: Path) -> Embaudit:
    """Run the command line as a person would, in a process of its own."""

    def run(*arguments: str, timeout: float = 240, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CLI, *arguments],
            env={**command_environment, **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
