"""Staging anywhere that fsspec reaches: complete under its name or absent, and errors that name the place alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import fsspec
import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem
from own_processes import Start
from ports import free_port
from s3_server import SECRET, Bucket

from embaudit.steps.staging.files import is_file
from embaudit.steps.staging.stage import read_batches, read_rows, staged_path, write_columns, write_rows
from embaudit.system.settings import Settings
from embaudit.warehouse.write import let_duckdb_read
from embaudit.words.errors import MeasureError, StorageError, UsageError

NUMBERS = {"name": "string", "value": "float64"}
ROWS = [{"name": "x", "value": 1.5}, {"name": "y", "value": None}]


class Disk(LocalFileSystem):
    """A place that stores a file piece by piece, as sftp does: what breaks off leaves a piece."""

    protocol = "disk"
    breaks = False

    def put_file(self, lpath: str, rpath: str, *_: object, **__: object) -> None:
        content = Path(lpath).read_bytes()
        Path(rpath).write_bytes(content[: len(content) // 2] if Disk.breaks else content)
        if Disk.breaks:
            raise ConnectionResetError("the other side hung up")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("disk://"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    fsspec.register_implementation("disk", Disk, clobber=True)
    Disk.breaks = False
    yield f"disk://{tmp_path}/place"
    Disk.breaks = False


@pytest.fixture(params=["folder", "memory", "disk", pytest.param("s3", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "staging")
    if request.param == "memory":
        return f"memory://{request.node.name.replace('[', '-').replace(']', '')}"
    if request.param == "disk":
        return str(request.getfixturevalue("disk"))
    return str(request.getfixturevalue("bucket").address) + "/team"


def test_rows_come_back_from_every_place(place: str) -> None:
    path = staged_path(place, "socm", "abc", "socm_pair", 7)
    assert not is_file(path)
    assert write_rows(path, ROWS, NUMBERS) == 2
    assert is_file(path)
    store, key = fsspec.core.url_to_fs(path)
    assert [name.rsplit("/", 1)[-1] for name in store.find(key.rsplit("/", 1)[0])] == ["socm_pair-00007.parquet"]
    assert read_rows([path]) == ROWS
    assert [batch.to_pylist() for batch in read_batches(path, ["name"])] == [[{"name": "x"}, {"name": "y"}]]


def test_duckdb_reads_every_place(place: str) -> None:
    paths = [staged_path(place, "socm", "abc", "socm_pair", shard) for shard in range(2)]
    for path in paths:
        write_rows(path, ROWS, NUMBERS)
    with duckdb.connect() as connection:
        let_duckdb_read(connection, paths)
        let_duckdb_read(connection, paths)
        assert connection.execute("SELECT count(*), sum(value) FROM read_parquet(?)", [paths]).fetchall() == [(4, 3.0)]


def test_what_fails_in_the_middle_leaves_nothing_and_keeps_what_was_there(place: str) -> None:
    path = staged_path(place, "socm", "abc", "socm_pair")
    bad = [{"name": "bad", "value": float("nan")}]
    with pytest.raises(MeasureError):
        write_rows(path, bad, NUMBERS)
    assert not is_file(path)
    write_rows(path, ROWS, NUMBERS)
    with pytest.raises(MeasureError):
        write_rows(path, bad, NUMBERS)
    assert read_rows([path]) == ROWS


def test_a_missing_file_is_named(place: str) -> None:
    path = staged_path(place, "socm", "abc", "socm_pair", 3)
    for read in (lambda: read_rows([path]), lambda: list(read_batches(path, ["value"]))):
        with pytest.raises(StorageError, match=r"socm_pair-00003\.parquet is missing") as caught:
            read()
        assert "run the same command again" in caught.value.next_step.lower()


def test_a_cut_off_file_is_named(place: str) -> None:
    path = staged_path(place, "socm", "abc", "socm_pair")
    write_columns(path, [{"value": np.random.default_rng(0).random(10_000)}], {"value": "float64"})
    store, key = fsspec.core.url_to_fs(path)
    store.pipe_file(key, store.cat_file(key)[:1_000])
    with pytest.raises(StorageError, match=r"socm_pair-00000\.parquet cannot be read") as caught:
        read_rows([path])
    assert caught.value.next_step.startswith("Delete that file")


def test_an_upload_that_breaks_off_leaves_nothing_under_the_name(disk: str, tmp_path: Path) -> None:
    path = staged_path(disk, "socm", "abc", "socm_pair")
    Disk.breaks = True
    with pytest.raises(StorageError, match="the other side hung up") as caught:
        write_rows(path, ROWS, NUMBERS)
    assert "continues here" in caught.value.next_step
    assert [file for file in (tmp_path / "place").rglob("*") if file.is_file()] == []
    Disk.breaks = False
    write_rows(path, ROWS, NUMBERS)
    assert read_rows([path]) == ROWS


SLOW_WRITER = """
import sys
import numpy as np
from embaudit.steps.staging.stage import ROWS_PER_GROUP, write_columns

