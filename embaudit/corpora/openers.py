"""Opens corpus files: decompresses them, strips a byte-order mark, and reports failures in one sentence.

A source is a path with a display name and a name that decides its format, so that the same code reads local files and
files from the hub.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from embaudit.words.errors import CorpusError

GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
# By their first bytes; the longer ones first, since UTF-32's mark begins with that of UTF-16.
WIDE_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
# Without a mark: which of the first four bytes, of two or one Latin letters, are zero.
WIDE_LETTERS: dict[tuple[bool, ...], str] = {
    (False, True, True, True): "UTF-32LE",
    (True, True, True, False): "UTF-32BE",
    (False, True, False, True): "UTF-16LE",
    (True, False, True, False): "UTF-16BE",
}


@dataclass(frozen=True)
class ByteSource:
    """A file to read: its display name, its path, and the name that decides its format."""

    shown: str
    path: Path
    name: str

    @property
    def suffix(self) -> str:
        """The format's suffix in lower case, without ``.gz``."""
        return Path(self.name.lower().removesuffix(".gz")).suffix


def local_file(path: Path) -> ByteSource:
    return ByteSource(str(path), path, path.name)


@contextmanager
def reading(source: ByteSource) -> Iterator[IO[bytes]]:
    """Open ``source`` for reading its decompressed bytes.

    Raises:
        CorpusError: if it cannot be opened or completely read, or is UTF-16 or UTF-32.
    """
    try:
        with source.path.open("rb") as raw:
            stream = _unpacked(raw, source)
            yield _without_mark(stream, source)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise CorpusError(
            f"{source.shown} is damaged: its gzip data is truncated or corrupt ({error}).",
            next_step=f"Check it with: gzip -t {source.shown}; then fetch it again.",
        ) from error
    except OSError as error:
        raise os_failure(source.shown, error) from error


def _unpacked(raw: io.BufferedReader, source: ByteSource) -> io.BufferedReader:
    if raw.peek(2)[:2] == GZIP_MAGIC:
        return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=raw)))
    if source.name.lower().endswith(".gz"):
        raise CorpusError(
            f"{source.shown} ends in .gz but is not gzip data.",
            next_step="Rename it without .gz if it is plain text, or fetch it again.",
        )
    return raw


def _without_mark(stream: io.BufferedReader, source: ByteSource) -> io.BufferedReader:
    start = stream.peek(4)[:4]
    encoding = next((name for mark, name in WIDE_MARKS.items() if start.startswith(mark)), None)
    encoding = encoding or WIDE_LETTERS.get(tuple(byte == 0 for byte in start))
    if encoding is not None:
        raise CorpusError(
            f"{source.shown} is {encoding}; corpora must be UTF-8.",
            next_step=f"Convert it: iconv -f {encoding.lower()} -t utf-8 {source.shown} > converted{source.suffix}",
        )
    if start.startswith(UTF8_BOM):
        stream.read(3)
    return stream


def os_failure(shown: str, error: OSError) -> CorpusError:
    """An operating system error about ``shown`` as a CorpusError."""
    if isinstance(error, FileNotFoundError):
        return CorpusError(
            f"There is no file or folder {shown}.", next_step="Check the path; source 'sample' needs no file."
        )
    if isinstance(error, PermissionError):
        return CorpusError(
            f"{shown} cannot be read: permission denied.",
            next_step=f"Grant access: chmod u+r {shown}",
        )
    if isinstance(error, IsADirectoryError):
        return CorpusError(f"{shown} is a folder; a file was expected.", next_step="Name a file in it.")
    return CorpusError(
        f"{shown} could not be read: {error.strerror or error}.",
        next_step="Check its disk or mount.",
    )
