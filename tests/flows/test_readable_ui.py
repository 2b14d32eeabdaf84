"""What somebody reads in the Prefect UI: keys of artifacts, names of runs, lines of logs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from prefect import Flow, Task

import embaudit_flows
import embaudit_tasks
from embaudit.questions.audit import AuditRequest
from embaudit.warehouse.gate import GateTripped
from embaudit.words.errors import UsageError
from embaudit_flows.audit import audit
from embaudit_flows.ending import key_of_source
from embaudit_tasks import LOGGERS, ReadableLines

SOURCES = {
    "packaged:all-MiniLM-L6-v2": "packaged-all-minilm-l6-v2",
    "owner/name": "owner-name",
    "owner/name@main": "owner-name",
    "owner/name@1234abcd": "owner-name",
    "/runs/a/final": "runs-a-final",
    "/runs/b/final": "runs-b-final",
    "/runs/b@2/final": "runs-b-2-final",
    "/模型/甲": "6a21-578b-7532",
    "/模型/乙": "6a21-578b-4e59",
    "/": "checkpoint",
}


@pytest.mark.parametrize(("source", "key"), SOURCES.items())
def test_keys_of_artifacts(source: str, key: str) -> None:
    assert key_of_source(source) == key
    # What Prefect accepts.
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", key)


def test_ten_checkpoints_have_keys_of_their_own() -> None:
    sources = [f"/runs/{number}/checkpoint-{step}" for number in range(2) for step in range(100, 600, 100)]
    assert len({key_of_source(source) for source in sources}) == 10


def declared() -> Iterator[tuple[str, Task | Flow]]:
    for package in (embaudit_flows, embaudit_tasks):
        for module in iter_modules(package.__path__):
            for name, one in vars(import_module(f"{package.__name__}.{module.name}")).items():
                if isinstance(one, Task | Flow):
                    yield f"{module.name}.{name}", one


def test_no_run_has_a_name_that_prefect_made_up() -> None:
    for name, one in declared():
        assert one.flow_run_name if isinstance(one, Flow) else one.task_run_name, name


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        logger.addHandler(caplog.handler)
    yield caplog
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).removeHandler(caplog.handler)


@pytest.mark.parametrize(
    ("error", "has_traceback"),
    [
        (UsageError("There is no 100 % such profile.", next_step="Choose another."), False),
        (GateTripped("The audit fails the policy."), False),
        (ValueError("a bug"), True),
    ],
)
def test_only_bugs_have_a_traceback(error: Exception, has_traceback: bool) -> None:
    for name in LOGGERS:
        (readable,) = (one for one in logging.getLogger(name).filters if isinstance(one, ReadableLines))
        message = "Encountered exception during execution: %r"
        record = logging.LogRecord(name, logging.ERROR, "", 0, message, (error,), (type(error), error, None))
        assert readable.filter(record)
        assert bool(record.exc_info) is has_traceback
        assert (record.getMessage() == str(error)) is not has_traceback


def test_the_log_of_an_audit_with_a_wrong_setting(
    home: Path, tiny_checkpoint: Path, lines: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UsageError):
        audit(AuditRequest(checkpoint=str(tiny_checkpoint), profile="none.toml"))
    told = [record.getMessage() for record in lines.records if record.levelno >= logging.INFO]
    assert any("none.toml" in line for line in told)
    assert not any(record.exc_info for record in lines.records)
    ends = [line for line in told if "Finished in state" in line]
    assert ends
    assert all(line.startswith(f"audit {tiny_checkpoint}, none.toml: Finished in state") for line in ends)
