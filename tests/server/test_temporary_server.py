"""The temporary server is this program's own: nothing that was set for another server or for a proxy reaches it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from commands import CLI
from some_rows import mostly_slow

from embaudit.words.errors import ServerError, StorageError, UsageError
from embaudit_flows.server import temporary
from embaudit_flows.server.settings import loopback_exempt, require_usable_proxies
from embaudit_flows.server.temporary import TemporaryServer

PROXY = "http://127.0.0.1:9"
OTHER_SERVER = {
    "PREFECT_SERVER_API_AUTH_STRING": "admin:secret",
    "PREFECT_API_AUTH_STRING": "somebody:else",
    "PREFECT_API_KEY": "key",
    "PREFECT_SERVER_API_BASE_PATH": "/prefect/api",
    "PREFECT_API_DATABASE_CONNECTION_URL": "postgresql+asyncpg://127.0.0.1:9/prefect",
    "PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql+asyncpg://127.0.0.1:9/prefect",
    "PREFECT_SERVER_DOCKET_URL": "redis://127.0.0.1:9/0",
    "PREFECT_MESSAGING_BROKER": "prefect_redis.messaging",
    "PREFECT_MESSAGING_CACHE": "prefect_redis.messaging",
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_ENABLED": "false",
    "PREFECT_API_SSL_CERT_FILE": "/nowhere/ca.pem",
    "PREFECT_CLIENT_CUSTOM_HEADERS": '{"Authorization": "Bearer other"}',
    "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "false",
    "PREFECT_DEFAULT_RESULT_STORAGE_BLOCK": "s3-bucket/other",
    "WEB_CONCURRENCY": "auto",
}
PROXIES = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), PROXY)
PROFILES = 'active = "office"\n[profiles.office]\n'
# A flow on this process's server, as a command runs one, after which the settings of the user's own are back.
CODE = """
import os
from embaudit_flows.server.settings import defaults_for_call, server_for_call
before = dict(os.environ)
with defaults_for_call(), server_for_call():
    from prefect import flow, task
    from prefect.artifacts import create_markdown_artifact
    from embaudit_flows.server.temporary import await_server
    await_server()
    @task(persist_result=False)
    def one():
        create_markdown_artifact("words", key="a")
        return 1
    @flow(persist_result=False)
    def two():
        return one() + 1
    assert two() == 2
