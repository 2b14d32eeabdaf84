"""Asks an endpoint for vectors: one request at a time, with a deadline, retries and the server's own limits."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from embaudit.checkpoint.prompts import NO_PROMPTS, Prompts
from embaudit.embedders.endpoint.dialects import OPENAI, BadAnswer, Dialect, Encoding, Fields, as_vectors
from embaudit.embedders.endpoint.exchange import LIST_BYTES, Answer, Endless, Pace, most_bytes
from embaudit.embedders.function import AS_SUCH, IN_ORDER, LISTS, Answers, EmbeddingFunction, first_alike
from embaudit.embedders.parts import GONE, Unanswered, encode_in_parts
from embaudit.system.small_files import TooDeep
from embaudit.words.errors import EmbauditError, UsageError, one_line
from embaudit.words.masking import keep_credentials, keep_secret, masked, without_credentials

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from embaudit.checkpoint import TextKind
    from embaudit.embedders.endpoint.exchange import Exchange

NO_FIELDS: Fields = {}
# The key is read from here, sent in a header, and neither stored nor shown.
KEY_VARIABLE = "EMBAUDIT_API_KEY"
# An answer must be whole by then.
SECONDS = 60.0
# A busy server is asked more often than one that fails: on some texts, servers fail every time.
TRIES, TRIES_IF_BUSY = 3, 6
# A server that asks for more patience than this is given up on.
LONGEST_WAIT = 60.0
MOST_TEXTS = 32
# What a server says of a request that is too large for it.
TOO_LARGE = (400, 413, 422)
BUSY = (408, 425, 429)
REFUSED = (401, 403)
# So many that came too late, one after the other: if none was ever in time, and otherwise of each of those that are
# asked at a time. A server may hang on some texts, each asked twice.
LATE, LATE_LATER, TRIES_IF_LATE = 3, 10, 2


class EndpointError(EmbauditError):
    """An endpoint that does not answer, refuses the caller, or does not serve embeddings."""


class Failed(Unanswered):
    """The answer to one request cannot be used; the message says why.

    Attributes:
        status: the HTTP status, None if the answer is wrong or none came.
        advice: what to do if all answers are like this; empty if only the server knows.
    """

    def __init__(
        self,
        reason: str,
        status: int | None = None,
        wait: float | None = None,
        advice: str = "",
        *,
        is_late: bool = False,
    ) -> None:
        # It is put into sentences, and into a table.
        super().__init__(masked(reason).rstrip(". "))
        self.status = status
        self.wait = wait
        self.advice = advice
        self.is_late = is_late

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be answered later."""
        return self.status is None or self.status in BUSY or self.status >= 500

    @property
    def may_be_one_text(self) -> bool:
        """False if the answer is not what the API promises: that is the server's mistake, not one text's."""
        return self.status != 200


