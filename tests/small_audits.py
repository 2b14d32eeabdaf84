"""One Prefect server for all tests that run flows or commands, and a small audit that takes seconds.

A plugin of ``tests/conftest.py``, so that flows, faults and security share the server: a session starts one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands import CLI, Embaudit, run_here
from tiny import tiny_bert

if TYPE_CHECKING:
    from prefect.client.schemas.objects import Artifact

    from embaudit_flows.audit import AuditOutcome

AuditOnce = Callable[..., "AuditOutcome"]
PROFILE = """
name = "tiny"
version = 1
description = "for tests: everything, small"
[sticky]
sentences = 140
draws = 6
validation_draws = 24
scan_encodes = 1200
scan_dtype = "float32"
max_shortlist = 42
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
[impact]
tokens_per_arm = 2
resamples = 120
texts = 60
pairs = 40
starts = 2
"""
# The same with everything that stands beside the verdicts.
WHOLE = (
    PROFILE.replace('name = "tiny"', 'name = "whole"')
    .replace("dose_tokens = 0", "dose_tokens = 2\ndose_draws = 10\ndoses = [1, 8]")
    .replace("shift_tokens = 0", "shift_tokens = 2\nshift_pairs = 20")
    .replace("attention_tokens = 0", "attention_tokens = 4\nattention_sentences = 2\npermutations = 100")
    .replace(
        'basis = "screened"',
        'reference = true\nreference_pairs = 1\nreference_validation_pairs = 20\nbasis = "screened"',
    )
)


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[str]:
    """The one test server of the session; in-process flows use it, and so do commands that are given its URL."""
    from prefect.logging.configuration import setup_logging
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        PREFECT_LOGGING_TO_API_ENABLED,
        PREFECT_SERVER_ANALYTICS_ENABLED,
        PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED,
        PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE,
        PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL,
        PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED,
        temporary_settings,
    )
    from prefect.testing.utilities import prefect_test_harness

    # No test reads log lines or events from the server, and there are thousands; nobody is to be told that it started.
    idle = {
        # A sub-flow that sends heartbeats ends a second later.
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        PREFECT_SERVER_ANALYTICS_ENABLED: False,
        PREFECT_LOGGING_TO_API_ENABLED: False,
        PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED: False,
        PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED: False,
        # As ``prepare_prefect`` sets them.
        PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE: 100,
        PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL: 1,
    }
    with temporary_settings(idle), prefect_test_harness(server_startup_timeout=300):
        # Log lines go to the stderr of this moment, and not to that of the first command that is run in this process.
        setup_logging()
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


@contextmanager
def home_at(folder: Path, warehouse: Path | None = None) -> Iterator[Path]:
    """An EMBAUDIT_HOME, with a copy of this warehouse: making an empty one takes as long as a small audit."""
    if warehouse is not None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(warehouse, folder / "warehouse.duckdb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMBAUDIT_HOME", str(folder))
        yield folder


@pytest.fixture
def home(tmp_path: Path, prefect_api: str, empty_once: Path) -> Iterator[Path]:
    """An EMBAUDIT_HOME of which nothing was asked yet: with an empty warehouse."""
    with home_at(tmp_path / "home", empty_once) as folder:
        yield folder


@pytest.fixture
def new_home(home: Path) -> Path:
    """One that does not exist yet."""
    shutil.rmtree(home)
    return home


@dataclass(frozen=True)
class Audited:
    """A home with one published audit, made once and not to be changed: what changes it gets a copy."""

    home: Path
    # What ``audit`` was asked, and what it answered.
    question: dict[str, Any]
    outcome: AuditOutcome
    # What the Prefect UI got of it.
    artifacts: tuple[Artifact, ...]

    @property
    def command(self) -> tuple[str, ...]:
        """The same question in words."""
        asked = self.question
        corpora = (word for name, source in asked["corpora"].items() for word in ("--corpus", f"{name}={source}"))
        return ("audit", asked["checkpoint"], "--profile", asked["profile"], "--device", asked["device"], *corpora)

    def copy_to(self, home: Path) -> None:
        """A staged file is known by its folder: wherever its home lies."""
        shutil.copytree(self.home, home, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def audited(
    prefect_api: str, tiny_checkpoint: Path, whole_profile: Path, tmp_path_factory: pytest.TempPathFactory
) -> Audited:
    """The tiny checkpoint audited with everything; in a copy, each of its measures is found as done."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import ArtifactSort

    from embaudit.questions.audit import AuditRequest
    from embaudit_flows.audit import audit

    question = {
        "checkpoint": str(tiny_checkpoint),
        "profile": str(whole_profile),
        "corpora": {"msmarco-hard-negatives": "sample"},
        "device": "cpu",
    }
    started = datetime.now(UTC)
    with home_at(tmp_path_factory.mktemp("audited") / "home") as home:
        outcome = audit(AuditRequest(**question))
    with get_client(sync_client=True) as client:
        artifacts = client.read_artifacts(sort=ArtifactSort.CREATED_DESC)
    made = (artifact for artifact in artifacts if artifact.created and artifact.created >= started)
    return Audited(home, question, outcome, tuple(made))


