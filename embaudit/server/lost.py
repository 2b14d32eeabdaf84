"""A Prefect server that went away under a command: the paragraph for it, instead of its client's traceback.

The hub's network errors are this project's by the time they get here; what still is the transport's own was said to
Prefect's client.
"""

from __future__ import annotations

import os

from embaudit.errors import EmbauditError, ServerError

TRANSPORTS = ("httpx", "httpcore")
# What Prefect's client raises where its first call already finds nobody.
UNREACHED = "Failed to reach API"


def expected_failure(error: BaseException) -> EmbauditError | None:
    """What to print for an error that is no ``EmbauditError``: the one that began it, or that the server is gone."""
    causes = _chain(error)
    own = next((cause for cause in causes if isinstance(cause, EmbauditError)), None)
    if own is not None:
        return own
    named = os.environ.get("PREFECT_API_URL")
    again = "run the same command again: it continues where it stopped."
    for cause in causes:
        is_of_transport = type(cause).__module__.split(".")[0] in TRANSPORTS
        if is_of_transport or UNREACHED in str(cause) or type(cause).__name__ == "PrefectHTTPStatusError":
            return ServerError(
                f"The Prefect server {named or 'of this command'} does not answer any more "
                f"({type(cause).__name__}: {cause}).",
                kept="Every finished step is staged, and the published tables are as they were, or whole.",
                next_step=f"Start it, or unset PREFECT_API_URL, and {again}" if named else again.capitalize(),
            )
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """An error and what led to it, the last one first."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found
