"""Notifies people, through a Prefect block of their choice, of every run that failed or found a problem.

A notification that cannot be sent is only a warning, and does not change the failure that it is about. The warning
gives only the type of the error, since its text often contains the webhook's address, which is a secret.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from embaudit.words.errors import EmbauditError, ProblemFound
from embaudit_tasks.steps import run_logger

if TYPE_CHECKING:
    from prefect.blocks.abstract import NotificationBlock

# On a server that `setup-server --notify` prepared: the block that its deployments notify, unless they name another.
VARIABLE = "embaudit_notify"
# Libraries that log the address that they send to.
TALKATIVE = ("httpx", "httpcore", "apprise", "urllib3")


class Notifier:
    """Sends through a notification block by its name, such as ``slack-webhook/ops``.

    Without a name, a deployment's own run sends through the block that its server was set up with, and any other run
    sends nothing.
    """

    def __init__(self, name: str | None) -> None:
        self.name = name = name or _of_server()
        self.warnings: list[str] = []
        # Load it now, not when something has failed, so that a mistyped name is reported while someone may be watching.
        self._block = self._load(name) if name else None

    def send(self, subject: str, body: str) -> None:
        """Send a notification; if that fails, ``warnings`` and the run's log say so."""
        if self._block is None:
            return
        try:
            with _quiet(), self._block.raise_on_failure():
                sent: object = self._block.notify(body, subject)
                # Prefect's own blocks have sent it by now; a user's own block may return a coroutine.
                if inspect.iscoroutine(sent):
                    asyncio.run(sent)
        except Exception as error:
            self._warn(f"The notification to {self.name} could not be sent ({type(error).__name__}).")

    def _load(self, name: str) -> NotificationBlock | None:
        import prefect.blocks.notifications  # noqa: F401  (registers Prefect's own kinds of blocks)
        from prefect.blocks.abstract import NotificationBlock
        from prefect.blocks.core import Block

        try:
            block = Block.load(name)
        except Exception as error:
            # The name has no kind, the kind or name is unknown, or the server does not answer.
            self._warn(
                f"There is no notification block {name} to load ({type(error).__name__}), so nobody will be told. "
                "A block is named KIND/NAME, such as slack-webhook/ops; list them: prefect block ls"
            )
            return None
        if not isinstance(block, NotificationBlock):
            self._warn(f"The block {name} sends no notifications, so nobody will be told.")
            return None
        return block

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        run_logger().warning(text)


@contextmanager
def notify_on_failure(notifier: Notifier, what: str) -> Iterator[None]:
    """Send a notification if the ``with`` block raises an error, which is raised again: a failure, or a problem."""
    try:
        yield
    except Exception as error:
        if isinstance(error, EmbauditError):
            notifier.send(
                f"{what}: {_kind(error)}", "\n".join(p for p in (error.happened, error.kept, error.next_step) if p)
            )
            error.kept = " ".join([error.kept, *notifier.warnings]).strip()
        else:
            notifier.send(f"{what}: failed", f"{type(error).__name__}; the run's log has the rest.")
        raise


def _kind(error: EmbauditError) -> str:
    return error.state.lower() if isinstance(error, ProblemFound) else "failed"


def _of_server() -> str | None:
    """The block that ``setup-server --notify`` named, for a deployment's own run: a watch speaks for its audits."""
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    run = None if context is None else context.flow_run
    if run is None or run.deployment_id is None or run.parent_task_run_id is not None:
        return None
    from prefect.variables import Variable

    named = Variable.get(VARIABLE)
    return str(named) if named else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the webhook's address out of the logs while sending."""
    loggers = [logging.getLogger(name) for name in TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
