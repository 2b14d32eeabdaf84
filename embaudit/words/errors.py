"""The exceptions of embaudit and their exit codes.

Exit code 1 is a verdict on what was checked (a gate that tripped, a text that was flagged) and nothing else, so that a
pipeline can tell it from a command that could not do its work.

An error says what happened (to which checkpoint, token or file), what was kept, and what to do next; ``embaudit.cli``
prints it as one paragraph without a traceback. Anything that is not an ``EmbauditError`` is a bug and keeps its
traceback.

Suggestions for mistyped names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from embaudit.words.masking import masked
from embaudit.words.sentences import listing, punctuated

EXIT_DONE = 0
EXIT_TRIPPED = 1
EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_INTERRUPTED = 130
# Of CUDA and ROCm, by classes that older torch lacks.
OF_DEVICE = ("CUDA error", "CUDA driver error", "HIP error")
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")
MAX_REASON = 240  # characters of a library's message to repeat in an error


class EmbauditError(Exception):
    """An expected failure.

    Args:
        happened: what went wrong and to what, one or two sentences.
        kept: what is still intact (staged files, published tables); empty if nothing was at stake.
        next_step: what the user can type or change now.
    """

    exit_code = EXIT_USAGE

    def __init__(self, happened: str, *, kept: str = "", next_step: str = "") -> None:
        # A library's or server's message may contain a secret, and this text goes to logs and the warehouse.
        self.happened = happened = punctuated(masked(happened))
        self.kept = kept = punctuated(masked(kept))
        self.next_step = next_step = masked(next_step)
        super().__init__(" ".join(part for part in (happened, kept, next_step) if part))

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own pickling, which Prefect and process pools use, loses keyword-only arguments.
        return (_rebuild, (type(self), self.happened, self.kept, self.next_step))


def _rebuild(kind: type[EmbauditError], happened: str, kept: str, next_step: str) -> EmbauditError:
    return kind(happened, kept=kept, next_step=next_step)


class ProblemFound(EmbauditError):
    """What was checked has a problem: a verdict, and not a command that could not do its work.

    Attributes:
        state: the name of a run that ends with it.
        audit: the finished audit, if a flow raised this: it is published, and can still be shown.
    """

    exit_code = EXIT_TRIPPED
    state = "Problem found"
    audit: Any = None


class DoNotServe(ProblemFound):
    """An audit's verdict is not to serve the checkpoint."""

    state = "Do not serve"


class UsageError(EmbauditError):
    """A name, option or setting that does not exist or is invalid."""


class CheckpointError(EmbauditError):
    """A checkpoint that cannot be found, read or trusted."""


class CorpusError(EmbauditError):
    """A corpus that cannot be found or read, or that is too small for the requested measure."""


class EmptyStore(CorpusError):
    """A store of vectors that holds no row, so that nobody can say which of its columns are the vectors."""


class HubUnreachable(CheckpointError, CorpusError):
    """The hub did not answer. The checkpoint or data set may be fine; trying again later may work."""


class HubOffline(HubUnreachable):
    """The hub was not asked, because HF_HUB_OFFLINE is set."""


class MeasureError(EmbauditError):
    """A measure that is undefined on this input (no pair below u, NaN embeddings, too few tokens)."""


class NotMeasurable(MeasureError):
    """An optional measurement that this checkpoint or these texts cannot support; everything else is published."""


class TooLittleMemory(EmbauditError):
    """Weights that would not fit into memory: found before they are loaded. Nothing is wrong with the checkpoint."""


class WarehouseError(EmbauditError):
    """A warehouse that is locked, newer than this program or unreadable, or a query that it rejects."""


class StorageError(EmbauditError):
    """Staging or publishing could not write: disk full, no permission, read-only file system."""


class ServerError(EmbauditError):
    """A Prefect server that is not configured, does not answer, or lacks something a run needs."""


class CheckFailed(EmbauditError):
    """A blocking expectation failed, or an audit that is needed is not published."""


def causes_of(error: BaseException) -> list[BaseException]:
    """An error and its causes, the last error first."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and not any(cause is known for known in found):
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found


def is_of_interrupt(error: BaseException) -> bool:
    """Whether this error was ultimately caused by Ctrl-C.

    If the interrupt comes between two tasks, Prefect 3.8's cleanup uses objects that do not exist yet, and the error of
    the cleanup is raised instead.
    """
    return any(isinstance(cause, KeyboardInterrupt) for cause in causes_of(error))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is the system's, numpy's, torch's (on any device) or DuckDB's error for a lack of memory.

    torch has no class of its own for it on the CPU, nor for what CUDA's libraries ask for by themselves.
    """
    if isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "OutOfMemoryException"):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)


def is_of_device(error: BaseException) -> bool:
    """Whether this is torch's error for an accelerator that failed or is gone.

    An assertion on the device is no such failure: ids beyond a table raise it.
    """
    said = str(error)
    is_named = type(error).__name__ == "AcceleratorError" or any(words in said for words in OF_DEVICE)
    return isinstance(error, RuntimeError) and is_named and "device-side assert" not in said


def is_of_machine(error: BaseException) -> bool:
    """Whether it was memory or a device that failed: what ran on them is not to blame, and what follows fails, too."""
    return is_out_of_memory(error) or is_of_device(error)


def machine_failure(error: BaseException) -> MeasureError | None:
    """What to do about an error whose cause is a lack of memory or a device that failed; None if it is another."""
    causes = causes_of(error)
    if any(map(is_out_of_memory, causes)):
        happened = f"The memory ran out: {one_line(error)}"
        first = "Free some, or use less of it (fewer EMBAUDIT_WORKERS, a smaller --profile, another --device)"
    elif cause := next(filter(is_of_device, causes), None):
        happened = f"The device failed: {one_line(cause)}"
        first = "Look whether it is there (nvidia-smi, the system's log), or take another --device"
    else:
        return None
    return MeasureError(
        happened,
        kept="Every finished step is staged, and the published tables are consistent.",
        next_step=f"{first}, and run the same command again: it continues where it stopped.",
    )


def one_line(error: BaseException) -> str:
    """A library's message on one line, as a sentence."""
    message = " ".join(masked(str(error)).split()).rstrip(" :,;") or type(error).__name__
    message = message if len(message) <= MAX_REASON else message[:MAX_REASON].rsplit(" ", 1)[0] + " …"
    return message if message.endswith((".", "!", "?", "…")) else message + "."


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``name``, or None if none is close."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean NAME? ``, to be followed by another sentence; empty if no name is close."""
    near = closest(name, known)
    return f"Did you mean {near}? " if near else ""


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: the closest name, or all known names if none is close."""
    names = list(known)
    near = closest(name, names)
    return f"; did you mean {near}?" if near else f"; there are {listing(names)}"
