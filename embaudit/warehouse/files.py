"""Staged files where they lie: a local folder, or any place that fsspec reaches (s3://, gs://, az://, sftp:// …).

A place is a string. A local one is a path from the root; anything with a scheme goes through fsspec, whose packages
(s3fs, gcsfs, adlfs) read credentials from their own places: the environment, a profile, the machine's role. So an
address needs none, and none is ever written down. Complete or absent holds everywhere: see ``upload``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import duckdb

from embaudit.errors import StorageError, UsageError
from embaudit.masking import without_credentials

# Here a PUT shows under its name when it is whole, and not before; elsewhere a finished file is moved into its place.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "memory"}
PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
}
MAX_REASON = 200


def is_remote(place: str | Path) -> bool:
    """Whether fsspec has to reach it."""
    return "://" in str(place)


def within(place: str | Path, *names: str) -> str:
    """A file or folder below a place."""
    if is_remote(place):
        return "/".join((str(place).rstrip("/"), *names))
    return str(Path(place).joinpath(*names))


def name_within(place: str | Path) -> str:
    """The last name of a place."""
    return PurePosixPath(str(place)).name


def is_file(place: str | Path) -> bool:
    """Whether there is a file, now: what a store listed a while ago does not count.

    Raises:
        StorageError: if the store does not say.
    """
    if not is_remote(place):
        return Path(place).is_file()
    with explained(place):
        store, key = _store(place)
        store.invalidate_cache()
        # Not fsspec's isfile: to that, a store that does not answer is one that has nothing.
        try:
            return bool(store.info(key)["type"] == "file")
        except FileNotFoundError:
            return False


@contextmanager
def readable(place: str | Path) -> Iterator[Any]:
    """What pyarrow reads a file from: its path, or an open file of the store. Errors come as the store raises them."""
    if not is_remote(place):
        yield str(place)
        return
    store, key = _store(place)
    store.invalidate_cache()
    with store.open(key, "rb") as file:
        yield file


def upload(file: Path, place: str) -> None:
    """Bring a finished local file to its place, where it appears whole or not at all.

    Raises:
        StorageError: if the store does not take it.
    """
    with explained(place):
        store, key = _store(place)
        if _scheme(place) in OBJECT_STORES:
            store.put_file(str(file), key)
            return
        folder, _, name = key.rpartition("/")
        partial = f"{folder}/.{name}.{uuid4().hex[:8]}"
        store.makedirs(folder, exist_ok=True)
        try:
            store.put_file(str(file), partial)
            store.mv(partial, key)
        finally:
            with suppress(Exception):
                store.rm_file(partial)


def let_duckdb_read(connection: duckdb.DuckDBPyConnection, places: Sequence[str]) -> None:
    """Have a connection read files of these stores through fsspec, and not through extensions that it would fetch.

    Raises:
        UsageError: if a store's package is missing.
    """
    for place in places:
        scheme = _scheme(place)
        if not scheme or connection.filesystem_is_registered(scheme):
            continue
        store, _ = _store(place)
        names = [store.protocol] if isinstance(store.protocol, str) else list(store.protocol)
        if not any(connection.filesystem_is_registered(name) for name in names):
            connection.register_filesystem(store)


@contextmanager
def explained(place: str | Path) -> Iterator[None]:
    """Turns what a store raises into an error that names the place and what to look at, and shows no credentials.

    Stores raise what their packages define (botocore's errors have no common base but Exception).
    """
    try:
        yield
    except (StorageError, UsageError):
        raise
    except Exception as error:
        raise unusable(place, error) from error


def unusable(place: str | Path, error: Exception) -> StorageError:
    """A store's error in this project's words."""
    lines = without_credentials(str(error)).strip().splitlines() or [type(error).__name__]
    reason = lines[0][:MAX_REASON]
    return StorageError(
        f"The staging at {without_credentials(str(place))} cannot be used: {reason.rstrip('.')}.",
        kept="Everything staged before it is kept, and the published tables are untouched.",
        next_step=f"{_advice(error)}, and run the same command again; it continues here.",
    )


def _advice(error: Exception) -> str:
    known = type(error).__name__
    if "Credential" in known or isinstance(error, PermissionError) or "Token" in known:
        return "Give this machine the store's credentials (its environment, profile or role) and the right to write"
    if isinstance(error, FileNotFoundError):
        return "Make the bucket, or name another place in EMBAUDIT_STAGING"
    return "See that the store answers"


def _scheme(place: str | Path) -> str:
    return str(place).partition("://")[0] if is_remote(place) else ""


def _store(place: str | Path) -> tuple[Any, str]:
    """The file system of a place, and the place in its words.

    Raises:
        UsageError: if no such kind of place is known, or its package is missing.
    """
    from fsspec.core import url_to_fs

    scheme = _scheme(place)
    try:
        store, key = url_to_fs(str(place))
    except (ImportError, ValueError) as error:
        package = PACKAGES.get(scheme)
        raise UsageError(
            f"EMBAUDIT_STAGING cannot be a place at {scheme}:// here: "
            + (f"the package {package} is not installed." if package else "fsspec knows no such place."),
            next_step=f"pip install {package}" if package else "Name a folder, or a place such as s3://bucket/prefix.",
        ) from error
    return store, key
