"""Answers without end, or without use: none is read further than what was asked for can need, and each is named."""

from __future__ import annotations

import base64
import gzip
import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from misbehaving import DRIPPING, ENDLESS, PAUSE, Parts, answering, bomb, vectors, whole
from some_rows import mostly_slow

from benchmarks.serving.server import Encode, Refusal, Served, serving
from embaudit.embedders.endpoint.client import KEY_VARIABLE, Endpoint, EndpointError
from embaudit.embedders.endpoint.dialects import DIALECTS, OPENAI, BadAnswer, as_vectors
from embaudit.embedders.endpoint.exchange import AROUND_BYTES, Answer, most_bytes
from embaudit.embedders.endpoint.recognise import is_loopback, open_endpoint
from embaudit.words.errors import EmbauditError, UsageError

SECONDS = 0.4


def asked(address: str, seconds: float = 60.0) -> Endpoint:
    return Endpoint(address, OPENAI, "the-model", wait_at_most=0, seconds=seconds)


@pytest.mark.parametrize(("parts", "said"), list(ENDLESS.values()), ids=list(ENDLESS))
def test_an_answer_without_end_is_left_and_named(parts: Parts, said: str) -> None:
    with answering(parts) as address, asked(address) as endpoint:
        answers = endpoint.encode(["a"])
    assert said in answers.failures[0]
    assert np.isnan(answers.vectors).all()


def test_a_server_of_such_answers_alone_is_left_after_five() -> None:
    with (
        answering(ENDLESS["five million numbers"][0]) as address,
        asked(address) as endpoint,
        pytest.raises(EndpointError, match=r"none of the first 5 requests.*25,000,039 bytes.*Mend what answers there"),
    ):
        endpoint.encode([str(number) for number in range(300)], most=1)
    # Five, and a plain text before it is given up.
    assert endpoint.requests == 6


def test_a_small_answer_that_unpacks_into_a_large_one_is_not_unpacked() -> None:
    body = bomb()
    assert len(body) < 100_000
    with answering(whole(body, Content_Encoding="gzip")) as address, asked(address) as endpoint:
        assert "more than the 2,097,152 bytes" in endpoint.encode(["a"]).failures[0]


@pytest.mark.parametrize("members", [1, 3])
def test_an_honest_compressed_answer_is_read(members: int) -> None:
    text = vectors("[0.5, 1.5]")
    cuts = np.linspace(0, len(text), members + 1).astype(int)
    body = b"".join(gzip.compress(text[start:end]) for start, end in pairwise(cuts))
    with answering(whole(body, Content_Encoding="gzip")) as address, asked(address) as endpoint:
        assert endpoint.encode(["a"]).vectors.tolist() == [[0.5, 1.5]]


@pytest.mark.parametrize(("parts", "said"), mostly_slow(list(DRIPPING.values()), 1), ids=list(DRIPPING))
def test_an_answer_that_drips_is_left_when_its_time_is_over(parts: Parts, said: str) -> None:
    with (
        answering(parts, pause=PAUSE) as address,
        asked(address, seconds=SECONDS) as endpoint,
        pytest.raises(EndpointError, match=f"was too late 3 times in a row: .*{said}"),
    ):
        endpoint.encode(["a", "b", "c", "d"], most=1)
    assert endpoint.requests == 3


def test_one_text_that_hangs_leaves_the_others() -> None:
    def encode(texts: list[str]) -> np.ndarray:
        if "hang" in texts:
            gone.wait()
            raise Refusal(500)
        return np.ones((len(texts), 2))

    gone = threading.Event()
    with serving(Served(encode)) as address, asked(address, seconds=SECONDS) as endpoint:
        try:
            answers = endpoint.encode(["a", "hang", "b"], most=1)
        finally:
            gone.set()
    assert list(answers.failures) == [1]
    assert "no answer within 0.4 s" in answers.failures[1]


@pytest.mark.parametrize("name", ["white space without end", "interim answers without end"])
def test_a_list_of_models_without_end_is_left_and_named(name: str) -> None:
    with answering(ENDLESS[name][0]) as address, pytest.raises(EndpointError, match=r"answers to GET /\S+ has no end"):
        open_endpoint(address)


def test_the_beginning_of_an_error_without_end_is_what_is_said() -> None:
    page = b'{"error": "the model is \xc2\xabloading\xc2\xbb"}' + b" " * (2 * AROUND_BYTES)
    with answering(whole(page, "400 Bad Request")) as address, asked(address) as endpoint:
        assert "the model is «loading»" in endpoint.encode(["a"]).failures[0]


