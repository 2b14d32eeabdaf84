"""The one exception family of embaudit, and the exit codes that the command line gives for it.

Read by every module that can fail in an expected way; printed by ``embaudit.cli`` as one paragraph without
a traceback. An error says what happened (to which checkpoint, token or file), what was kept, and what to
type next. Anything that is not an ``EmbauditError`` is a bug and keeps its traceback.
"""

from __future__ import annotations

from embaudit.masking import without_credentials

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
MAX_REASON = 240  # characters of a library's own message that an error repeats


class EmbauditError(Exception):
    """An expected failure.

    Args:
        happened: what went wrong and to what, one or two sentences.
        kept: what is still there afterwards (staged files, published tables); empty if nothing was at stake.
        next_step: what the reader can type or change now.
    """

    exit_code = EXIT_USAGE

    def __init__(self, happened: str, *, kept: str = "", next_step: str = "") -> None:
        # A library's message may repeat the address that it asked, and this text goes to logs and to the warehouse.
        self.happened = happened = without_credentials(happened)
        self.kept = kept
        self.next_step = next_step
        super().__init__(" ".join(part for part in (happened, kept, next_step) if part))

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by Exception's own pickling, which Prefect and process pools use.
        return (_rebuild, (type(self), self.happened, self.kept, self.next_step))


def _rebuild(kind: type[EmbauditError], happened: str, kept: str, next_step: str) -> EmbauditError:
    return kind(happened, kept=kept, next_step=next_step)


class UsageError(EmbauditError):
    """A name, option or setting that does not exist or does not fit."""


class CheckpointError(EmbauditError):
    """A checkpoint that cannot be found, read or trusted."""


class CorpusError(EmbauditError):
    """A corpus that cannot be found or read, or that is too small for the measure asked for."""


class HubUnreachable(CheckpointError, CorpusError):
    """The hub gave no answer: nothing is wrong with the checkpoint or data set, and a later try may find it."""


class HubOffline(HubUnreachable):
    """Nobody asked the hub: HF_HUB_OFFLINE is set."""


class MeasureError(EmbauditError):
    """A measure that is undefined on this input (no pair below u, NaN embeddings, too few tokens)."""


class NotMeasurable(MeasureError):
    """An optional measurement that this checkpoint or these texts cannot support; everything else is published."""


class WarehouseError(EmbauditError):
    """A warehouse that is locked, newer than this program, unreadable, or a query that it refuses."""


class StorageError(EmbauditError):
    """Staging or publishing could not write: disk full, no permission, read-only file system."""


class ServerError(EmbauditError):
    """A Prefect server that is not named, does not answer, or lacks what a run counts on."""


class CheckFailed(EmbauditError):
    """A blocking expectation or a gate failed: nothing was published."""

    exit_code = EXIT_CHECK_FAILED


def is_of_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C began the chain of errors that ends in this one.

    Prefect 3.8 cleans up after an interrupt between two tasks with objects that it had not made yet, and what comes
    out is the error of the cleaning up.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def one_line(error: Exception) -> str:
    """A library's message as one sentence of a paragraph."""
    message = " ".join(str(error).split()).rstrip(" :") or type(error).__name__
    message = message if len(message) <= MAX_REASON else message[:MAX_REASON].rsplit(" ", 1)[0] + " …"
    return message if message.endswith((".", "!", "?", "…")) else message + "."
