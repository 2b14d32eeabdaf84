"""A real S3 server (moto's) of a test session, in a process of its own; a plugin of ``tests/conftest.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ports import running_server

SECRET = "a-secret-that-must-not-be-shown"


@dataclass(frozen=True)
class Bucket:
    """An empty bucket, and the environment in which programs reach it."""

    address: str
    environment: dict[str, str]

    def objects(self) -> dict[str, str]:
        """Object -> its ETag and when it was written: what rewriting an object changes."""
        store = self.store()
        found = store.find(self.address.removeprefix("s3://"), detail=True)
        return {f"s3://{name}": f"{row['ETag']} {row['LastModified']}" for name, row in found.items()}

    def store(self) -> Any:
        import s3fs

        return s3fs.S3FileSystem(
            key=self.environment["AWS_ACCESS_KEY_ID"],
            secret=SECRET,
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            skip_instance_cache=True,
            use_listings_cache=False,
        )


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    log = tmp_path_factory.mktemp("s3") / "server.log"
    program = str(Path(sys.executable).parent / "moto_server")

    with running_server([program, "-H", "127.0.0.1", "-p", "PORT"], "/moto-api/data.json", log) as address:
        yield address


@pytest.fixture
def bucket(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket of its own for one test, which this process and its children reach by their environment."""
    import fsspec

    environment = {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3_endpoint,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    bucket = Bucket(f"s3://embaudit-{uuid4().hex[:12]}", environment)
    bucket.store().mkdir(bucket.address.removeprefix("s3://"))
    return bucket
