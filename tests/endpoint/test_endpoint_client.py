"""An endpoint that answers well, late, wrongly, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.serving.server import Encode, Refusal, Served, serving
from embaudit.embedders.endpoint.client import KEY_VARIABLE, Endpoint, EndpointError
from embaudit.embedders.endpoint.dialects import DIALECTS, BadAnswer, as_vectors
from embaudit.embedders.endpoint.recognise import is_loopback, open_endpoint
from embaudit.words.errors import EmbauditError, UsageError

TEXTS = ["one", "three", "", "fifteen letters"]


def lengths(texts: list[str]) -> np.ndarray:
    """(n, 2) vectors that say which text they are of."""
    return np.array([[len(text), 1.0] for text in texts])


def failing(status: int, times: int, **headers: str) -> Encode:
    """Refuse so many requests, then answer."""
    left = [times]

    def encode(texts: list[str]) -> np.ndarray:
        if left[0]:
            left[0] -= 1
            raise Refusal(status, "not now", {name.replace("_", "-"): value for name, value in headers.items()})
        return lengths(texts)

    return encode


def opened(address: str) -> Endpoint:
    """Recognised, and without waiting between tries."""
    endpoint = open_endpoint(address)
    endpoint.wait_at_most = 0
    return endpoint


@pytest.mark.parametrize("api", ["openai", "tei", "ollama"])
def test_each_api_is_recognised_and_gives_vectors_in_order(api: str) -> None:
    served = Served(lengths, api=api)
    with serving(served) as address, opened(address) as endpoint:
        assert endpoint.dialect is DIALECTS[api]
        answers = endpoint.encode(TEXTS, most=2)
    assert answers.vectors.tolist() == lengths(TEXTS).tolist()
    assert not answers.failures
    assert len(served.requests) == 2


@pytest.mark.parametrize(
    ("pasted", "api"),
    [
        ("/embeddings", "openai"),
        ("/v1/embeddings", "openai"),
        ("/v1/", "openai"),
        ("/embed", "tei"),
        ("/api/embed", "ollama"),
        ("", "tei"),
    ],
)
def test_an_address_may_be_pasted_with_its_path(pasted: str, api: str) -> None:
    with serving(Served(lengths, api=api)) as address, opened(address + pasted) as endpoint:
        assert (endpoint.address, endpoint.dialect.name) == (address, api)


def test_a_server_of_several_models_is_told_which() -> None:
    served = Served(lengths, models=("small", "large"))
    with serving(served) as address:
        with pytest.raises(UsageError, match=r"serves small, large.*--model NAME"):
            open_endpoint(address)
        with open_endpoint(address, model="large") as endpoint:
            endpoint.encode(["a"])
    assert served.requests[0]["model"] == "large"


@pytest.mark.parametrize(
    ("encode", "requests"),
    [(failing(429, 3, Retry_After="0"), 4), (failing(503, 2), 3), (failing(500, 1), 2), (failing(408, 5), 6)],
    ids=["429", "503", "500", "408"],
)
def test_a_busy_server_is_asked_again(encode: Encode, requests: int) -> None:
    served = Served(encode)
    with serving(served) as address, opened(address) as endpoint:
        assert not endpoint.encode(["a"]).failures
        assert endpoint.requests == requests


def test_a_server_that_asks_for_an_hour_is_not_waited_for() -> None:
    with (
        serving(Served(failing(429, 9, Retry_After="3600"))) as address,
        open_endpoint(address) as endpoint,
        pytest.raises(EndpointError, match="asks to wait 3600 s"),
    ):
        endpoint.encode(["a"])


def test_a_request_that_is_too_large_is_halved_and_the_limit_is_kept() -> None:
    served = Served(lengths, most=3)
    with serving(served) as address, opened(address) as endpoint:
        endpoint.most_texts = 8
        texts = [str(number) for number in range(16)]
        assert endpoint.encode(texts).vectors.tolist() == lengths(texts).tolist()
        assert endpoint.most_texts <= 3


def test_one_text_that_fails_leaves_the_others() -> None:
    def encode(texts: list[str]) -> np.ndarray:
        if "" in texts:
            raise Refusal(500, "division by zero")
        return lengths(texts)

    with serving(Served(encode)) as address, opened(address) as endpoint:
        answers = endpoint.encode(TEXTS)
    assert list(answers.failures) == [2]
    assert "division by zero" in answers.failures[2]
    assert np.isnan(answers.vectors[2]).all()
    assert np.isfinite(np.delete(answers.vectors, 2, axis=0)).all()


def edited(change: Callable[[dict[str, list[dict[str, object]]]], object]) -> Callable[[bytes], bytes]:
    def after(body: bytes) -> bytes:
        content = json.loads(body)
        change(content)
        return json.dumps(content).encode()

    return after


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (lambda body: body[:-20], "no JSON, or is cut short"),
        (lambda body: b"<html>502</html>", "no JSON"),
        (edited(lambda content: content["data"].pop()), "1 vectors for 2 texts"),
        (edited(lambda content: content.pop("data")), 'it has no "data"'),
        (edited(lambda content: content["data"][0].update(index=1)), 'the "index" of its vectors is'),
        (edited(lambda content: content["data"][0].update(embedding=[1.0])), "1 and 2 numbers"),
        (edited(lambda content: content["data"][0].update(embedding=["x", "y"])), "no number"),
        (edited(lambda content: content["data"][0].update(embedding="AAA=")), "no float32"),
    ],
)
def test_an_answer_that_is_none_is_named_for_every_text(after: Callable[[bytes], bytes], said: str) -> None:
    with serving(Served(lengths, after=after)) as address, opened(address) as endpoint:
        answers = endpoint.encode(["a", "b"])
    assert set(answers.failures) == {0, 1} or said.startswith("1 vectors for 2")
    assert all(said in reason or "texts" in said for reason in answers.failures.values())


def test_vectors_are_put_where_their_index_says() -> None:
    backwards = edited(lambda content: content["data"].reverse())
    with serving(Served(lengths, after=backwards)) as address, opened(address) as endpoint:
        assert endpoint.encode(TEXTS).vectors.tolist() == lengths(TEXTS).tolist()


def test_base64_is_little_endian_float32() -> None:
    with serving(Served(lengths)) as address, opened(address) as endpoint:
        assert endpoint.encode_base64(TEXTS).vectors.tolist() == lengths(TEXTS).tolist()


def test_null_is_nan() -> None:
    assert np.isnan(as_vectors([[None, 1.0]], 1)[0, 0])
    with pytest.raises(BadAnswer):
        as_vectors(["%%%"], 1)


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(lengths, key="s3cret")
    with serving(served) as address:
        monkeypatch.delenv(KEY_VARIABLE, raising=False)
        with open_endpoint(address) as endpoint, pytest.raises(EndpointError, match=f"Set {KEY_VARIABLE}"):
            endpoint.encode(["a"])
        monkeypatch.setenv(KEY_VARIABLE, "wr0ng")
        with open_endpoint(address) as endpoint, pytest.raises(EndpointError) as refused:
            endpoint.encode(["a"])
        assert "wr0ng" not in str(refused.value)
        monkeypatch.setenv(KEY_VARIABLE, "s3cret")
        with open_endpoint(address) as endpoint:
            assert not endpoint.encode(["a"]).failures
        assert "s3cret" not in endpoint.name + repr(vars(endpoint))


def bad_addresses() -> Iterator[tuple[str, str]]:
    yield "http://127.0.0.1:9", "Nothing answers at http://127.0.0.1:9"
    yield "http://", "is no address"
    yield "http://user:pass@127.0.0.1:9/v1", "Nothing answers at http://127.0.0.1:9"


@pytest.mark.parametrize(("address", "said"), list(bad_addresses()))
def test_a_wrong_address_is_named_without_its_password(address: str, said: str) -> None:
    with pytest.raises(EmbauditError, match=said) as refused:
        open_endpoint(address)
    assert "pass" not in str(refused.value)


def test_a_server_that_serves_no_embeddings_is_named() -> None:
    with serving(replace(Served(lengths), api="tei")) as address, open_endpoint(address, api="openai") as endpoint:
        endpoint.dialect = replace(endpoint.dialect, path="/v1/nothing")
        with pytest.raises(EndpointError, match="has no /v1/nothing"):
            endpoint.encode(["a"])


@pytest.mark.parametrize(
    ("address", "stays"),
    [
        ("http://localhost:8080", True),
        ("http://127.0.0.1", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:80/v1", True),
        ("http://10.0.0.1", False),
        ("https://api.example.com/v1", False),
        ("http://localhost.example.com", False),
    ],
)
def test_loopback_is_this_machine_and_nothing_else(address: str, stays: bool) -> None:
    assert is_loopback(address) == stays
