"""Reports a lost Prefect server in one paragraph instead of its client's traceback.

The hub's network errors have been translated by the time they get here, so a bare transport error comes from Prefect's
client.
"""

from __future__ import annotations

import errno
from pathlib import Path

from embaudit.words.errors import (
    EmbauditError,
    ServerError,
    StorageError,
    causes_of,
    machine_failure,
    one_line,
)

TRANSPORTS = ("httpx", "httpcore")
# Prefect's client raises this if its very first call fails.
UNREACHED = "Failed to reach API"
# What the system refuses, and no program can help.
REFUSED = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE),
    *(errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.ELOOP),
)


def expected_failure(error: BaseException) -> EmbauditError | None:
    """The error to print for one that is not an ``EmbauditError``: its cause, or what was lost; None for a bug."""
    causes = causes_of(error)
    own = next((cause for cause in causes if isinstance(cause, EmbauditError)), None)
    if own is not None:
        return own
    if (failure := machine_failure(error)) is not None:
        return failure
    for cause in causes:
        is_of_transport = type(cause).__module__.split(".")[0] in TRANSPORTS
        if is_of_transport or UNREACHED in str(cause) or type(cause).__name__ == "PrefectHTTPStatusError":
            return _lost(cause)
    return _refused(error) if isinstance(error, OSError) else None


def _lost(cause: BaseException) -> ServerError:
    """A temporary server says itself why it ended."""
    from prefect.settings import PREFECT_API_URL

    from embaudit_flows.server.temporary import started_server

    named, own = PREFECT_API_URL.value(), started_server()
    if not named and own is not None:
        return own.failure(cause)
    return ServerError(
        f"The Prefect server {named or 'of this command'} is no longer responding ({type(cause).__name__}: {cause}).",
        kept="Every finished step is staged, and the published tables are consistent.",
        next_step="Start it, or unset PREFECT_API_URL, and run the same command again: it continues where it stopped.",
    )


def _refused(error: OSError) -> StorageError | None:
    """A file or folder that the system refuses; also a current folder that was deleted."""
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        return StorageError("The current folder no longer exists.", next_step="Change to another one.")
    if error.errno not in REFUSED:
        return None
    return StorageError(
        f"The system refuses access: {one_line(error)}",
        kept="Every finished step is staged, and the published tables are consistent.",
        next_step="Free some space or fix the permissions, or point EMBAUDIT_HOME to another folder.",
    )


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True
