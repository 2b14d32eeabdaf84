"""A server that answers every request with the same raw bytes, which may have no end."""

from __future__ import annotations

import gzip
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat

Parts = Callable[[], Iterable[bytes]]
# Between the bytes of a server that drips.
PAUSE = 0.02


@contextmanager
def answering(parts: Parts, *, pause: float = 0.0) -> Iterator[str]:
    """The address of a server that sends these parts, until its client has enough; with a pause after each."""
    ended = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self._read_request():
                try:
                    for part in parts():
                        self.wfile.write(part)
                        if ended.wait(pause) if pause else ended.is_set():
                            return
                except OSError:
                    return

        def _read_request(self) -> bool:
            length = 0
            line = self.rfile.readline()
            if not line:
                return False
            while line.strip():
                name, _, value = line.decode("latin-1").partition(":")
                length = int(value) if name.lower() == "content-length" else length
                line = self.rfile.readline()
            self.rfile.read(length)
            return True

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def head(status: str = "200 OK", **headers: object) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode()


def whole(body: bytes, status: str = "200 OK", **headers: object) -> Parts:
    """An ordinary answer."""
    return lambda: [head(status, Content_Length=len(body), **headers), body]


def vectors(text: str) -> bytes:
    """OpenAI's answer to one text, whose vector is this JSON."""
    return f'{{"data": [{{"index": 0, "embedding": {text}}}]}}'.encode()


def chunked(body: Callable[[], Iterable[bytes]], **headers: object) -> Parts:
    """An answer that does not say how long it is."""

    def parts() -> Iterator[bytes]:
        yield head(Transfer_Encoding="chunked", **headers)
        for part in body():
            yield b"%x\r\n%b\r\n" % (len(part), part)
        yield b"0\r\n\r\n"

    return parts


def bomb() -> bytes:
    """A vector of 20 million zeros, in 40 kB."""
    return gzip.compress(vectors("[" + "0," * 20_000_000 + "0]"), 9)


BEGINNING = b'{"data": [{"index": 0, "embedding": [0.5'
DEEP = b"[" * 100_000 + b"]" * 100_000
# Those that never end, and those that only seem to.
ENDLESS: dict[str, tuple[Parts, str]] = {
    "five million numbers": (whole(vectors("[0.5" + ", 0.5" * 4_999_999 + "]")), "it announces 25,000,039 bytes"),
    "five million numbers, in chunks": (
        chunked(lambda: [BEGINNING, *repeat(b", 0.5" * 1_000, 5_000), b"]}]}"]),
        "more than the 2,097,152 bytes that can be needed",
    ),
    "numbers without end": (
        chunked(lambda: chain([BEGINNING], repeat(b", 0.5" * 1_000))),
        "more than the 2,097,152 bytes",
    ),
    "white space without end": (chunked(lambda: repeat(b" " * 4_096)), "more than the 2,097,152 bytes"),
    "interim answers without end": (lambda: repeat(head("103 Early Hints", Link="x" * 1_000)), "more than the"),
    "more numbers than any model has, in few bytes": (
        whole(vectors("[" + "1," * 100_000 + "1]")),
        "a vector has 100,001 numbers, where no model gives more than 32,768",
    ),
    "lists in lists": (whole(DEEP), "nested too deep"),
    "lists in lists, in a vector": (whole(vectors(DEEP.decode())), "nested too deep"),
    "an encoding that was not asked for": (
        whole(b"\x0b\x02\x80", Content_Encoding="br"),
        'encoded as "br", which was not asked for',
    ),
    "gzip that is none": (whole(b"no gzip", Content_Encoding="gzip"), "cannot be unzipped"),
}
DRIPPING: dict[str, tuple[Parts, str]] = {
    "a body": (lambda: [head(Content_Length=1_000_000), *repeat(b" ", 100_000)], "the answer is not whole"),
    "headers": (lambda: [b"HTTP/1.1 200 OK\r\nX: ", *repeat(b"x", 100_000)], "the answer is not whole"),
    "nothing": (lambda: repeat(b"", 1_000_000), "no answer within"),
}
