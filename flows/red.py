"""How a run ends that found a problem or failed: red in Prefect's UI, under the problem's name, with its words.

Prefect calls a run *Failed* whatever its flow raised, and shows a traceback. People look at names and colours in the
morning: so an error ends its run under a name of its own, and its message is what the error says. ``setup-server
--notify`` makes an automation for runs that are merely *Failed* or *Crashed*: those could not say a word themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from prefect.states import Completed, Failed

from embaudit.words.errors import EmbauditError, ProblemFound, is_of_interrupt, one_line
from embaudit_tasks.audit_task import in_a_run, run_logger

P = ParamSpec("P")
R = TypeVar("R")


def ends_in_words(failed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a flow's function end its run under the name of the problem that it raised.

    Whoever calls the flow gets the error raised, as from any function.

    Args:
        failed: the name of a run that could not do its work.
    """

    def made(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if not in_a_run() or is_of_interrupt(error):
                    raise
                return cast(R, _red(error, failed))

        # Prefect looks for the types of parameters in the module of what it is given, which is this one.
        run.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
        return run

    return made


def marked(name: str, message: str, outcome: R) -> R:
    """End the run as completed, under a problem's name: what somebody asked for who wants no red runs.

    A returned state becomes the run's; the caller gets its data.
    """
    return cast(R, Completed(name=name, message=message, data=outcome)) if in_a_run() else outcome


def _red(error: Exception, failed: str) -> Any:
    if isinstance(error, ProblemFound):
        return Failed(name=error.state, message=str(error), data=error)
    if isinstance(error, EmbauditError):
        run_logger().error("%s", error)
        return Failed(name=failed, message=str(error), data=error)
    run_logger().exception("An error that nobody expected:")
    return Failed(name=failed, message=f"{type(error).__name__}: {one_line(error)}", data=error)