def test_what_may_be_read_follows_from_what_was_asked() -> None:
    largest = json.dumps({"data": [{"index": 0, "embedding": [-1.2345678901234567e-308] * 12_288}]}, indent=2)
    assert len(largest) < most_bytes(1)
    assert most_bytes(32) - most_bytes(31) == most_bytes(1) - most_bytes(0) < 2 * len(largest) + AROUND_BYTES


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_named_and_not_followed(status: int) -> None:
    parts = whole(b"", f"{status} Moved", Location="https://other.example/v1/embeddings")
    with answering(parts) as address, asked(address) as endpoint:
        with pytest.raises(EndpointError, match=rf"elsewhere \(status {status}\): to https://other") as redirected:
            endpoint.encode(["a"])
        assert redirected.value.next_step.endswith("give its address: https://other.example")
        with pytest.raises(EndpointError, match="elsewhere"):
            open_endpoint(address)


@pytest.mark.parametrize("location", [{}, {"Location": "/v1/embeddings/"}, {"Location": "x" * 5_000}])
def test_a_redirect_to_anywhere_is_named(location: dict[str, str]) -> None:
    with answering(whole(b"", "302 Found", **location)) as address, asked(address) as endpoint:
        with pytest.raises(EndpointError, match="elsewhere") as redirected:
            endpoint.encode(["a"])
        assert len(str(redirected.value)) < 1_000


@pytest.mark.parametrize(
    ("vector", "said"),
    mostly_slow(
        [
            ('["0.1", "0.2"]', "no number: the string '0.1'"),
            ('[0.1, "nan"]', "no number: the string 'nan'"),
            ('"[0.1, 0.2]"', "a list that was printed into a string ('[0.1, 0.2]')"),
            ('" [0.1 0.2]"', "a list that was printed into a string"),
            ('"0.1, 0.2"', "a string that is no base64: '0.1, 0.2'"),
            ('"ä"', "a string that is no base64"),
            ("[true, false]", "no number: true or false"),
            ("[[0.1]]", "no number: a list"),
            ("[{}]", "no number: an object"),
            ("{}", "no list of numbers"),
            ("null", "no list of numbers"),
            ("[]", "no list of numbers"),
            ("0.5", "no list of numbers"),
            (f"[1{'0' * 399}]", "larger than any float"),
        ],
        4,
    ),
)
def test_what_is_no_vector_is_named_with_what_to_do(vector: str, said: str) -> None:
    with (
        answering(whole(vectors(vector))) as address,
        asked(address) as endpoint,
        pytest.raises(EndpointError) as refused,
    ):
        endpoint.encode(["a"] * 9, most=1)
    assert said in refused.value.happened
    assert refused.value.next_step.startswith(("Have the server", "Mend what answers there"))
    # Five, and a plain text before it is given up.
    assert endpoint.requests == 6


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1e400", math.inf),
        ("-1e400", -math.inf),
        ("Infinity", math.inf),
        ("NaN", math.nan),
        ("null", math.nan),
        ("9" * 5_000, math.inf),
        ("-" + "9" * 5_000, -math.inf),
        ("12", 12.0),
        ("9007199254740993", 9007199254740992.0),
    ],
)
def test_numbers_that_json_and_floats_do_not_share(number: str, value: float) -> None:
    with answering(whole(vectors(f"[{number}]"))) as address, asked(address) as endpoint:
        answers = endpoint.encode(["a"])
    assert not answers.failures
    assert np.array_equal(answers.vectors, [[value]], equal_nan=True)


def test_a_base64_vector_is_as_long_as_any_other() -> None:
    with pytest.raises(BadAnswer, match="more than 32,768 numbers"):
        as_vectors([base64.b64encode(bytes(4 * 40_000)).decode()], 1)
    assert as_vectors([base64.b64encode(bytes(4 * 32_768)).decode()], 1).shape == (1, 32_768)


@pytest.mark.parametrize("wrap", [lambda deep: {"error": deep}, lambda deep: deep])
def test_an_error_of_lists_in_lists_is_repeated_as_far_as_it_can_be(wrap: Callable[[object], object]) -> None:
    deep: object = "no"
    for _ in range(900):
        deep = [deep]
    Answer(400, {}, json.dumps(wrap(deep)).encode()).said  # noqa: B018  (raises nothing)


# ---- an endpoint that answers well, late, wrongly, or not at all ----


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
