"""Which values are secrets, what masking leaves alone, and the exits through which text leaves."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
from pathlib import Path

import pytest
from commands import run_here

from embaudit.cli.process import _MaskedText
from embaudit.declared.document import Page
from embaudit.declared.rule import Finding
from embaudit.embedders.endpoint.client import Failed
from embaudit.pages.html import render as as_html
from embaudit.pages.text import render as as_markdown
from embaudit.warehouse.write import sql_value
from embaudit.words.errors import UsageError, one_line
from embaudit.words.masking import keep_credentials, keep_secret, keep_secrets_of, mask_error, masked, masked_output
from embaudit_tasks import ReadableLines

KEY = "sk-canary/0123456789+abc"
# A variable, its value, and what of it is secret.
SETTINGS = [
    ("EMBAUDIT_API_KEY", KEY, KEY),
    ("EMBAUDIT_API_KEY", f"{KEY}\n", KEY),
    ("HF_TOKEN", "hf_canary0123456789", "hf_canary0123456789"),
    ("HUGGING_FACE_HUB_TOKEN", "hf_canary0123456789", "hf_canary0123456789"),
    ("PREFECT_API_KEY", "pnu_canary0123456789", "pnu_canary0123456789"),
    ("PREFECT_API_AUTH_STRING", "admin:canary-0123456789", "canary-0123456789"),
    ("PREFECT_SERVER_API_AUTH_STRING", "admin:canary-0123456789", "canary-0123456789"),
    ("PREFECT_API_DATABASE_PASSWORD", "canary-0123456789", "canary-0123456789"),
    ("PREFECT_API_DATABASE_CONNECTION_URL", "postgresql+asyncpg://me:canary%2D01234567@db/p", "canary-01234567"),
    ("PREFECT_CLIENT_CUSTOM_HEADERS", '{"Authorization": "Bearer canary-0123456789"}', "canary-0123456789"),
    ("PGPASSWORD", "canary-0123456789", "canary-0123456789"),
    ("AWS_SECRET_ACCESS_KEY", "canary/0123456789+abc", "canary/0123456789+abc"),
    ("AWS_SESSION_TOKEN", "canary/0123456789+abc", "canary/0123456789+abc"),
    ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=canary0123456789==;X=y", "canary0123456789=="),
    ("FSSPEC_S3_SECRET", "canary-0123456789", "canary-0123456789"),
    ("EMBAUDIT_WAREHOUSE", "ducklake:postgres:dbname=x password=canary-01234", "canary-01234"),
    ("EMBAUDIT_STAGING", "s3://id:canary-0123456789@bucket/x", "canary-0123456789"),
    ("EMBAUDIT_REPORT_URL", "https://me:canary-0123456789@host/reports", "canary-0123456789"),
    ("EMBAUDIT_RUNNER_ADDRESS", "tls://me:canary-0123456789@host:8786", "canary-0123456789"),
    ("HF_ENDPOINT", "https://canary-0123456789@hub.example", "canary-0123456789"),
    ("HTTPS_PROXY", "http://me:canary-0123456789@proxy:3128", "canary-0123456789"),
]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment of these variables alone."""
    variables: dict[str, str] = {}
    monkeypatch.setattr("os.environ", variables)
    return variables


# pytest names the running test in the environment, so not by its values.
@pytest.mark.parametrize(("name", "value", "secret"), SETTINGS, ids=range(len(SETTINGS)))
def test_every_setting_that_holds_a_secret_is_known(
    name: str, value: str, secret: str, environment: dict[str, str]
) -> None:
    assert secret in masked(f"It says: {secret}.")
    environment[name] = value
    assert masked(f"It says: {secret}.") == "It says: ***."
    environment.clear()
    # As read from Prefect's profile, say.
    keep_secrets_of({name: value})
    assert masked(f"It says: {secret}.") == "It says: ***."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMBAUDIT_HOME", "/srv/embaudit-home"),
        ("EMBAUDIT_TOKENS_PER_SHARD", "4096000"),
        ("HF_HOME", "/data/huggingface"),
        ("PGUSER", "warehouse_owner"),
        ("PGSSLKEY", str(Path(__file__))),
        ("EMBAUDIT_WAREHOUSE", "ducklake:postgresql://warehouse_owner@db.example/x"),
        ("AWS_PROFILE", "production-reader"),
    ],
)
def test_what_is_no_secret_is_shown(name: str, value: str, environment: dict[str, str]) -> None:
    environment[name] = value
    assert masked_output(f"It says: {value} {value}") == f"It says: {value} {value}"
    assert masked("warehouse_owner@db.example") == "warehouse_owner@db.example"


@pytest.mark.parametrize("key", ["", "x", "none", "EMPTY"])
def test_a_key_of_a_few_characters_takes_no_word_out_of_a_text(key: str, environment: dict[str, str]) -> None:
    environment["EMBAUDIT_API_KEY"] = key
    text = "none of x is EMPTY: Bearer none"
    assert masked(text) == text


