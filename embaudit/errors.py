"""The one exception family of embaudit, and the exit codes that the command line gives for it.

Read by every module that can fail in an expected way; printed by ``embaudit.cli`` as one paragraph without
a traceback. An error says what happened (to which checkpoint, token or file), what was kept, and what to
type next. Anything that is not an ``EmbauditError`` is a bug and keeps its traceback.
"""

from __future__ import annotations

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class EmbauditError(Exception):
    """An expected failure.

    Args:
        happened: what went wrong and to what, one or two sentences.
        kept: what is still there afterwards (staged files, published tables); empty if nothing was at stake.
        next_step: what the reader can type or change now.
    """

    exit_code = EXIT_USAGE

    def __init__(self, happened: str, *, kept: str = "", next_step: str = "") -> None:
        self.happened = happened
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


class MeasureError(EmbauditError):
    """A measure that is undefined on this input (no pair below u, NaN embeddings, too few tokens)."""


class NotMeasurable(MeasureError):
    """Something beside the verdicts that this checkpoint or these texts do not allow; everything else stands."""


class WarehouseError(EmbauditError):
    """A warehouse that is locked, newer than this program, unreadable, or a query that it refuses."""


class StorageError(EmbauditError):
    """Staging or publishing could not write: disk full, no permission, read-only file system."""


class CheckFailed(EmbauditError):
    """A blocking expectation or a gate failed: nothing was published."""

    exit_code = EXIT_CHECK_FAILED
