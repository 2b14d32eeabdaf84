"""Asks an endpoint for vectors: one request at a time, with time-outs, retries and the server's own limits."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint.prompts import NO_PROMPTS, Prompts
from embaudit.errors import MAX_REASON, EmbauditError, one_line
from embaudit.functions.endpoint.dialects import OPENAI, BadAnswer, Dialect, Encoding, as_vectors
from embaudit.functions.function import Answers, EmbeddingFunction
from embaudit.functions.parts import GONE, Unanswered, encode_in_parts
from embaudit.masking import without_credentials

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

    from embaudit.checkpoint import TextKind

# The key is read from here, sent in a header, and neither stored nor shown.
KEY_VARIABLE = "EMBAUDIT_API_KEY"
SECONDS = 60.0
# A busy server is asked more often than one that fails: on some texts, servers fail every time.
TRIES, TRIES_IF_BUSY = 3, 6
# A server that asks for more patience than this is given up on.
LONGEST_WAIT = 60.0
MOST_TEXTS = 32
# What a server says of a request that is too large for it.
TOO_LARGE = (400, 413, 422)
BUSY = (408, 425, 429)


class EndpointError(EmbauditError):
    """An endpoint that does not answer, refuses the caller, or does not serve embeddings."""


class Failed(Unanswered):
    """The answer to one request cannot be used; the message says why.

    Attributes:
        status: the HTTP status, None if the answer is wrong or none came.
    """

    def __init__(self, reason: str, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.wait = wait

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
        prompts: what its callers put before texts of each role.
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
    ) -> None:
        self.address = address.rstrip("/")
        self.dialect = dialect
        self.model = model
        self.most_texts = most_texts
        self.seconds = seconds
        self.wait_at_most = wait_at_most
        self.prompts = prompts
        self.takes_roles = prompts != NO_PROMPTS
        self.tells_roles_apart = prompts.query != prompts.document
        self.requests = 0
        self._count = threading.Lock()
        self._client: httpx.Client | None = None

    @property
    def interface(self) -> str:  # type: ignore[override]
        return self.dialect.name

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its address and model, without credentials."""
        return without_credentials(self.address) + (f" ({self.model})" if self.model else "")

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        """Vectors of texts, in requests of at most ``most`` texts, ``at_once`` of them at a time.

        Raises:
            EndpointError: if the server refuses the caller, or stops answering.
        """
        return self._encode(self._sent(texts, role), most, at_once)

    def encode_base64(self, texts: Sequence[str]) -> Answers | None:
        """Each text asked for alone and in base64, as OpenAI's client does; None if the API has no such thing."""
        return self._encode(self._sent(texts), 1, encoding="base64") if self.dialect is OPENAI else None

    def _sent(self, texts: Sequence[str], role: TextKind = "text") -> list[str]:
        prompt = getattr(self.prompts, role)
        return [prompt + text for text in texts]

    def _encode(
        self, texts: Sequence[str], most: int | None = None, at_once: int = 1, encoding: Encoding = "float"
    ) -> Answers:
        answers = encode_in_parts(
            lambda some: list(self.ask(some, encoding)),
            texts,
            most or self.most_texts,
            at_once,
            dimension=self.dimension,
            gone=self._gone,
            halved=self._take_fewer,
        )
        self.dimension = self.dimension or answers.vectors.shape[1] or None
        return answers

    def ask(self, texts: Sequence[str], encoding: Encoding = "float") -> np.ndarray:
        """(N, D) vectors of texts, in one request, repeated while the server is busy.

        Raises:
            Failed: if there is no usable answer.
            EndpointError: if the server refuses the caller, or there is none.
        """
        from tenacity import Retrying, retry_if_exception

        for attempt in Retrying(
            stop=_has_tried_enough,
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, Failed) and error.may_pass),
            reraise=True,
        ):
            with attempt:
                return self._once(texts, encoding)
        raise AssertionError("unreachable: the last failure is raised")

    def get(self, path: str) -> Any | None:
        """The JSON at a path of the server; None if there is none.

        Raises:
            EndpointError: if nothing answers at the address.
        """
        import httpx

        try:
            answer = self._open().get(self.address + path)
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except httpx.HTTPError:
            return None
        try:
            return answer.json() if answer.status_code == 200 else None
        except ValueError:
            return None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_fewer(self, failed: Unanswered, texts: int) -> None:
        """Remember that a server refuses so many texts in one request."""
        status = failed.status if isinstance(failed, Failed) else None
        if status == 413 or (status in TOO_LARGE and "batch" in str(failed).lower()):
            self.most_texts = min(self.most_texts, texts // 2)

    def _once(self, texts: Sequence[str], encoding: Encoding) -> np.ndarray:
        import httpx

        with self._count:
            self.requests += 1
        try:
            answer = self._open().post(
                self.address + self.dialect.path, json=self.dialect.body(texts, self.model, encoding)
            )
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except httpx.TimeoutException as error:
            raise Failed(f"no answer within {self.seconds:g} s") from error
        except httpx.HTTPError as error:
            raise Failed(f"the answer breaks off: {one_line(error)}") from error
        self._require_allowed(answer)
        if answer.status_code != 200:
            raise Failed(f"status {answer.status_code}: {_said(answer)}", answer.status_code, _wait_asked(answer))
        try:
            return as_vectors(self.dialect.rows(answer.json()), len(texts))
        except ValueError as error:
            raise Failed("the answer is no JSON, or is cut short") from error
        except BadAnswer as error:
            # Asking again would not change what the server counts or calls a vector.
            raise Failed(f"the answer is not what {self.dialect.name} promises: {error}", 200) from error

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

    def _require_allowed(self, answer: httpx.Response) -> None:
        if answer.status_code in (401, 403):
            has_key = KEY_VARIABLE in os.environ
            raise EndpointError(
                f"{self.name} refuses the caller (status {answer.status_code}): {_said(answer)}",
                next_step=f"Check the key in {KEY_VARIABLE}." if has_key else f"Set {KEY_VARIABLE} to your key.",
            )
        if answer.status_code in (404, 405):
            raise EndpointError(
                f"{self.name} has no {self.dialect.path}, or no such model (status {answer.status_code}): "
                f"{_said(answer)}",
                next_step="Name another API (--api openai, tei or ollama), or a model that it serves (--model).",
            )

    def _gone(self, failed: Unanswered) -> EndpointError:
        return EndpointError(
            f"{self.name} answers none of the first {GONE} requests: {failed}.",
            next_step="Look at the server's log, and whether it serves embeddings.",
        )

    def _unreachable(self, error: Exception) -> EndpointError:
        return EndpointError(
            f"Nothing answers at {without_credentials(self.address)}: {one_line(error)}.",
            next_step="Check the address, and that the server is running.",
        )

    def _open(self) -> httpx.Client:
        import httpx

        if self._client is None:
            key = os.environ.get(KEY_VARIABLE)
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            self._client = httpx.Client(timeout=self.seconds, headers=headers, follow_redirects=False)
        return self._client


def _has_tried_enough(state: RetryCallState) -> bool:
    error = state.outcome.exception() if state.outcome is not None else None
    is_busy = isinstance(error, Failed) and error.status in BUSY
    return state.attempt_number >= (TRIES_IF_BUSY if is_busy else TRIES)


def _said(answer: httpx.Response) -> str:
    """A server's own words, in one line."""
    try:
        content = answer.json()
    except ValueError:
        content = answer.text
    if isinstance(content, dict):
        content = content.get("error", content.get("message", content.get("detail", content)))
    if isinstance(content, dict):
        content = content.get("message", content)
    return " ".join(str(content).split())[:MAX_REASON] or "no reason given"


def _wait_asked(answer: httpx.Response) -> float | None:
    """Seconds in Retry-After; None if it is not there, or a date."""
    try:
        return max(0.0, float(answer.headers.get("retry-after", "")))
    except ValueError:
        return None
