"""Stores that are servers: their addresses, what they answer, and asking them patiently."""

from __future__ import annotations

import base64
import json
import logging
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from embaudit.stores.copies import changed
from embaudit.stores.place import StorePlace
from embaudit.stores.store import Values
from embaudit.words.errors import CorpusError, UsageError, one_line
from embaudit.words.masking import keep_credentials, keep_secret, without_credentials

Answer = TypeVar("Answer")
WEB = ("http", "https")
# Seconds before each further attempt.
PAUSES: Sequence[float] = (0.5, 1.0, 2.0)
PROBE_SECONDS = 10
REFUSED = (401, 403)
# By what their libraries call it: not reached, or not now.
PASSING = ("connect", "timeout", "timedout", "remoteprotocol", "readerror", "responsehandling", "unavailable")
NOT_NOW = (408, 425, 429, 500, 502, 503, 504)
KEPT = "Nothing was concluded: the rows that were read are not the whole store."


def address_of(place: StorePlace, kind: str) -> SplitResult:
    """The address in ``KIND:http://host:port``, or in the address alone.

    Raises:
        UsageError: if it is none.
    """
    written = place.named[len(kind) + 1 :] if place.scheme == kind else place.named
    keep_credentials(written)
    try:
        address = urlsplit(written)
        is_address = address.scheme in WEB and bool(address.hostname) and address.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise UsageError(
            f"{without_credentials(place.named)} is no address of a server.",
            next_step=f"Write it so: {kind}:http://HOST:PORT",
        )
    keep_secret(address.password and unquote(address.password))
    return address


def without_user(address: SplitResult) -> str:
    """The address without credentials, as a client takes it."""
    return address._replace(netloc=address.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def basic_authorization(address: SplitResult) -> dict[str, str]:
    """The header that credentials of an address become."""
    if address.username is None:
        return {}
    pair = f"{unquote(address.username)}:{unquote(address.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def answers(place: StorePlace, path: str, told: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether a server that is named by an address alone answers at a path as a kind of store does.

    Raises:
        CorpusError: if no server answers there.
        UsageError: if it refuses to say what it is.
    """
    if place.scheme not in WEB:
        return False
    found = _asked(place.named, path)
    return isinstance(found, dict) and told(found)


@lru_cache(maxsize=32)
def _asked(named: str, path: str) -> Any:
    place = StorePlace(named)
    address = address_of(place, "KIND")
    request = urllib.request.Request(without_user(address) + path, headers=basic_authorization(address))
    try:
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as answer:
            return json.loads(answer.read(1 << 16))
    except urllib.error.HTTPError as error:
        # Qdrant says at its root what it is, and wants its key for every other path, also for those of others.
        if error.code in REFUSED and path == "/":
            raise UsageError(
                f"{place.shown} answers with {error.code}: it does not say what it is without a key.",
                next_step="Say what it is, as in qdrant:http://HOST:PORT, and give its key in the environment.",
            ) from error
        return None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            raise no_answer(place.shown, error) from error
        return None


def no_answer(shown: str, error: BaseException) -> CorpusError:
    return CorpusError(
        f"{shown} does not answer: {_reason(error)}.",
        kept="Nothing was read.",
        next_step="Check the address, and that the server runs.",
    )


def patiently(call: Callable[[], Answer], shown: str, key: str) -> Answer:
    """What a server answers; asked again if it does not for now.

    Args:
        key: the environment variable that its key is read from.

    Raises:
        UsageError: if it refuses to answer without a key, or with this one.
        CorpusError: if it does not answer, or with an error.
    """
    for pause in (*PAUSES, None):
        try:
            return call()
        except Exception as error:
            status = _status(error)
            if status in REFUSED or "unauthenticated" in str(error).lower():
                raise UsageError(
                    f"{shown} refuses to answer{f' ({status})' if status else ''}: {_reason(error)}.",
                    next_step=f"Give it a key that may read: export {key}=…",
                ) from error
            is_passing = status in NOT_NOW if status else _is_passing(error)
            if is_passing and pause is not None:
                time.sleep(pause)
                continue
            if is_passing and not status:
                raise no_answer(shown, error) from error
            raise CorpusError(
                f"{shown} answers with an error{f' ({status})' if status else ''}: {_reason(error)}.",
                kept=KEPT,
                next_step="Look at the server's log, and run the command again.",
            ) from error
    raise AssertionError("unreachable")


def _status(error: BaseException) -> int:
    """The HTTP status of an error of any client; 0 if it has none."""
    response = getattr(error, "response", None)
    for found in (getattr(error, "status_code", None), getattr(response, "status_code", None), _code(error)):
        if isinstance(found, int) and 400 <= found < 600:
            return found
    return 0


def _code(error: BaseException) -> Any:
    code = getattr(error, "code", None)
    try:
        return code() if callable(code) else code
    except TypeError:
        return None


def _is_passing(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        text = f"{type(cause).__name__} {cause}".lower().replace(" ", "")
        if isinstance(cause, OSError) or any(word in text for word in PASSING):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _reason(error: BaseException) -> str:
    return one_line(error).rstrip(".")


def counted(
    read: Callable[[Sequence[str]], Iterator[Mapping[str, Values]]], rows: int, shown: str
) -> Callable[[Sequence[str]], Iterator[Mapping[str, Values]]]:
    """Reads a store that others may write to: a pass ends with an error if it had another number of rows."""

    def checked(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        done = 0
        for batch in read(names):
            done += len(next(iter(batch.values()), ()))
            yield batch
        if names and done != rows:
            raise changed(shown)

    return checked


@contextmanager
def quiet(*names: str) -> Iterator[None]:
    """Keeps libraries from writing to logs, and from warning."""
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
