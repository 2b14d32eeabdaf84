"""What a check asks of a slow address is one plan, whose time is told once, from how long the answers took."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from misbehaving import answering, whole

from benchmarks.serving.server import Refusal, Served, serving
from embaudit.cli import waiting as waits
from embaudit.embedders.endpoint.client import KEY_VARIABLE, Endpoint, EndpointError
from embaudit.embedders.endpoint.dialects import OPENAI
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.embedders.kept import FEWEST, RequestPlan, VectorCache
from embaudit.measures.quality.material import sample_material
from embaudit.questions.check.served import check_served
from embaudit.words.errors import MAX_REASON, EmbauditError
from embaudit.words.masking import masked

# (seconds for a request, and for a character)
SERVERS = {"a request": (2.0, 0.0), "a character": (0.0, 0.01), "both": (0.5, 0.004)}


@pytest.mark.parametrize("name", SERVERS)
def test_what_is_left_is_told_from_the_answers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for_each, for_a_character = SERVERS[name]
    rng = np.random.default_rng(0)
    short, long = rng.integers(1, 80, 34), rng.integers(200, 8_000, 60)
    now = [100.0]
    begun = now[0]
    monkeypatch.setattr("embaudit.embedders.kept.time.monotonic", lambda: now[0])
    plan = RequestPlan(len(short) + len(long), int(short.sum() + long.sum()), begun)
    assert plan.left is None
    told = []
    for characters in (*short, *long):
        now[0] += (for_each + for_a_character * characters) * rng.uniform(0.9, 1.1)
        plan.answered(int(characters))
        told.append((now[0] - begun, plan.left))
    whole = now[0] - begun
    for passed, left in told[20:]:
        assert left is not None
        assert whole / 1.5 <= passed + left <= 1.5 * whole
    assert told[-1][1] == pytest.approx(0.0, abs=1e-6)


def vectors(texts: list[str]) -> np.ndarray:
    """Of the bytes of the first sixty characters."""
    return np.array([np.bincount(list(text[:60].encode()), minlength=256) + 0.01 for text in texts], dtype=float)


def test_a_check_has_one_plan_that_is_about_what_it_asks(tmp_path: Path) -> None:
    lines: list[tuple[str, int, int, float | None]] = []

    def told(what: str, done: int, total: int, left: float | None = None) -> None:
        lines.append((what, done, total, left))

    served = Served(vectors)
    with serving(served) as address, open_endpoint(address) as endpoint:
        kept = VectorCache(endpoint, tmp_path, told=told)
        check_served(kept, sample_material().part(0.3))
        assert kept.told is told
        assert endpoint.answered is None
    assert {what for what, *_ in lines} == {f"requests to {endpoint.name}"}
    # From the first few, no time is told.
    assert [done for _, done, _, _ in lines] == list(range(FEWEST, len(served.requests) + 1))
    assert len(served.requests) / 1.5 <= lines[0][2] <= 1.5 * len(served.requests)
    assert all(left is not None for _, _, _, left in lines)


def test_how_long_is_said_once_and_again_if_it_was_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(waits.time, "monotonic", lambda: now[0])
    told = waits.time_left()
    for done in range(1, 31):
        now[0] += 10.0
        told("requests to a slow one", done, 60, 10.0 * (60 - done) * (1 if done < 20 else 3))
    left = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert [line.split(",")[0] for line in left] == [
        "Requests to a slow one: 1 of about 60",
        "Requests to a slow one: 20 of about 60",
    ]
    assert "about 10 min left" in left[0]
    assert "about 20 min left" in left[1]


# ---- said once ----


def test_a_plan_is_said_once_from_its_own_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(waits.time, "monotonic", lambda: now[0])
    told = waits.time_left()
    # Of what came before, a hundred seconds passed: they are none of this plan's.
    now[0] = 100.0
    for done in range(1, 21):
        told("texts asked of a slow one", done, 20)
        now[0] += 10.0
    # Another plan has another rate.
    for done in range(1, 5):
        told("texts asked of a slow one", done, 4)
        now[0] += 60.0
    lines = capsys.readouterr().err.splitlines()
    left = [line for line in lines if "left" in line]
    assert len(left) == 2
    assert "2 of 20, about 3 min left" in left[0]
    assert "2 of 4, about 2 min left" in left[1]
    assert all("slow one: " in line for line in lines)


# ---- A server that repeats the key, in whatever form: it is in no message and no failure ----


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
