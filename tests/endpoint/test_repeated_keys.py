"""A server that repeats the key, in whatever form: it is in no message and no failure."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote

import numpy as np
import pytest
from misbehaving import answering, whole

from benchmarks.serving.server import Refusal, Served, serving
from embaudit.embedders.endpoint.client import KEY_VARIABLE, Endpoint, EndpointError
from embaudit.embedders.endpoint.dialects import OPENAI
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.words.errors import MAX_REASON, EmbauditError
from embaudit.words.masking import masked

KEY = 'sk-proj-4f/Zz+9=&"e\\Qw7xXkTr0LmN'
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a URL": lambda key: quote(key, safe=""),
    "in a URL in a URL": lambda key: quote(quote(key, safe=""), safe=""),
    "in JSON": json.dumps,
    "in JSON in JSON": lambda key: json.dumps(json.dumps(key)),
    "in HTML": html.escape,
    "as Python writes it": repr,
    "as Python writes its bytes": lambda key: repr(key.encode()),
    "as a bearer's": lambda key: f"Bearer {key}",
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "as Basic, with a user": lambda key: "Basic " + base64.b64encode(f"user:{key}".encode()).decode(),
    "as Basic, with more": lambda key: "Basic " + base64.b64encode(f"me:{key}:you".encode()).decode(),
    "over a line break": lambda key: f"{key[:11]}\n   {key[11:]}",
    "cut": lambda key: key[: len(key) * 2 // 3],
    "cut, with an ellipsis": lambda key: f"{key[:9]}…",
    "its second half": lambda key: f"…{key[len(key) // 2 :]}",
}


def remains(text: str) -> bool:
    """Whether so much of the key is left, in any coding, that it is of use."""
    coded = [KEY, base64.b64encode(KEY.encode()).decode(), base64.b64encode(f"me:{KEY}".encode()).decode()[6:]]
    coded += [quote(KEY, safe=""), json.dumps(KEY)[1:-1]]
    return any(one[at : at + 9] in text for one in coded for at in range(len(one) - 9))


@pytest.mark.parametrize("form", list(FORMS.values()), ids=list(FORMS))
def test_a_key_is_masked_in_any_form(form: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    said = masked(f"Incorrect API key provided: {form(KEY)}")
    assert said.startswith("Incorrect API key provided: ")
    assert not remains(said), said


@pytest.mark.parametrize(
    ("status", "name"), zip([401, 404, 400, 500], ["as it is", "cut", *list(FORMS)[3:5]], strict=True)
)
def test_a_repeated_key_is_masked(status: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORMS[name]
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {form(KEY)}"}}).encode()
    with (
        answering(whole(body, f"{status} No")) as address,
        Endpoint(address, OPENAI, "m", wait_at_most=0) as endpoint,
        pytest.raises(EndpointError) as refused,
    ):
        endpoint.encode(["a"] * 5, most=1)
    assert "Incorrect API key provided: " in str(refused.value)
    for said in (str(refused.value), str(refused.value.__cause__), repr(refused.value.__context__)):
        assert not remains(said), said


@pytest.mark.parametrize("before", range(MAX_REASON - 45, MAX_REASON + 1, 9))
def test_a_key_is_masked_before_what_is_said_is_cut(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-0123456789abcdefghij0123456789"
    monkeypatch.setenv(KEY_VARIABLE, key)
    body = ("x" * (before - 1) + " " + key + " is no key").encode()
    with (
        answering(whole(body, "401 No")) as address,
        Endpoint(address, OPENAI, "m") as endpoint,
        pytest.raises(EndpointError) as refused,
    ):
        endpoint.encode(["a"])
    assert "sk-0" not in str(refused.value)


def test_the_password_of_an_address_is_masked_where_a_server_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)

    def encode(texts: list[str]) -> np.ndarray:
        raise Refusal(403, "user reader with password hunter2hunter2 may not")

    with serving(Served(encode)) as address:
        given = address.replace("//", "//reader:hunter2hunter2@")
        with open_endpoint(given) as endpoint, pytest.raises(EndpointError) as refused:
            endpoint.encode(["a"])
    assert "password *** may not" in str(refused.value)


def test_a_key_that_was_read_with_its_newline_is_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-0123456789abcdef\n")
    served = Served(lambda texts: np.ones((len(texts), 2)), key="sk-0123456789abcdef")
    with serving(served) as address, open_endpoint(address) as endpoint:
        assert not endpoint.encode(["a"]).failures


@pytest.mark.parametrize("key", ["sk-0123456789\nabcdef", "sk-0123456789äöü", "sk-01234\x00567"])
def test_a_key_that_no_header_can_hold_is_named_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # No process can be given the last one, but the variable may be set from Python.
    monkeypatch.setattr("os.environ", {KEY_VARIABLE: key})
    with pytest.raises(EmbauditError, match=f"The key in {KEY_VARIABLE} has characters") as refused:
        open_endpoint("http://127.0.0.1:9")
    assert "01234" not in str(refused.value)


def test_a_server_that_lists_nothing_to_strangers_asks_for_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = whole(b'{"error": {"message": "no key"}}', "401 Unauthorized")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with answering(refusal) as address, pytest.raises(EndpointError, match="refuses the caller") as refused:
        open_endpoint(address)
    assert refused.value.next_step == f"Set {KEY_VARIABLE} to your key."
