"""One request and its answer over HTTP: whole, within so many bytes and seconds, or not at all.

httpx's own time-outs are for each read, and it decodes whatever it is sent, so both limits are kept here: on bytes and
seconds beneath it, where nothing passes uncounted (headers, interim answers without end), and on what compressed bytes
become above it.

It keeps to a number of requests a minute, whichever thread sends them.

An answer of a server, and how large and late it may be: what follows from the question, not from the server.

A stranger's server may send a vector of a hundred million numbers, a gzip bomb, a byte a minute or lists in lists
without end. Nothing of that is read to its end.
"""

from __future__ import annotations

import math
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpcore
import httpx

from embaudit.system.small_files import parsed
from embaudit.words.errors import MAX_REASON
from embaudit.words.masking import masked

# Numbers of one vector. The largest that is served today has 12 288.
MOST_NUMBERS = 32_768
# Of one number: 17 digits, sign, point, exponent, comma and the white space of an indented list.
NUMBER_BYTES = 32
# For what stands around the vectors, and for all of an answer without any: a list of models, an error.
AROUND_BYTES = 1 << 20
LIST_BYTES = 8 << 20
# A float of more digits is infinite; Python refuses to read an integer of more than 4300.
MOST_DIGITS = 400
REDIRECTS = (301, 302, 303, 307, 308)


class Endless(Exception):
    """An answer that is larger, or takes longer, than what was asked for can need; the message says which.

    Attributes:
        is_late: whether it took too long.
        has_begun: whether some of it came.
    """

    def __init__(self, reason: str, *, is_late: bool = False, has_begun: bool = True) -> None:
        super().__init__(reason)
        self.is_late = is_late
        self.has_begun = has_begun


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        headers: with names in lower case.
        body: decoded; of an error, the beginning.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Its content; an integer that is no float is infinite, as such a decimal number is.

        Raises:
            ValueError: if it is no JSON, or its lists are nested too deep.
        """
        return parsed(self.body, _integer)

    @property
    def said(self) -> str:
        """A server's own words, in one line."""
        content: Any
        try:
            content = self.json()
        except ValueError:
            content = self.body.decode("utf-8", errors="replace")
        if isinstance(content, dict):
            content = content.get("error", content.get("message", content.get("detail", content)))
        if isinstance(content, dict):
            content = content.get("message", content)
        try:
            words = str(content)
        except RecursionError:
            words = ""
        # Masked before it is cut.
        return " ".join(masked(words).split())[:MAX_REASON] or "no reason given"

    @property
    def elsewhere(self) -> str | None:
        """Where it sends the caller, in one line; None if this is no redirect."""
        if self.status not in REDIRECTS:
            return None
        return masked(self.headers.get("location", ""))[:MAX_REASON] or "nowhere"

    @property
    def wait(self) -> float | None:
        """Seconds in Retry-After; None if it is not there, or a date."""
        try:
            return max(0.0, float(self.headers.get("retry-after", "")))
        except ValueError:
            return None


def most_bytes(texts: int) -> int:
    """Of an answer with the vectors of so many texts."""
    return AROUND_BYTES + texts * MOST_NUMBERS * NUMBER_BYTES


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= MOST_DIGITS else math.copysign(math.inf, -1 if digits[0] == "-" else 1)


MINUTE = 60.0


