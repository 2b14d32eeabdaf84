"""Access to staged files in a local folder or any fsspec location (s3://, gs://, az://, sftp:// …).

A place is a string: an absolute local path, or an address with a scheme for fsspec, whose packages (s3fs, gcsfs, adlfs)
read credentials from the environment, a profile or the machine's role. So addresses contain no credentials, and none
are stored. Files are complete or absent everywhere: see ``upload``.

Finds and deletes files no longer needed: old staged results, and partial files of killed processes.

All of them can be recomputed. Whatever uses a staged file updates its time (``stage.is_staged``), so its age is the
time since it was last created or used. While an audit runs, a lease in the staging folder keeps what was used since it
began, however long it takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event, Thread
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


DAY_SECONDS = 86_400.0
# A younger partial file may still be in use.
PARTIAL_DAYS = 1.0
# Folder of the leases of running audits, in the staging folder.
LEASES = ".in-use"
RENEWED_SECONDS = 600.0


@dataclass(frozen=True)
class Leftovers:
    """Files to delete, or deleted ones."""

    staged: tuple[Path, ...]
    partial: tuple[Path, ...]
    bytes: int

    @property
    def files(self) -> int:
        return len(self.staged) + len(self.partial)


@contextmanager
def in_use(staging: str | Path) -> Iterator[None]:
    """Keep every file that is used from now on, until the ``with`` block ends or its process does."""
    lease = Path(staging) / LEASES / uuid4().hex
    if "://" in str(staging) or not _begin(lease):
        yield
        return
    is_over = Event()
    Thread(target=_renew, args=(lease, is_over), daemon=True, name="lease of staged files").start()
    try:
        yield
    finally:
        is_over.set()
        lease.unlink(missing_ok=True)


def _begin(lease: Path) -> bool:
    """Write a lease with its beginning, by the clock of its file system; False if nothing can be written."""
    try:
        lease.parent.mkdir(parents=True, exist_ok=True)
        lease.touch()
        lease.write_text(repr(lease.stat().st_mtime))
    except OSError:
        # Then there is nothing that maintenance could delete, either; what is to be staged fails with its own message.
        return False
    return True


def _renew(lease: Path, is_over: Event) -> None:
    while not is_over.wait(RENEWED_SECONDS):
        mark_used([str(lease)])


def _oldest_lease(staging: Path) -> float:
    """When the first of the audits began that are running now; infinity if none is."""
    began = float("inf")
    for lease in _files(staging / LEASES):
        # A killed process leaves one behind.
        if _days_old(lease) < PARTIAL_DAYS:
            with suppress(OSError, ValueError):
                began = min(began, float(lease.read_text()))
    return began


def find_leftovers(staging: str | Path, warehouse: Path | None, days: float) -> Leftovers:
    """Staged files older than ``days``, and partial files older than a day.

    Remote staging is left alone: object stores have their own expiry rules.

    Args:
        warehouse: a DuckDB file; a killed first publication leaves a hidden folder next to it.

    Raises:
        UsageError: if ``days`` is so short that files of a running audit could be deleted.
    """
    if days < 1:
        raise UsageError(
            "Staged files must be kept for at least one day: a running audit needs them.",
            next_step="Give a whole number of days, at least 1.",
        )
    staged: list[Path] = []
    partial: list[Path] = []
    if "://" not in str(staging):
        began = _oldest_lease(Path(staging))
        for path in _files(Path(staging)):
            is_partial = path.name.startswith(".") or path.parent.name == LEASES
            if _days_old(path) > (PARTIAL_DAYS if is_partial else days) and (is_partial or _used(path) < began):
                (partial if is_partial else staged).append(path)
    if warehouse is not None:
        for folder in warehouse.parent.glob(f".{warehouse.name}.*"):
            if folder.is_dir() and _days_old(folder) > PARTIAL_DAYS:
                partial += _files(folder)
    return Leftovers(tuple(staged), tuple(partial), sum(_size(path) for path in (*staged, *partial)))


def delete_leftovers(leftovers: Leftovers) -> None:
    """Delete the files, and folders that become empty; not what was used since it was found."""
    for path in (*leftovers.staged, *leftovers.partial):
        if _days_old(path) <= PARTIAL_DAYS:
            continue
        path.unlink(missing_ok=True)
        for folder in list(path.parents)[:2]:
            with suppress(OSError):
                folder.rmdir()


def mark_used(paths: Iterable[str]) -> None:
    """Update the time of staged files when they are used."""
    for path in paths:
        if "://" not in path:
            with suppress(OSError):
                os.utime(path)


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _days_old(path: Path) -> float:
    used = _used(path)
    return 0.0 if used == float("inf") else (time.time() - used) / DAY_SECONDS


def _used(path: Path) -> float:
    """When a file was last used; infinity if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