assert dict(os.environ) == before
"""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This one without any setting of Prefect's or proxy of its own."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    for name in list(plain):
        if name.lower().endswith("_proxy") or name in ("EMBAUDIT_HOME",):
            del plain[name]
    return {**plain, "EMBAUDIT_HOME": str(folder / "home"), **more}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporaryServer]:
    """A server that found half a database, and answers."""
    home = tmp_path_factory.mktemp("home")
    server = TemporaryServer(home)
    server.stop()
    (server.folder / "migrated").unlink(missing_ok=True)
    (server.folder / "prefect.db").write_bytes(b"half of one" * 1000)
    server = TemporaryServer(home)
    server.wait()
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["environment", "profile", ".env"])
def test_settings_for_another_server_and_a_proxy_for_everything(
    started: TemporaryServer, tmp_path: Path, place: str
) -> None:
    prefect_home = tmp_path / "prefect"
    prefect_home.mkdir()
    given: Mapping[str, str] = OTHER_SERVER if place == "environment" else {}
    lines = "".join(f"{name} = '{value}'\n" for name, value in OTHER_SERVER.items() if name.startswith("PREFECT"))
    if place == "profile":
        (prefect_home / "profiles.toml").write_text(PROFILES + lines)
    if place == ".env":
        (tmp_path / ".env").write_text(lines)
    home = str(started.folder.parents[1])
    result = subprocess.run(
        [sys.executable, "-c", CODE],
        # A home whose database is there, and in use.
        env={**environment(tmp_path, PREFECT_HOME=str(prefect_home), **PROXIES, **given), "EMBAUDIT_HOME": home},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    # Neither its records nor its files lie where the user's own server keeps them.
    assert not list(prefect_home.glob("prefect.db*"))


@pytest.mark.slow
def test_it_is_in_a_session_of_its_own_and_has_no_standard_stream_for_a_socket(started: TemporaryServer) -> None:
    assert os.getsid(started._process.pid) == started._process.pid
    assert started.is_running


@pytest.mark.slow
def test_a_half_migrated_database_is_made_anew(started: TemporaryServer) -> None:
    assert (started.folder / "migrated").exists()
    assert (started.folder / "prefect.db").read_bytes().startswith(b"SQLite format 3")


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[TemporaryServer]:
    """A server whose database is none."""
    server = TemporaryServer(tmp_path)
    server.stop()
    (server.folder / "prefect.db").write_bytes(b"no database" * 1000)
    (server.folder / "migrated").touch()
    server = TemporaryServer(tmp_path)
    yield server
    server.stop()


@pytest.mark.slow
def test_one_that_cannot_start_says_why(broken: TemporaryServer) -> None:
    with pytest.raises(ServerError, match=r"could not start: .*file is not a database") as caught:
        broken.wait()
    assert str(broken.folder) in caught.value.next_step


def test_one_that_is_killed_says_so(tmp_path: Path) -> None:
    server = TemporaryServer(tmp_path)
    os.kill(server._process.pid, signal.SIGKILL)
    with pytest.raises(ServerError, match="could not start: its exit code is -9"):
        server.wait()
    server.stop()


def test_one_of_an_earlier_call_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    server = TemporaryServer(tmp_path)
    server.stop()
    monkeypatch.setattr(temporary, "_started", [server])
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:4200/api"}):
        temporary.await_server()
    with temporary_settings({PREFECT_API_URL: server.api_url}), pytest.raises(ServerError, match="could not start"):
        temporary.await_server()


def test_records_that_have_no_place(tmp_path: Path) -> None:
    (tmp_path / "prefect").write_text("a file")
    with pytest.raises(StorageError, match="cannot keep its records") as caught:
        TemporaryServer(tmp_path)
    assert "EMBAUDIT_HOME" in caught.value.next_step


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.mark.parametrize(
    ("given", "exempt"),
    [
        ({}, None),
        ({"NO_PROXY": "example.com"}, None),
        ({"HTTP_PROXY": PROXY}, "127.0.0.1,localhost,::1"),
        ({"https_proxy": PROXY}, "127.0.0.1,localhost,::1"),
        ({"ALL_PROXY": PROXY, "NO_PROXY": "example.com, localhost"}, "example.com,localhost,127.0.0.1,::1"),
        # Where both are set, programs read the lower-case one.
        ({"HTTP_PROXY": PROXY, "NO_PROXY": "127.0.0.1", "no_proxy": "a.b"}, "a.b,127.0.0.1,localhost,::1"),
        ({"HTTP_PROXY": PROXY, "no_proxy": "*"}, "*,127.0.0.1,localhost,::1"),
    ],
)
def test_this_machine_needs_no_proxy(given: dict[str, str], exempt: str | None, no_proxies: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        no_proxies.setenv(name, value)
    assert loopback_exempt() == ({} if exempt is None else {"NO_PROXY": exempt, "no_proxy": exempt})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("HTTP_PROXY", "foo://proxy:3128", "HTTP_PROXY is foo://proxy:3128"),
        ("https_proxy", "htp://me:canary@proxy", "https_proxy is htp://proxy"),
        ("ALL_PROXY", "socks4://proxy:1080", "ALL_PROXY is socks4://proxy"),
        ("HTTP_PROXY", "http://", "HTTP_PROXY is http://"),
        ("HTTP_PROXY", "http://proxy:port", "HTTP_PROXY is http://proxy:port"),
        ("HTTP_PROXY", "http://[::1", "HTTP_PROXY is"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named(
    name: str, value: str, words: str, no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv(name, value)
    with pytest.raises(UsageError) as caught:
        require_usable_proxies()
    assert words in caught.value.happened
    assert name in caught.value.next_step
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("value", ["http://me:secret@proxy:3128", "proxy:3128", "HTTPS://proxy", "http://[::1]:3128"])
def test_a_usable_proxy(value: str, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTPS_PROXY", value)
    require_usable_proxies()


@pytest.mark.parametrize(
    ("file", "text", "variable"),
    mostly_slow(
        [
            (".env", "PREFECT_API_REQUEST_TIMEOUT=abc", {}),
            pytest.param("prefect.toml", "nonsense = [", {}, marks=pytest.mark.slow),
            pytest.param("prefect/profiles.toml", "nonsense = [", {}, marks=pytest.mark.slow),
            ("unread", "", {"PREFECT_LOGGING_LEVEL": "LOUD"}),
        ],
        1,
    ),
)
def test_settings_that_prefect_cannot_read(tmp_path: Path, file: str, text: str, variable: dict[str, str]) -> None:
    (tmp_path / "prefect").mkdir()
    (tmp_path / file).write_text(text)
    result = subprocess.run(
        [*CLI, "ingest", "sts", "sample"],
        env=environment(tmp_path, PREFECT_HOME=str(tmp_path / "prefect"), **variable),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert "Prefect cannot read its settings" in result.stderr


@pytest.mark.parametrize(
    "command", [("ingest", "sts", "sample"), ("setup-server",), pytest.param(("doctor",), marks=pytest.mark.slow)]
)
def test_commands_with_a_proxy_that_cannot_be_used(tmp_path: Path, command: tuple[str, ...]) -> None:
    result = subprocess.run(
        [*CLI, *command],
        env=environment(tmp_path, HTTP_PROXY="foo://proxy", PREFECT_API_URL="http://127.0.0.1:9/api"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode != 1, result.stderr
    assert "Traceback" not in result.stderr
    assert "foo://proxy" in result.stdout + result.stderr
