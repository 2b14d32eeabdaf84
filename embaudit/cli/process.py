"""What a command needs of its process, whoever started it: standard streams, a home folder, an end on Ctrl-C."""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn, TextIO

from embaudit.system.files import missing_home
from embaudit.system.processors import share_processors
from embaudit.words.errors import EXIT_INTERRUPTED, StorageError
from embaudit.words.masking import masked_output

STANDARD_STREAMS = (0, 1, 2)
SHOW_CURSOR = b"\x1b[?25h"
# The program or terminal that read the output has ended.
READER_GONE = (errno.EPIPE, errno.EIO, errno.ECONNRESET)
ESCAPE = "embaudit-escape"


def prepare_process() -> None:
    """Prepare this process for a command: called once, before anything else."""
    os.environ.update(missing_home())
    share_processors()
    if isinstance(signal.getsignal(signal.SIGINT), _Interrupts):
        # Another command of this process came before.
        _listen()
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:
        # Not this command's own: a test or another program has put other streams in their place.
        return
    _open_closed_streams()
    codecs.register_error(ESCAPE, _escaped)
    sys.stdout, sys.stderr = _as_output(sys.stdout, 1), _as_output(sys.stderr, 2)
    # Not in the background of a script, where Ctrl-C is for others.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _listen()


def _listen() -> None:
    interrupts = _Interrupts()
    signal.signal(signal.SIGINT, interrupts)
    sys.unraisablehook = interrupts.unraisable


def finish(code: int) -> NoReturn:
    """End with this exit code; what libraries do at the end may be cut short by Ctrl-C.

    Raises:
        StorageError: if what was printed cannot be stored.
    """
    interrupts = signal.getsignal(signal.SIGINT)
    if isinstance(interrupts, _Interrupts):
        interrupts.code = code
    sys.stdout.flush()
    sys.exit(code)


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed: libraries written in other languages turn it into errors of their own."""
    interrupts = signal.getsignal(signal.SIGINT)
    return isinstance(interrupts, _Interrupts) and interrupts.was_pressed


def end_now(code: int) -> NoReturn:
    """End without what libraries do at the end; the temporary server ends with this process."""
    for stream in (sys.stdout, sys.stderr):
        # A signal may come in the middle of a call of the same stream.
        with suppress(OSError, ValueError, RuntimeError, StorageError):
            stream.flush()
    os._exit(code)


class _Interrupts:
    """The first Ctrl-C raises ``KeyboardInterrupt``, so that everything is put in order; the next ends at once.

    Staged files are complete or absent, and tables are published in a transaction, so nothing is lost by that.
    """

    def __init__(self) -> None:
        # The exit code, as soon as there is nothing left to put in order.
        self.code: int | None = None
        self.was_pressed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.was_pressed = True
        if self.code is None and _is_in_hook(frame):
            # On a busy machine the next press comes before the hook has ended, which forgets what is raised, too.
            self._press_again()
            return
        if self.code is None:
            self.code = EXIT_INTERRUPTED
            raise KeyboardInterrupt
        if os.isatty(2):
            with suppress(OSError):
                # Progress bars hide the cursor.
                os.write(2, SHOW_CURSOR)
        end_now(self.code)

    def unraisable(self, lost: Any) -> None:
        """Press again if the first one came where Python prints what is raised and goes on.

        That is so while an object is deleted, in a callback of a weak reference and in those of libraries in C.
        """
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(lost)
        elif self.code == EXIT_INTERRUPTED:
            self.code = None
            self._press_again()

    def _press_again(self) -> None:
        """Not from here, which is a part of that callback."""
        threading.Timer(0.01, os.kill, [os.getpid(), signal.SIGINT]).start()


def _is_in_hook(frame: FrameType | None) -> bool:
    """Whether a signal came while ``_Interrupts.unraisable`` ran."""
    while frame is not None and frame.f_code is not _Interrupts.unraisable.__code__:
        frame = frame.f_back
    return frame is not None


class _Output(io.FileIO):
    """Standard output or standard error that goes on, into nothing, when its reader is gone.

    A pager that was closed or a ``head`` that has read enough must neither stop an audit nor change its exit code.
    """

    def write(self, data: Any) -> int:
        """Write all of it.

        Raises:
            StorageError: if standard output cannot be stored. What is printed about the work may be lost.
        """
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view):
                # None: a pipe that does not block is full.
                written = super().write(view[done:])
                if written is None:
                    select.select([], [self], [])
                done += written or 0
        except OSError as error:
            self._discard()
            if error.errno not in READER_GONE and self.fileno() == 1:
                raise StorageError(
                    f"The output cannot be written: {error.strerror}.",
                    kept="What the command published or wrote elsewhere is whole.",
                    next_step="Free some space, or send the output elsewhere.",
                ) from error
        return len(view)

    def _discard(self) -> None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self.fileno())
        os.close(nothing)


class _MaskedText(io.TextIOWrapper):
    """Text without the secrets of this process, whoever prints it: a command, a traceback, a log, a library."""

    def write(self, text: str) -> int:
        """Write all of it, masked; returns the length that was given, as its caller expects."""
        super().write(masked_output(text))
        return len(text)


def _as_output(stream: TextIO | None, number: int) -> io.TextIOWrapper:
    """A text stream that shows what its encoding cannot as an escape, instead of ending the command."""
    if stream is not None:
        stream.flush()
    encoding = stream.encoding if stream is not None else "utf-8"
    raw = _Output(number, "w", closefd=False)
    buffered = io.BufferedWriter(raw)
    is_interactive = raw.isatty() or number == 2
    return _MaskedText(buffered, encoding=encoding, errors=ESCAPE, line_buffering=is_interactive)


def _open_closed_streams() -> None:
    """Closed standard streams (``<&-``) as empty ones: otherwise the next file or socket would get their numbers."""
    for number in STANDARD_STREAMS:
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one.
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Characters as JSON escapes them, so that ``--json`` stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)), error.end