class Endpoint(EmbeddingFunction):
    """A served model.

    Args:
        address: the server's address, without the API's path.
        model: its name there; None if it serves one.
        most_texts: texts per request; lowered when the server refuses so many.
        seconds: within which an answer must be whole.
        prompts: what its callers put before texts of each role.
        dimensions: how many numbers it is asked for in a vector; None for all.
        fields: more of a request, by role: what its API has no option for.
        per_minute: requests that it may get in a minute; None for as many as it answers.
    """

    kind = "endpoint"

    def __init__(
        self,
        address: str,
        dialect: Dialect,
        model: str | None = None,
        *,
        most_texts: int = MOST_TEXTS,
        seconds: float = SECONDS,
        wait_at_most: float = LONGEST_WAIT,
        prompts: Prompts = NO_PROMPTS,
        dimensions: int | None = None,
        fields: Mapping[TextKind, Fields] | None = None,
        per_minute: int | None = None,
    ) -> None:
        keep_credentials(address)
        self.address = address.rstrip("/")
        self.dialect = dialect
        self.model = model
        self.most_texts = most_texts
        self.seconds = seconds
        self.wait_at_most = wait_at_most
        self.prompts = prompts
        self.asked_dimensions = dimensions
        self.fields = dict(fields or {})
        self.requests = 0
        self._pace = Pace(per_minute)
        self._count = threading.Lock()
        self.sent_elsewhere: Answer | None = None
        self.refused: Answer | None = None
        self._late = 0
        self._has_answered = False
        self._gives_base64: bool | None = None
        self._at_once = 1
        self._exchange: Exchange | None = None
        # Is called after each answer with the characters that were sent for it.
        self.answered: Callable[[int], None] | None = None

    @property
    def typed(self) -> str:
        return without_credentials(self.address)

    @property
    def asked_as(self) -> str:
        return json.dumps(
            [
                *(self.address, self.dialect.name, self.dialect.path, self.model),
                *(self.prompts.as_json(), self.fields, self.asked_dimensions),
            ]
        )

    @property
    def takes_roles(self) -> bool:  # type: ignore[override]
        # A field of every request tells nothing of what texts are used as.
        return any(self.alike(role) != "text" for role in AS_SUCH)

    @property
    def tells_roles_apart(self) -> bool:  # type: ignore[override]
        return self.alike("query") != self.alike("document")

    def alike(self, role: TextKind) -> TextKind:
        return first_alike({one: (getattr(self.prompts, one), self._fields_of(one)) for one in IN_ORDER}, role)

    @property
    def interface(self) -> str:  # type: ignore[override]
        return self.dialect.name

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its address and model, without credentials."""
        return without_credentials(self.address) + (f" ({self.model})" if self.model else "")

    @property
    def _promised(self) -> str:
        return (
            f"Mend what answers there (the server, or a gateway before it): {self.dialect.name} promises a list of "
            "numbers for each text."
        )

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        """Vectors of texts, in requests of at most ``most`` texts, ``at_once`` of them at a time.

        Raises:
            EndpointError: if the server refuses the caller, or stops answering.
        """
        return self._encode(self._sent(texts, role), most, at_once, fields=self._fields_of(role))

    def encode_base64(self, texts: Sequence[str]) -> Answers | None:
        """Each text asked for alone and in base64, as OpenAI's client does; None if the API has no such thing."""
        if self.dialect is not OPENAI:
            return None
        answers = self._encode(self._sent(texts), 1, encoding="base64", fields=self._fields_of("text"))
        if self._gives_base64 is False:
            # What came is not what was asked for: it says nothing of base64.
            nothing = np.full_like(answers.vectors, np.nan)
            return Answers(nothing, dict.fromkeys(range(len(texts)), LISTS))
        return answers

    def _sent(self, texts: Sequence[str], role: TextKind = "text") -> list[str]:
        prompt = getattr(self.prompts, role)
        return [prompt + text for text in texts]

    def _fields_of(self, role: TextKind) -> dict[str, Any]:
        """What a request says besides the texts."""
        fields = {**self.dialect.roles.get(role, {}), **self.fields.get(role, {})}
        if self.asked_dimensions is None:
            return fields
        if self.dialect.dimensions is None:
            raise UsageError(f"{self.dialect.name} gives all of a vector.", next_step="Leave --dimensions out.")
        return {self.dialect.dimensions: self.asked_dimensions, **fields}

    def _encode(
        self,
        texts: Sequence[str],
        most: int | None = None,
        at_once: int = 1,
        encoding: Encoding = "float",
        fields: Fields = NO_FIELDS,
    ) -> Answers:
        self._at_once = at_once
        answers = encode_in_parts(
            lambda some: list(self.ask(some, encoding, fields)),
            texts,
            most or self.most_texts,
            at_once,
            # Where it does not matter what is asked together: servers pad to the longest.
            by_length=most is None,
            # In another encoding, the same bytes may be twice as many numbers: what they are is told by who asked so.
            dimension=self.dimension if encoding == "float" else None,
            gone=self._gone,
            halved=self._take_fewer,
        )
        self.dimension = self.dimension or answers.vectors.shape[1] or None
        return answers

    def ask(self, texts: Sequence[str], encoding: Encoding = "float", fields: Fields = NO_FIELDS) -> np.ndarray:
        """(N, D) vectors of texts, in one request, repeated while the server is busy.

        Raises:
            Failed: if there is no usable answer.
            EndpointError: if the server refuses the caller, or there is none.
        """
        from tenacity import Retrying, retry_if_exception

        for attempt in Retrying(
            stop=self._has_tried_enough,
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, Failed) and error.may_pass),
            reraise=True,
        ):
            with attempt:
                return self._once(texts, encoding, fields)
        raise AssertionError("unreachable: the last failure is raised")

    def get(self, path: str) -> Any | None:
        """The JSON at a path of the server; None if there is none.

        Raises:
            EndpointError: if nothing answers at the address, or what answers does not end.
        """
        import httpx

        try:
            answer = self._open()("GET", self.address + path, LIST_BYTES)
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except Endless as error:
            raise EndpointError(
                f"What {self.name} answers to GET {path} has no end that can be waited for: {error}.",
                next_step="Check that this is the address of a server of embeddings.",
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
        if answer.elsewhere is not None:
            self.sent_elsewhere = answer
        if answer.status in REFUSED:
            self.refused = answer
        try:
            return answer.json() if answer.status == 200 else None
        except ValueError:
            return None

    def close(self) -> None:
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None

    def _take_fewer(self, failed: Unanswered, texts: int) -> None:
        """Remember that a server refuses so many texts in one request."""
        status = failed.status if isinstance(failed, Failed) else None
        if status == 413 or (status in TOO_LARGE and "batch" in str(failed).lower()):
            self.most_texts = min(self.most_texts, texts // 2)

    def _once(self, texts: Sequence[str], encoding: Encoding, fields: Fields) -> np.ndarray:
        import httpx

        self._pace.wait()
        with self._count:
            self.requests += 1
        body = self.dialect.with_fields(self.dialect.body(texts, self.model, encoding), fields)
        path = self.dialect.path.replace("{model}", quote(self.model or "", safe=""))
        try:
            answer = self._open()("POST", self.address + path, most_bytes(len(texts)), body)
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except httpx.ConnectTimeout as error:
            raise self._too_late(Endless("no connection", is_late=True, has_begun=False)) from error
        except Endless as error:
            if error.is_late:
                raise self._too_late(error) from error
            raise Failed(f"the answer is too large: {error}", 200, advice=self._promised) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Failed(f"the answer cannot be read to its end: {one_line(error)}") from error
        self._late, self._has_answered = 0, True
        if self.answered is not None:
            with self._count:
                self.answered(sum(map(len, texts)))
        self.require_allowed(answer)
        if answer.status != 200:
            raise Failed(f"status {answer.status}: {answer.said}", answer.status, answer.wait)
        try:
            rows = self.dialect.rows(answer.json())
            if encoding == "base64":
                self._gives_base64 = any(isinstance(row, str) for row in rows)
            return as_vectors(rows, len(texts))
        except TooDeep as error:
            raise Failed(f"the answer cannot be read: {error}", 200, advice=self._promised) from error
        except ValueError as error:
            raise Failed("the answer is no JSON, or is cut short") from error
        except BadAnswer as error:
            # Asking again would not change what the server counts or calls a vector.
            reason = f"the answer is not what {self.dialect.name} promises: {error}"
            raise Failed(reason, 200, advice=error.advice or self._promised) from error

    def _too_late(self, error: Endless) -> Failed:
        """The failure to report; what has begun and does not end is not asked for again.

        Raises:
            EndpointError: if too many were late.
        """
        with self._count:
            self._late += 1
            if self._late >= (LATE_LATER * self._at_once if self._has_answered else LATE):
                raise EndpointError(
                    f"{self.name} was too late {self._late} times in a row: {error}.",
                    next_step="Look at the server's log and load, and whether a proxy before it holds answers back.",
                ) from error
        return Failed(str(error), 200 if error.has_begun else None, is_late=True)

    def _has_tried_enough(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome is not None else None
        tries = TRIES
        if isinstance(error, Failed) and error.status in BUSY:
            tries = TRIES_IF_BUSY
        elif isinstance(error, Failed) and error.is_late:
            tries = TRIES_IF_LATE if self._has_answered else 1
        return state.attempt_number >= tries

    def _wait(self, state: RetryCallState) -> float:
        """What the server asks for, else 0.5, 1, 2 s."""
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.wait if isinstance(error, Failed) else None
        if asked is not None and asked > self.wait_at_most:
            raise EndpointError(
                f"{self.name} asks to wait {asked:.0f} s before the next request.",
                next_step="Run the same command again then, or ask for a higher rate limit.",
            )
        return asked if asked is not None else min(0.5 * 2.0 ** (state.attempt_number - 1), self.wait_at_most)

    def require_allowed(self, answer: Answer) -> None:
        if answer.status in REFUSED:
            has_key = KEY_VARIABLE in os.environ
            raise EndpointError(
                f"{self.name} refuses the caller (status {answer.status}): {answer.said}",
                next_step=f"Check the key in {KEY_VARIABLE}." if has_key else f"Set {KEY_VARIABLE} to your key.",
            )
        if answer.status in (404, 405):
            raise EndpointError(
                f"{self.name} has no {self.dialect.path}, or no such model (status {answer.status}): {answer.said}",
                next_step="Name another API (--api), or a model that it serves (--model).",
            )
        if answer.elsewhere is not None:
            raise self.elsewhere(answer, self.dialect.path)

    def elsewhere(self, answer: Answer, path: str) -> EndpointError:
        """The error for a redirect, which is not followed: the key and the texts would go where nobody sent them."""
        to = (answer.elsewhere or "").rstrip("/").removesuffix(path)
        return EndpointError(
            f"{self.name} sends whoever asks it elsewhere (status {answer.status}): to {answer.elsewhere}",
            kept="Redirects are not followed.",
            next_step=f"If that is the server that you mean, give its address{f': {to}' if '://' in to else '.'}",
        )

    def _gone(self, failed: Unanswered) -> EndpointError:
        advice = failed.advice if isinstance(failed, Failed) else ""
        return EndpointError(
            f"{self.name} answers none of the first {GONE} requests: {failed}.",
            next_step=advice or "Look at the server's log, and whether it serves embeddings.",
        )

    def _unreachable(self, error: Exception) -> EndpointError:
        return EndpointError(
            f"Nothing answers at {without_credentials(self.address)}: {one_line(error)}.",
            next_step="Check the address, and that the server is running.",
        )

    def _open(self) -> Exchange:
        from embaudit.embedders.endpoint.exchange import Exchange

        if self._exchange is None:
            # Read from a file, it ends in a newline.
            key = os.environ.get(KEY_VARIABLE, "").strip()
            keep_secret(key)
            if not (key.isascii() and key.isprintable()):
                raise EndpointError(
                    f"The key in {KEY_VARIABLE} has characters that cannot be sent in a header.",
                    next_step=f"Set {KEY_VARIABLE} to the key alone, as the server's page shows it.",
                )
            self._exchange = Exchange(self.dialect.key(key) if key else {}, self.seconds)
        return self._exchange
