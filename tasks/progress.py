"""What a running audit tells the Prefect UI: progress artifacts of long tasks, and lines in the flow run's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from uuid import UUID

import httpx
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.context import TaskRunContext

from embaudit.steps.progress import Report, show
from embaudit_tasks.audit_task import run_logger

# How long to wait before calling an unreachable server again: each call spends a minute on Prefect's own retries.
SECONDS_OF_SILENCE = 600.0
_silent_until = 0.0


def say(line: str, level: int = logging.INFO) -> None:
    """Show a line in the terminal and write it to the flow run's log."""
    show(line, level)
    run_logger().log(level, line)


def progress_artifact(label: str) -> Report | None:
    """An artifact for the progress of this task, as a function that sets its percentage; None if there is none."""
    if TaskRunContext.get() is None:
        return None
    artifact = _told(lambda: create_progress_artifact(progress=0.0, description=label))
    if artifact is None:
        return None

    def report(percent: float) -> None:
        _told(lambda: update_progress_artifact(artifact_id=artifact, progress=percent))

    return report


def markdown_artifact(key: str, markdown: str, description: str) -> None:
    """An artifact of this run that it can do without."""
    _told(lambda: create_markdown_artifact(key=key, markdown=markdown, description=description))


def _told(call: Callable[[], object]) -> UUID | None:
    """Tell the server something that the run can do without. An unreachable server must not fail the run."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return None
    try:
        answer = call()
    except (httpx.HTTPError, RuntimeError):
        _silent_until = time.monotonic() + SECONDS_OF_SILENCE
        return None
    return answer if isinstance(answer, UUID) else None
