"""Reports a lost Prefect server in one paragraph instead of its client's traceback.

The hub's network errors have been translated by the time they get here, so a bare transport error comes from Prefect's
client.
"""

from __future__ import annotations

import os

from embaudit.errors import EmbauditError, ServerError

TRANSPORTS = ("httpx", "httpcore")
# Prefect's client raises this if its very first call fails.
UNREACHED = "Failed to reach API"


def expected_failure(error: BaseException) -> EmbauditError | None:
    """The error to print for one that is not an ``EmbauditError``: its cause, or a lost server; None for a bug."""
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
                f"The Prefect server {named or 'of this command'} is no longer responding "
                f"({type(cause).__name__}: {cause}).",
                kept="Every finished step is staged, and the published tables are consistent.",
                next_step=f"Start it, or unset PREFECT_API_URL, and {again}" if named else again.capitalize(),
            )
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """An error and its causes, the last error first."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found