def blocks():
    for block in range(int(sys.argv[2])):
        yield {"value": np.random.default_rng(block).random(ROWS_PER_GROUP)}
        print("block", flush=True)

write_columns(sys.argv[1], blocks(), {"value": "float64"})
"""


@pytest.mark.slow
def test_kill_9_while_rows_are_written_leaves_no_object(bucket: Bucket, process: Start) -> None:
    path = staged_path(bucket.address, "socm", "abc", "value")
    writer = process(SLOW_WRITER, path, 1000)
    for _ in range(3):
        writer.says("block")
    writer.kill_9()
    assert bucket.objects() == {}
    write_rows(path, ROWS, NUMBERS)
    assert read_rows([path]) == ROWS


@pytest.mark.slow
def test_a_missing_bucket_is_one_clear_error(bucket: Bucket) -> None:
    with pytest.raises(StorageError, match="bucket does not exist") as caught:
        write_rows(staged_path(f"{bucket.address}-not", "socm", "abc", "a"), ROWS, NUMBERS)
    assert "Create the bucket" in caught.value.next_step
    assert SECRET not in str(caught.value)


@pytest.fixture
def nobody_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """An address of a store that no server answers for."""
    pytest.importorskip("s3fs")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    return "s3://bucket"


def test_a_store_that_is_gone_is_one_clear_error(nobody_there: str) -> None:
    with pytest.raises(StorageError, match="Could not connect") as caught:
        is_file(staged_path(nobody_there, "socm", "abc", "a"))
    assert "Check that the store is reachable" in caught.value.next_step
    assert SECRET not in str(caught.value)


def test_missing_credentials_are_one_clear_error(nobody_there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(StorageError, match="credentials") as caught:
        write_rows(staged_path(nobody_there, "socm", "abc", "a"), ROWS, NUMBERS)
    assert "credentials" in caught.value.next_step


def test_a_place_that_no_package_reaches_is_named() -> None:
    for place, what in (
        ("nowhere://bucket", "fsspec does not know it"),
        ("oci://bucket", "not installed|does not know"),
    ):
        with pytest.raises(UsageError, match=what):
            write_rows(staged_path(place, "socm", "abc", "a"), ROWS, NUMBERS)


@pytest.mark.parametrize("address", ["s3://key:geheim@bucket/team", "s3://geheim@bucket", "sftp://me:geheim@host/a"])
def test_an_address_with_credentials_is_refused_and_not_repeated(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBAUDIT_STAGING", address)
    with pytest.raises(UsageError, match="EMBAUDIT_STAGING contains credentials") as caught:
        Settings()
    assert "geheim" not in str(caught.value)


def test_the_setting_is_a_folder_or_an_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EMBAUDIT_HOME", raising=False)
    assert Settings().staging == str(tmp_path / ".embaudit" / "staging")
    for given, staging in (
        ("here", str(tmp_path / "here")),
        (f"file://{tmp_path}/there", str(tmp_path / "there")),
        ("s3://bucket/prefix/", "s3://bucket/prefix"),
        ("abfs://container@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
    ):
        monkeypatch.setenv("EMBAUDIT_STAGING", given)
        assert Settings().staging == staging


def test_a_variable_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBAUDIT_RUNNER", "horse")
    with pytest.raises(UsageError, match="EMBAUDIT_RUNNER is invalid"):
        Settings()
