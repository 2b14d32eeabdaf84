"""What an endpoint's client does with each answer or failure: how often it asks, how long it waits, what it says."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest

from embaudit.checkpoint.prompts import Prompts
from embaudit.embedders.endpoint.client import Endpoint, EndpointError, Failed
from embaudit.embedders.endpoint.dialects import DIALECTS, GEMINI, OPENAI, TEI, VOYAGE, BadAnswer, Dialect
from embaudit.embedders.endpoint.exchange import Answer, Endless
from embaudit.embedders.parts import Unanswered
from embaudit.words.errors import UsageError

ADDRESS = "http://made.up"
Came = Answer | Exception


def answer(status: int, content: Any = None, **headers: str) -> Answer:
    body = content if isinstance(content, bytes) else json.dumps(content or {"error": "so it is"}).encode()
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def good(texts: int = 1, of: Any = None) -> Answer:
    return answer(200, {"data": [{"index": place, "embedding": of or [place, 0.5]} for place in range(texts)]})


class Scripted:
    """What comes back, one after the other and the last again and again; and what was sent for it."""

    def __init__(self, came: Iterable[Came]) -> None:
        self.came, self.sent = list(came), list[tuple[str, str, int, Any]]()
        self.is_closed = False

    def __call__(self, method: str, url: str, most: int, content: Any = None) -> Answer:
        self.sent.append((method, url.removeprefix(ADDRESS), most, content))
        one = self.came.pop(0) if len(self.came) > 1 else self.came[0]
        if isinstance(one, Exception):
            raise one
        return one

    def close(self) -> None:
        self.is_closed = True


def endpoint_of(*came: Came, dialect: Dialect = OPENAI, model: str | None = "m", **options: Any) -> Endpoint:
    endpoint = Endpoint(ADDRESS + "/", dialect, model, **options)
    endpoint._exchange = Scripted(came)  # type: ignore[assignment]
    return endpoint


def sent(endpoint: Endpoint) -> list[tuple[str, str, int, Any]]:
    assert isinstance(endpoint._exchange, Scripted)
    return endpoint._exchange.sent


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited for, without waiting."""
    found: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", found.append)
    return found


