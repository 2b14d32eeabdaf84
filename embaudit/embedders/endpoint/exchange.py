"""One request and its answer over HTTP: whole, within so many bytes and seconds, or not at all.

httpx's own time-outs are for each read, and it decodes whatever it is sent, so both limits are kept here: on bytes and
seconds beneath it, where nothing passes uncounted (headers, interim answers without end), and on what compressed bytes
become above it.

It keeps to a number of requests a minute, whichever thread sends them.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import httpcore
import httpx

from embaudit.embedders.endpoint.answers import AROUND_BYTES, Answer, Endless

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