class Pace:
    """Says when the next request may be sent: evenly spread, so that no window of a minute has more.

    Args:
        per_minute: None for as many as are sent.
    """

    def __init__(
        self,
        per_minute: int | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._apart = MINUTE / per_minute if per_minute else 0.0
        self._now, self._sleep = now, sleep
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Return when the caller's turn has come."""
        if not self._apart:
            return
        with self._lock:
            turn = max(self._next, self._now())
            self._next = turn + self._apart
        self._sleep(max(0.0, turn - self._now()))


# Headers and interim answers, and what encryption and chunks add.
OVERHEAD_BYTES = 1 << 20
GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Exchange:
    """Sends requests with the same headers, over connections that are kept.

    Args:
        headers: of every request.
        seconds: within which an answer must be whole.
    """

    def __init__(self, headers: dict[str, str], seconds: float) -> None:
        self._seconds = seconds
        self._budget = _Budget()
        # Only what is decoded here within bounds.
        headers = {"Accept-Encoding": "gzip, deflate", **headers}
        self._client = httpx.Client(timeout=seconds, headers=headers, follow_redirects=False)
        for transport in (self._client._transport, *self._client._mounts.values()):
            if isinstance(transport, httpx.HTTPTransport):
                # httpx has no option for it; httpcore, whose pool this is, has.
                transport._pool._network_backend = _Network(self._budget, transport._pool._network_backend)

    def __call__(self, method: str, url: str, most: int, content: Any = None) -> Answer:
        """The answer to a request.

        Args:
            most: bytes of the body, decoded; of an answer that is an error, the first ``AROUND_BYTES`` are enough.
            content: sent as JSON.

        Raises:
            Endless: if it is larger, or not whole in time.
            httpx.HTTPError: if there is none, or it breaks off.
        """
        self._budget.begin(self._seconds, most + OVERHEAD_BYTES)
        try:
            with self._client.stream(method, url, json=content) as answer:
                is_error = answer.status_code != 200
                body = _body(answer, AROUND_BYTES if is_error else most, is_cut=is_error)
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return Answer(answer.status_code, headers, body)
        except httpx.ConnectTimeout:
            raise
        except httpx.TimeoutException as error:
            raise self._budget.late() from error

    def close(self) -> None:
        self._client.close()


def _body(answer: httpx.Response, most: int, *, is_cut: bool) -> bytes:
    announced = answer.headers.get("content-length", "")
    if not is_cut and announced.isdecimal() and int(announced[:20]) > most:
        raise Endless(f"it announces {int(announced[:20]):,} bytes, where {most:,} are the most that can be needed")
    body = bytearray()
    for part in _decoded(answer, most):
        body += part
        if len(body) > most:
            if is_cut:
                break
            raise Endless(f"it has more than the {most:,} bytes that can be needed")
    return bytes(body[:most])


def _decoded(answer: httpx.Response, most: int) -> Iterable[bytes]:
    """The body in parts, none of them larger than one byte more than ``most``."""
    coding = answer.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("", "identity"):
        return answer.iter_raw()
    if coding in ("gzip", "x-gzip", "deflate"):
        return _unzipped(answer.iter_raw(), most)
    raise httpx.DecodingError(f'it is encoded as "{coding[:40]}", which was not asked for')


def _unzipped(parts: Iterable[bytes], most: int) -> Iterator[bytes]:
    unzip = zlib.decompressobj(GZIP_OR_ZLIB)
    for part in parts:
        left = part
        while left:
            try:
                yield unzip.decompress(left, most + 1)
            except zlib.error as error:
                raise httpx.DecodingError(f"it cannot be unzipped: {error}") from error
            left = unzip.unconsumed_tail
            if unzip.eof:
                # gzip may have several members.
                left, unzip = unzip.unused_data, zlib.decompressobj(GZIP_OR_ZLIB)


class _Budget(threading.local):
    """What is left of bytes and seconds for the request of this thread."""

    until = float("inf")
    seconds = 0.0
    bytes_left = 0
    received = 0

    def begin(self, seconds: float, most: int) -> None:
        self.until = time.monotonic() + seconds
        self.seconds, self.bytes_left, self.received = seconds, most, 0

    def seconds_left(self, asked: float | None) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise self.late()
        return left if asked is None else min(asked, left)

    def count(self, received: int) -> None:
        self.received += received
        if self.received > self.bytes_left:
            raise Endless(f"it has more than the {self.bytes_left:,} bytes that can be needed")

    def late(self) -> Endless:
        if not self.received:
            return Endless(f"no answer within {self.seconds:g} s", is_late=True, has_begun=False)
        return Endless(f"after {self.seconds:g} s the answer is not whole ({self.received:,} bytes came)", is_late=True)


class _Wrapped(Protocol):
    """What both kinds of httpcore's network streams have."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes: ...
    def write(self, buffer: bytes, timeout: float | None = None) -> None: ...
    def close(self) -> None: ...
    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any: ...
    def get_extra_info(self, info: str) -> Any: ...


class _Stream(httpcore.NetworkStream):
    """A connection that counts."""

    def __init__(self, budget: _Budget, inner: _Wrapped) -> None:
        self._budget, self._inner = budget, inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        part = self._inner.read(max_bytes, self._budget.seconds_left(timeout))
        self._budget.count(len(part))
        return part

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._budget.seconds_left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(
            self._budget, self._inner.start_tls(ssl_context, server_hostname, self._budget.seconds_left(timeout))
        )

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Network(httpcore.NetworkBackend):
    """Opens connections that count."""

    def __init__(self, budget: _Budget, inner: httpcore.NetworkBackend) -> None:
        self._budget, self._inner = budget, inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._budget.seconds_left(timeout)
        return _Stream(self._budget, self._inner.connect_tcp(host, port, left, local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)
