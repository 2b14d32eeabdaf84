"""Tokens and passwords of the environment, and those in addresses, are in no output, log, artifact or file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from commands import Embaudit

from embaudit.words.errors import WarehouseError
from embaudit.words.masking import has_credentials, without_credentials

# Each with a word of its own, so that a leak names its source.
CANARIES = {
    "HF_TOKEN": "hf_canarytoken0000000000000000000000",
    "HUGGING_FACE_HUB_TOKEN": "hf_canaryoldtoken00000000000000000",
    "PREFECT_API_KEY": "pnu_canaryprefectkey",
    "PREFECT_API_AUTH_STRING": "admin:canaryauthstring",
    "PGPASSWORD": "canarypgpassword",
    "AWS_SECRET_ACCESS_KEY": "canaryawssecret",
    "HF_ENDPOINT": "http://user:canaryendpoint@127.0.0.1:9",
    "HTTPS_PROXY": "http://user:canaryproxy@127.0.0.1:9",
    "no_proxy": "127.0.0.1,localhost",
}
SECRETS = [
    *("hf_canarytoken", "hf_canaryoldtoken", "canaryprefectkey", "canaryauthstring", "canarypgpassword"),
    *("canaryawssecret", "canaryendpoint", "canaryproxy", "canarysource"),
]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://user:pass@hub.example/owner/name", "https://hub.example/owner/name"),
        ("cannot reach http://token@127.0.0.1:4200/api (refused)", "cannot reach http://127.0.0.1:4200/api (refused)"),
        ("postgresql+asyncpg://me:p%40ss:w@db/prefect?ssl=1", "postgresql+asyncpg://db/prefect?ssl=1"),
        ("two: s3://a:b@x/y, ftp://c@z", "two: s3://x/y, ftp://z"),
        ("owner/name@main, mail me@example.com", "owner/name@main, mail me@example.com"),
        ("https://hub.example/owner/name@main", "https://hub.example/owner/name@main"),
    ],
)
def test_addresses_lose_their_credentials(text: str, clean: str) -> None:
    assert without_credentials(text) == clean
    assert has_credentials(text) is (text != clean)


def test_errors_repeat_no_credentials() -> None:
    error = WarehouseError("Cannot reach https://user:canary@db.example/x.")
    assert "canary" not in f"{error} {error!r} {error.happened} {error.__reduce__()}"


@pytest.fixture
def with_canaries(embaudit: Embaudit, tmp_path: Path) -> Embaudit:
    """Commands with all canaries in the environment, on a temporary Prefect server whose files lie in the folder."""
    places = {"PREFECT_API_URL": "", "PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_LOGGING_LEVEL": "DEBUG"}

    def run(*arguments: str, **environment: str) -> object:
        return embaudit(*arguments, **{**CANARIES, **places, **environment})

    return run


def contents(folder: Path) -> Iterator[tuple[str, str]]:
    """Everything in every file below: databases and Parquet as the values in them, the rest as its bytes."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        yield str(path), path.read_bytes().decode("latin-1")
        if path.suffix == ".parquet":
            yield str(path), str(pq.read_table(path, partitioning=None).to_pylist())
        elif path.suffix == ".duckdb":
            with duckdb.connect(str(path), read_only=True) as connection:
                for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                    yield f"{path}, {name}", str(connection.execute(f"SELECT * FROM {name}").fetchall())
        elif path.suffix == ".db":
            with sqlite3.connect(path) as database:
                for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    yield f"{path}, {name}", str(database.execute(f'SELECT * FROM "{name}"').fetchall())


@pytest.mark.slow
def test_nothing_that_opens_a_door_is_printed_logged_or_stored(
    with_canaries: Embaudit, tiny_checkpoint: Path, tiny_profile: Path, home: Path, tmp_path: Path
) -> None:
    audit = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm")
    runs = [
        (0, with_canaries(*audit, "--logs")),
        (0, with_canaries("doctor")),
        (0, with_canaries("show")),
        (2, with_canaries("audit", "owner/name@main", "--measures", "socm", "--logs", HF_HUB_OFFLINE="0")),
        (2, with_canaries(*audit, "--corpus", "wikipedia=hub", HF_HUB_OFFLINE="0")),
        (2, with_canaries(*audit, "--corpus", "wikipedia=https://user:canarysource@example.com/x.csv")),
        (2, with_canaries("audit", "https://user:canarysource@example.com/owner/name")),
        (2, with_canaries(*audit, PREFECT_API_URL="http://user:canaryauthstring@127.0.0.1:9/api")),
        (2, with_canaries("doctor", PREFECT_API_URL="http://user:canaryauthstring@127.0.0.1:9/api")),
    ]
    found = []
    for expected, result in runs:
        printed = result.stdout + result.stderr
        if result.args[3] != "doctor":
            assert result.returncode == expected, printed
        found += [f"{secret} printed by {result.args[3:]}" for secret in SECRETS if secret in printed]
    places = list(contents(tmp_path))
    assert any("flow_run" in place for place, _ in places), "Prefect's database was not looked into"
    assert any(place.endswith("duckdb, audit") for place, _ in places)
    found += [f"{secret} in {place}" for place, content in places for secret in SECRETS if secret in content]
    assert not found, "\n".join(found)
    assert os.environ.get("HF_TOKEN") != CANARIES["HF_TOKEN"]