@dataclass(frozen=True)
class AskedAgain:
    """A home in which the audit's command was run again, in full; not to be changed."""

    home: Path
    # Its files, as they were before.
    written: dict[Path, os.stat_result]
    said: subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def asked_again(audited: Audited, prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> AskedAgain:
    folder = tmp_path_factory.mktemp("again")
    audited.copy_to(folder / "home")
    written = {path: path.stat() for path in (folder / "home").rglob("*") if path.is_file()}
    with home_at(folder / "home") as home:
        said = run_here((*audited.command, "--full"), environment_of(home, prefect_api), folder)
    return AskedAgain(home, written, said)


@pytest.fixture
def audited_home(audited: Audited, home: Path) -> Path:
    """A home of the test's own in which that audit is done."""
    audited.copy_to(home)
    return home


@pytest.fixture
def computed_home(audited_home: Path, empty_once: Path) -> Path:
    """One in which everything is computed and nothing published."""
    shutil.copy(empty_once, audited_home / "warehouse.duckdb")
    shutil.rmtree(audited_home / "reports")
    return audited_home


@pytest.fixture(scope="session")
def audit_once(
    prefect_api: str,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    tmp_path_factory: pytest.TempPathFactory,
    empty_once: Path,
) -> AuditOnce:
    """Audits the tiny checkpoint in a home of its own, for a module's tests to read."""
    from embaudit.questions.audit import AuditRequest
    from embaudit_flows.audit import audit

    def run(**asked: Any) -> AuditOutcome:
        with home_at(tmp_path_factory.mktemp("measured") / "home", empty_once):
            usual = {"checkpoint": str(tiny_checkpoint), "profile": str(tiny_profile), "device": "cpu"}
            return audit(AuditRequest(**usual | asked))

    return run


def shown(embaudit: Embaudit, outcome: AuditOutcome) -> str:
    """The whole page of an audit in a terminal."""
    done = embaudit("show", outcome.audit_id, "--full", "--warehouse", outcome.warehouse)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def answered(embaudit: Embaudit, outcome: AuditOutcome, query: str) -> list[dict[str, Any]]:
    """The rows of a named query."""
    done = embaudit("query", query, "--format", "json", "--warehouse", outcome.warehouse)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def environment_of(home: Path, prefect_api: str) -> dict[str, str]:
    return {**os.environ, "EMBAUDIT_HOME": str(home), "PREFECT_API_URL": prefect_api, "HF_HUB_OFFLINE": "1"}


@pytest.fixture
def command_environment(home: Path, prefect_api: str) -> dict[str, str]:
    """What a command runs with: this session's server, and a home of its own."""
    return environment_of(home, prefect_api)


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


@pytest.fixture
def embaudit_here(command_environment: dict[str, str], tmp_path: Path) -> Embaudit:
    """The same command line, in this process."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_here(arguments, {**command_environment, **environment}, tmp_path)

    return run