def test_a_secret_that_is_one_word_is_masked_where_it_stands_alone(environment: dict[str, str]) -> None:
    environment |= {"PGPASSWORD": "postgres", "EMBAUDIT_API_KEY": "123456"}
    said = "postgresql at 0.123456 s, 1234567 and 5123456 rows; password=postgres, 'postgres', 123456."
    clean = "postgresql at 0.123456 s, 1234567 and 5123456 rows; password=***, '***', ***."
    assert masked(said) == clean
    basic = base64.b64encode(b"me:postgres").decode()
    assert "cG9zdGdyZX" not in masked(f"Basic {basic}")
    # In JSON and tables, words are names and numbers are figures.
    assert masked_output('{"postgres": 123456}') == '{"postgres": 123456}'


def test_masking_leaves_json_and_other_texts_as_they_are(environment: dict[str, str]) -> None:
    environment["EMBAUDIT_API_KEY"] = KEY
    text = json.dumps({"a": f"it is {KEY}", "b": [1.5, None, "sk-", KEY[:4], "canary"]}, indent=1)
    assert json.loads(masked_output(text)) == {"a": "it is ***", "b": [1.5, None, "sk-", KEY[:4], "canary"]}
    untouched = "Text, tables | 0.25 |\nand more: sk-other/0123456789, 0123456789.\n"
    assert masked(untouched) == untouched


def test_both_ends_of_a_secret_that_was_cut_in_the_middle_are_masked(environment: dict[str, str]) -> None:
    environment["EMBAUDIT_API_KEY"] = key = "sk-canary-" + "0123456789abcdefghij" * 4
    # As pydantic shortens a value.
    assert masked(f"input_value='{key[:25]}...{key[-24:]}', input_type=str") == "input_value='***...', input_type=str"
    # As servers do.
    assert masked("Incorrect API key: sk-ca***************ghij.") == "Incorrect API key: sk-ca***************ghij."


def test_longer_secrets_go_first(environment: dict[str, str]) -> None:
    environment |= {"A_TOKEN": "abcdef-123456", "B_TOKEN": "abcdef-123456-ghijkl-789"}
    assert masked("abcdef-123456-ghijkl-789 abcdef-123456") == "*** ***"


def test_every_exit_masks(environment: dict[str, str]) -> None:
    environment["EMBAUDIT_API_KEY"] = KEY
    error = UsageError(f"a {KEY}", kept=f"b {KEY}", next_step=f"c {KEY}")
    finding = Finding("look", f"d {KEY}", f"e {KEY}", f"f {KEY}")
    stream = _MaskedText(io.BytesIO(), encoding="utf-8")
    assert stream.write(f"g {KEY}\n") == len(KEY) + 3
    stream.flush()
    page = Page(kind="Check of", title=f"h {KEY}", identity=(("i", KEY),), findings=(finding,), sections=())
    said = [
        *(str(error), repr(error), error.kept, error.next_step, one_line(ValueError(f"j {KEY}"))),
        *(str(finding), str(Failed(f"k {KEY}")), as_html(page), as_markdown(page)),
        *(str(sql_value(f"l {KEY}")), str(sql_value({"m": [KEY]}))),
        stream.buffer.getvalue().decode(),  # type: ignore[attr-defined]
    ]
    assert not [text for text in said if "canary" in text]
    assert all("***" in text or "\\*\\*\\*" in text for text in said)


def test_an_error_of_a_library_is_masked_with_its_causes(environment: dict[str, str]) -> None:
    environment["EMBAUDIT_API_KEY"] = KEY
    try:
        try:
            raise OSError(5, f"with {KEY}")
        except OSError as cause:
            raise ValueError(f"has {KEY}", 3) from cause
    except ValueError as error:
        mask_error(error)
        raised = error
    assert raised.args == ("has ***", 3)
    assert "canary" not in repr(raised.__cause__)


def test_a_log_line_and_its_traceback_are_masked(environment: dict[str, str]) -> None:
    environment["EMBAUDIT_API_KEY"] = KEY
    try:
        raise ValueError(f"no {KEY}")
    except ValueError as error:
        record = logging.LogRecord(
            "x", 40, __file__, 1, "for %s: %d", (KEY, 3), (type(error), error, error.__traceback__)
        )
    assert ReadableLines().filter(record)
    said = logging.Formatter().format(record)
    assert said.startswith("for ***: 3\nTraceback")
    assert said.endswith("ValueError: no ***")


def test_secrets_from_elsewhere_are_kept(environment: dict[str, str]) -> None:
    keep_secret("hf_fromafile0123", None, "")
    keep_credentials("postgresql://me:canary%2D0123@db/x")
    assert masked("hf_fromafile0123 canary-0123 canary%2D0123 me db") == "*** *** *** me db"


def test_a_bug_shows_its_traceback_without_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> bool:
        raise LookupError(f"who knows {os.environ['EMBAUDIT_API_KEY']}?")

    monkeypatch.setattr("embaudit.cli.waiting.is_address", fails)
    result = run_here(("check", "http://127.0.0.1:9"), {**os.environ, "EMBAUDIT_API_KEY": KEY}, tmp_path)
    assert result.returncode == 3
    assert "LookupError: who knows ***?" in result.stderr
    assert "canary" not in result.stdout + result.stderr