LATE = Endless("no answer within 60 s", is_late=True, has_begun=False)
HALF = Endless("after 60 s the answer is not whole", is_late=True)
PROMISED = "Mend what answers there"
# What comes back each time; how long is waited between how many tries; the failure of these texts, or the error; what
# it says, with its status, and what to do about it.
DECISIONS: dict[str, tuple[Came, list[float], type[Exception], str, int | None, str]] = {
    "a wrong request": (answer(400), [], Failed, "status 400: so it is", 400, ""),
    "a conflict": (answer(409), [], Failed, "status 409: so it is", 409, ""),
    "too large": (answer(413), [], Failed, "status 413: so it is", 413, ""),
    "not to be processed": (answer(422), [], Failed, "status 422: so it is", 422, ""),
    "too slow a client": (answer(408), [0.5, 1, 2, 4, 8], Failed, "status 408: so it is", 408, ""),
    "too early": (answer(425), [0.5, 1, 2, 4, 8], Failed, "status 425: so it is", 425, ""),
    "busy": (answer(429), [0.5, 1, 2, 4, 8], Failed, "status 429: so it is", 429, ""),
    "busy for 3 s": (answer(429, retry_after="3"), [3] * 5, Failed, "status 429: so it is", 429, ""),
    "busy for no time": (answer(429, retry_after="-1"), [0] * 5, Failed, "status 429: so it is", 429, ""),
    "busy until a date": (
        answer(429, retry_after="Fri, 6 Nov"),
        [0.5, 1, 2, 4, 8],
        Failed,
        "status 429: so it is",
        429,
        "",
    ),
    "busy for as long as is waited": (answer(503, retry_after="60"), [60, 60], Failed, "status 503", 503, ""),
    "busy for longer": (
        answer(503, retry_after="61"),
        [],
        EndpointError,
        "asks to wait 61 s before the next request",
        None,
        "Run the same command again then",
    ),
    "failed": (answer(500), [0.5, 1], Failed, "status 500: so it is", 500, ""),
    "failed behind a gateway": (answer(502), [0.5, 1], Failed, "status 502: so it is", 502, ""),
    "broken off": (httpx.ReadError("gone"), [0.5, 1], Failed, "cannot be read to its end: gone", None, ""),
    "a wrong address": (httpx.InvalidURL("no port"), [0.5, 1], Failed, "cannot be read to its end: no port", None, ""),
    "no JSON": (answer(200, b"<html>"), [0.5, 1], Failed, "no JSON, or is cut short", None, ""),
    "lists in lists": (answer(200, b"[" * 9_999), [], Failed, "the answer cannot be read", 200, PROMISED),
    "another form": (answer(200, [1]), [], Failed, "is not what openai promises", 200, PROMISED),
    "strings": (good(of=["0.1"]), [], Failed, "the string '0.1'", 200, "Have the server"),
    "too few": (good(0), [], Failed, "it gives 0 vectors for 1 texts", 200, PROMISED),
    "too much": (Endless("it has more"), [], Failed, "the answer is too large: it has more", 200, PROMISED),
    "not in time": (LATE, [], Failed, "no answer within 60 s", None, ""),
    "not whole in time": (HALF, [], Failed, "after 60 s the answer is not whole", 200, ""),
    "no connection in time": (httpx.ConnectTimeout("late"), [], Failed, "no connection", None, ""),
    "nobody": (
        httpx.ConnectError("refused"),
        [],
        EndpointError,
        "Nothing answers at http://made.up: refused",
        None,
        "Check the address",
    ),
    "not allowed": (answer(401), [], EndpointError, "refuses the caller (status 401): so it is", None, "Set EMBAUDIT"),
    "forbidden": (answer(403), [], EndpointError, "refuses the caller (status 403): so it is", None, "Set EMBAUDIT"),
    "not there": (answer(404), [], EndpointError, "has no /v1/embeddings, or no such model", None, "Name another API"),
    "not so": (answer(405), [], EndpointError, "such model (status 405): so it is", None, "Name another API"),
    "elsewhere": (
        answer(308, location="https://b.c/v1/embeddings/"),
        [],
        EndpointError,
        "elsewhere (status 308): to https://b.c",
        None,
        "give its address: https://b.c",
    ),
    "nowhere": (answer(302), [], EndpointError, "elsewhere (status 302): to nowhere", None, "give its address."),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_each_failure_has_its_tries_waits_and_words(
    name: str, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EMBAUDIT_API_KEY", raising=False)
    came, expected, kind, said, status, advice = DECISIONS[name]
    endpoint = endpoint_of(came)
    with pytest.raises(kind) as raised:
        endpoint.ask(["a"])
    error = raised.value
    assert said in str(error)
    assert waits == expected
    assert endpoint.requests == len(sent(endpoint)) == len(expected) + 1
    assert getattr(error, "status", None) == status
    given = error.advice if isinstance(error, Failed) else error.next_step  # type: ignore[attr-defined]
    assert advice in given
    assert bool(advice) == bool(given)
    if isinstance(error, Failed):
        assert error.may_be_one_text == (status != 200)
        assert error.is_late == (name in ("not in time", "not whole in time", "no connection in time"))
    # Where it answered in between, that is what counts.
    if kind is Failed and expected:
        waits.clear()
        endpoint = endpoint_of(came, good())
        assert endpoint.ask(["a"]).tolist() == [[0, 0.5]]
        assert waits == expected[:1]


@pytest.mark.parametrize(
    ("failed", "advice"),
    [
        (Unanswered("x"), "Look at the server's log, and whether it serves embeddings."),
        (Failed("x", 500), "Look at the server's log, and whether it serves embeddings."),
        (Failed("x", 200, advice="Mend it."), "Mend it."),
    ],
)
def test_where_none_of_the_first_is_answered_it_is_said_what_to_do(failed: Unanswered, advice: str) -> None:
    error = endpoint_of(good())._gone(failed)
    assert error.happened == "http://made.up (m) answers none of the first 5 requests: x."
    assert error.next_step == advice


def test_no_wait_is_longer_than_was_said(waits: list[float]) -> None:
    endpoint = endpoint_of(answer(429), wait_at_most=1.5)
    with pytest.raises(Failed):
        endpoint.ask(["a"])
    assert waits == [0.5, 1, 1.5, 1.5, 1.5]


def test_whoever_has_a_key_is_told_to_check_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBAUDIT_API_KEY", "k")
    with pytest.raises(EndpointError) as raised:
        endpoint_of(answer(401)).ask(["a"])
    assert raised.value.next_step == "Check the key in EMBAUDIT_API_KEY."


@pytest.mark.parametrize(
    ("at_once", "has_answered", "most"), [(1, False, 3), (4, False, 3), (1, True, 10), (2, True, 20)]
)
def test_so_many_late_ones_in_a_row_are_too_many(
    waits: list[float], at_once: int, has_answered: bool, most: int
) -> None:
    endpoint = endpoint_of(*([good()] if has_answered else []), LATE)
    endpoint._at_once = at_once
    if has_answered:
        endpoint.ask(["a"])
    # Once a server has answered, a text that is late is asked again.
    tries = 2 if has_answered else 1
    for _ in range(-(-most // tries) - 1):
        with pytest.raises(Failed):
            endpoint.ask(["a"])
    with pytest.raises(EndpointError, match=f"was too late {most} times in a row: no answer within 60 s") as raised:
        endpoint.ask(["a"])
    assert "log and load" in raised.value.next_step
    assert endpoint.requests == most + has_answered
    assert waits == [0.5] * (has_answered * most // 2)


def test_an_answer_between_late_ones_begins_the_count_anew(waits: list[float]) -> None:
    endpoint = endpoint_of(good(), *[LATE] * 9, answer(400), *[LATE] * 9, good())
    for has_failed in (False, *[True] * 9, False):
        with pytest.raises(Failed) if has_failed else nullcontext():
            endpoint.ask(["a"])
    assert endpoint.requests == 1 + 9 + 1 + 9 + 1


@pytest.mark.parametrize(
    ("failed", "texts", "left"),
    [
        (Failed("x", 413), 20, 10),
        (Failed("x", 413), 5, 2),
        (Failed("x", 413), 90, 32),
        (Failed("the Batch is too large", 400), 20, 10),
        (Failed("batch", 413), 20, 10),
        (Failed("batch", 422), 20, 10),
        (Failed("x", 400), 20, 32),
        (Failed("x", 422), 20, 32),
        (Failed("batch", 500), 20, 32),
        (Failed("batch"), 20, 32),
    ],
)
def test_only_of_too_many_texts_are_fewer_asked_for(failed: Failed, texts: int, left: int) -> None:
    endpoint = endpoint_of(good())
    endpoint._take_fewer(failed, texts)
    assert endpoint.most_texts == left


@pytest.mark.parametrize(
    ("came", "found", "kept"),
    [
        (answer(200, [1, 2]), [1, 2], None),
        (answer(201, [1, 2]), None, None),
        (answer(404), None, None),
        (answer(200, b"<html>"), None, None),
        (answer(401), None, "refused"),
        (answer(403), None, "refused"),
        (answer(301, location="https://b.c"), None, "sent_elsewhere"),
        (httpx.ReadError("gone"), None, None),
        (httpx.InvalidURL("no port"), None, None),
    ],
)
def test_a_list_is_what_is_there(came: Came, found: Any, kept: str | None) -> None:
    endpoint = endpoint_of(came)
    assert endpoint.get("/v1/models") == found
    assert sent(endpoint) == [("GET", "/v1/models", 8 << 20, None)]
    assert {name: getattr(endpoint, name) for name in ("refused", "sent_elsewhere")} == {
        name: came if name == kept else None for name in ("refused", "sent_elsewhere")
    }


@pytest.mark.parametrize(
    ("came", "said", "advice"),
    [
        (httpx.ConnectError("refused"), "Nothing answers at http://made.up: refused.", "Check the address"),
        (LATE, "GET /v1/models has no end that can be waited for: no answer within 60 s.", "Check that this is the"),
    ],
)
def test_where_no_list_can_be_had_that_is_said(came: Exception, said: str, advice: str) -> None:
    with pytest.raises(EndpointError) as raised:
        endpoint_of(came).get("/v1/models")
    assert said in raised.value.happened
    assert raised.value.next_step.startswith(advice)


ROLES = Prompts(text="t: ", query="q: ", document="d: ")
# What is given; the role; and what is sent.
OPTIONS: list[tuple[Dialect, str | None, dict[str, Any], str, str, Mapping[str, Any]]] = [
    (OPENAI, None, {}, "text", "/v1/embeddings", {"input": ["a", "bc"], "model": "default"}),
    (OPENAI, "m", {"prompts": ROLES}, "text", "/v1/embeddings", {"input": ["t: a", "t: bc"], "model": "m"}),
    (OPENAI, "m", {"prompts": ROLES}, "query", "/v1/embeddings", {"input": ["q: a", "q: bc"]}),
    (OPENAI, "m", {"prompts": ROLES}, "document", "/v1/embeddings", {"input": ["d: a", "d: bc"]}),
    (OPENAI, "m", {"dimensions": 7}, "text", "/v1/embeddings", {"dimensions": 7}),
    (VOYAGE, "m", {"dimensions": 7}, "query", "/v1/embeddings", {"output_dimension": 7, "input_type": "query"}),
    (VOYAGE, "m", {"fields": {"query": {"input_type": "x", "y": 1}}}, "query", "", {"input_type": "x", "y": 1}),
    (VOYAGE, "m", {"fields": {"query": {"y": 1}}}, "document", "", {"input_type": "document", "y": None}),
    (GEMINI, "a/b c", {}, "text", "/v1beta/models/a%2Fb%20c:batchEmbedContents", {}),
]


@pytest.mark.parametrize(("dialect", "model", "options", "role", "path", "expected"), OPTIONS)
def test_what_is_given_is_sent(
    dialect: Dialect, model: str | None, options: dict[str, Any], role: Any, path: str, expected: Mapping[str, Any]
) -> None:
    came = answer(200, {"embeddings": [{"values": [1.0]}] * 2}) if dialect is GEMINI else good(2)
    endpoint = endpoint_of(came, dialect=dialect, model=model, **options)
    heard: list[int] = []
    endpoint.answered = heard.append
    endpoint.encode(["a", "bc"], role)
    ((method, where, most, body),) = sent(endpoint)
    assert (method, where.startswith(path)) == ("POST", True)
    assert most == (1 << 20) + 2 * 32_768 * 32
    assert {name: body.get(name) for name in expected} == expected
    assert heard == [3 + 2 * len(getattr(options.get("prompts", Prompts()), role))]
    assert endpoint.dimension == (1 if dialect is GEMINI else 2)


def test_all_of_a_vector_is_given_where_no_field_asks_for_less() -> None:
    with pytest.raises(UsageError, match="tei gives all of a vector") as raised:
        endpoint_of(good(), dialect=replace(TEI, dimensions=None), dimensions=7).encode(["a"])
    assert raised.value.next_step == "Leave --dimensions out."


@pytest.mark.parametrize(
    ("options", "most", "sizes"), [({}, None, [32, 8]), ({"most_texts": 25}, None, [25, 15]), ({}, 30, [30, 10])]
)
def test_so_many_texts_are_in_a_request(options: dict[str, int], most: int | None, sizes: list[int]) -> None:
    endpoint = endpoint_of(*map(good, sizes), **options)
    texts = [str(place) * (40 - place) for place in range(40)]
    vectors = endpoint.encode(texts, most=most).vectors
    inputs = [body["input"] for *_, body in sent(endpoint)]
    assert list(map(len, inputs)) == sizes
    # Those of one length together, unless it matters what is asked together.
    assert inputs[0] == (texts[: sizes[0]] if most else sorted(texts, key=len)[: sizes[0]])
    assert vectors[texts.index(inputs[1][3])].tolist() == [3, 0.5]


def test_base64_is_asked_for_a_text_at_a_time_and_is_no_list(waits: list[float]) -> None:
    row = np.array([1.5, -2], dtype="<f4").tobytes()
    endpoint = endpoint_of(good(of=base64.b64encode(row).decode()), fields={"text": {"x": 1}})
    answers = endpoint.encode_base64(["a", "b"])
    assert answers is not None
    assert answers.vectors.tolist() == [[1.5, -2]] * 2
    asked = [{name: body[name] for name in ("input", "encoding_format", "x")} for *_, body in sent(endpoint)]
    assert asked == [{"input": [text], "encoding_format": "base64", "x": 1} for text in "ab"]
    lists = endpoint_of(good()).encode_base64(["a", "b"])
    assert lists is not None
    assert np.isnan(lists.vectors).all()
    assert {*lists.failures} == {0, 1}
    assert endpoint_of(good(), dialect=VOYAGE).encode_base64(["a"]) is None


def test_requests_keep_to_their_number_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    endpoint = endpoint_of(good(), per_minute=120)
    monkeypatch.setattr(endpoint._pace, "_sleep", paused.append)
    monkeypatch.setattr(endpoint._pace, "_now", lambda: 100.0)
    for _ in range(3):
        endpoint.ask(["a"])
    assert paused == [0.0, 0.5, 1.0]


def test_closed_it_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = endpoint_of(good(), seconds=7)
    scripted = endpoint._exchange
    endpoint.close()
    assert isinstance(scripted, Scripted)
    assert scripted.is_closed
    made: list[tuple[dict[str, str], float]] = []
    monkeypatch.setattr(
        "embaudit.embedders.endpoint.exchange.Exchange", lambda *given: made.append(given) or Scripted([good()])
    )
    monkeypatch.setenv("EMBAUDIT_API_KEY", " k\n")
    endpoint.ask(["a"])
    endpoint.ask(["a"])
    monkeypatch.delenv("EMBAUDIT_API_KEY")
    endpoint.close()
    endpoint.ask(["a"])
    assert made == [({"Authorization": "Bearer k"}, 7), ({}, 7)]


ROWS: list[tuple[str, Any, str | list[Any]]] = [
    *(
        ("openai", given, 'it has no "data" with an "embedding" each')
        for given in ([], {}, {"data": {}}, {"data": [[1]]})
    ),
    ("openai", {"data": [{"index": 0}]}, 'it has no "data" with an "embedding" each'),
    ("openai", {"data": [{"index": 1, "embedding": [1]}]}, 'the "index" of its vectors is [1]'),
    ("openai", {"data": [{"index": 1, "embedding": [1]}, {"index": 0, "embedding": [2]}]}, [[2], [1]]),
    ("openai", {"data": [{"embedding": [1]}, {"embedding": [2]}]}, [[1], [2]]),
    ("tei", {}, "it is no list of vectors"),
    ("tei", [[1]], [[1]]),
    *(("ollama", given, 'it has no "embeddings"') for given in ([], {}, {"embeddings": {}})),
    ("ollama", {"embeddings": [[1]]}, [[1]]),
    *(("cohere", given, 'it has no "embeddings" with "float"') for given in ([], {}, {"embeddings": {"int8": [[1]]}})),
    ("cohere", {"embeddings": {"float": [[1]]}}, [[1]]),
    ("cohere", {"embeddings": [[1]]}, [[1]]),
    *(
        ("gemini", given, 'it has no "embeddings" with "values" each')
        for given in ([], {}, {"embeddings": [1]}, {"embeddings": [{}]})
    ),
    ("gemini", {"embeddings": [{"values": [1]}]}, [[1]]),
]


@pytest.mark.parametrize(("api", "given", "expected"), ROWS)
def test_each_api_has_its_form_of_answer(api: str, given: Any, expected: str | list[Any]) -> None:
    read = DIALECTS[api].rows
    if isinstance(expected, str):
        with pytest.raises(BadAnswer) as raised:
            read(given)
        assert str(raised.value) == expected
    else:
        assert read(given) == expected
