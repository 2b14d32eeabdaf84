"""Access to staged files in a local folder or any fsspec location (s3://, gs://, az://, sftp:// …).

A place is a string: an absolute local path, or an address with a scheme for fsspec, whose packages (s3fs, gcsfs, adlfs)
read credentials from the environment, a profile or the machine's role. So addresses contain no credentials, and none
are stored. Files are complete or absent everywhere: see ``upload``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from embaudit.words.errors import StorageError, UsageError
from embaudit.words.masking import without_credentials

# In these stores a file becomes visible only when complete; in others it is uploaded and then moved into place.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "memory"}
PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
}
MAX_REASON = 200


def is_remote(place: str | Path) -> bool:
    """Whether it is an fsspec location."""
    return "://" in str(place)


def within(place: str | Path, *names: str) -> str:
    """The place of a file or folder below ``place``."""
    if is_remote(place):
        return "/".join((str(place).rstrip("/"), *names))
    return str(Path(place).joinpath(*names))


def name_within(place: str | Path) -> str:
    """The last component of a place."""
    return PurePosixPath(str(place)).name


def is_file(place: str | Path) -> bool:
    """Whether the file exists now, ignoring cached listings.

    Raises:
        StorageError: if the store does not answer.
    """
    if not is_remote(place):
        return Path(place).is_file()
    with translate_errors(place):
        store, key = store_of(place)
        store.invalidate_cache()
        # Not fsspec's isfile, which returns False if the store does not answer.
        try:
            return bool(store.info(key)["type"] == "file")
        except FileNotFoundError:
            return False


@contextmanager
def readable(place: str | Path) -> Iterator[Any]:
    """A source for pyarrow: the path, or an open file of the store. The store's errors are not translated."""
    if not is_remote(place):
        yield str(place)
        return
    store, key = store_of(place)
    store.invalidate_cache()
    with store.open(key, "rb") as file:
        yield file


def upload(file: Path, place: str) -> None:
    """Upload a finished local file, which becomes visible as a whole or not at all.

    Raises:
        StorageError: if the upload fails.
    """
    with translate_errors(place):
        store, key = store_of(place)
        if scheme_of(place) in OBJECT_STORES:
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


@contextmanager
def translate_errors(place: str | Path) -> Iterator[None]:
    """Turn a store's errors into one that names the place and says what to check, without credentials.

    Stores raise classes of their own packages (botocore's have no common base but Exception).
    """
    try:
        yield
    except (StorageError, UsageError):
        raise
    except Exception as error:
        raise unusable(place, error) from error


def unusable(place: str | Path, error: Exception) -> StorageError:
    """Translate a store's error."""
    lines = without_credentials(str(error)).strip().splitlines() or [type(error).__name__]
    reason = lines[0][:MAX_REASON]
    return StorageError(
        f"The staging location {without_credentials(str(place))} cannot be used: {reason}.",
        kept="Everything staged before is kept, and the published tables are unchanged.",
        next_step=f"{_advice(error)}, and run the same command again; it continues here.",
    )


def _advice(error: Exception) -> str:
    known = type(error).__name__
    if "Credential" in known or isinstance(error, PermissionError) or "Token" in known:
        return "Give this machine the store's credentials (its environment, profile or role) and the right to write"
    if isinstance(error, FileNotFoundError):
        return "Create the bucket, or set EMBAUDIT_STAGING to another location"
    return "Check that the store is reachable"


def scheme_of(place: str | Path) -> str:
    return str(place).partition("://")[0] if is_remote(place) else ""


def store_of(place: str | Path) -> tuple[Any, str]:
    """The fsspec file system of a place, and the path within it.

    Raises:
        UsageError: if the scheme is unknown, or its package is missing.
    """
    from fsspec.core import url_to_fs

    scheme = scheme_of(place)
    try:
        store, key = url_to_fs(str(place))
    except (ImportError, ValueError) as error:
        package = PACKAGES.get(scheme)
        raise UsageError(
            f"EMBAUDIT_STAGING cannot use {scheme}:// here: "
            + (f"the package {package} is not installed." if package else "fsspec does not know it."),
            next_step=f"pip install {package}"
            if package
            else "Use a folder, or an address such as s3://bucket/prefix.",
        ) from error
    return store, key
