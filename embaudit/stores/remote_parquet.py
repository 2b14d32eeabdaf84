"""Parquet files elsewhere: in a bucket or behind an address, by fsspec; and a data set of the hub, at one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from embaudit.corpora.catalog import CorpusSpec
from embaudit.corpora.hub import locate
from embaudit.corpora.hub_reference import HUB, HubRef
from embaudit.stores.arrow import PARQUET_SUFFIXES, ParquetPart, table_of_parts
from embaudit.stores.copies import changed
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError, EmbauditError, UsageError, one_line
from embaudit.words.masking import keep_credentials

# By scheme: what fsspec reads it with.
PACKAGES = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "hf": "huggingface_hub",
    "http": "aiohttp",
    "https": "aiohttp",
}
WEB = ("http", "https")
# Read ahead of what is asked for, in bytes.
AHEAD = 4 << 20
ROWS = CorpusSpec("vectors", "texts", "rows with vectors", "rows.jsonl", ())


def is_remote_parquet(place: StorePlace) -> bool:
    """By its name; or, in a bucket, by the names of what is below it."""
    if place.is_path or place.scheme not in PACKAGES:
        return False
    if place.named.partition("?")[0].lower().endswith(PARQUET_SUFFIXES):
        return True
    if place.scheme in WEB:
        return False
    with _explained(place):
        return bool(_files(place)[1])


def open_remote(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a file, of a folder's files in the order of their names, or of those that a pattern names."""
    keep_credentials(place.named)
    with _explained(place):
        system, files = _files(place)
        parts = [
            ParquetPart(
                file if place.scheme in WEB else f"{place.scheme}://{file}",
                partial(system.open, file, "rb", block_size=AHEAD, cache_type="readahead"),
                is_far=True,
            )
            for file in files
        ]
        table = table_of_parts(place.shown, parts)
        before = _state(system, files)

    def watched(table: StoreTable) -> StoreTable:
        def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
            with _explained(place):
                yield from table.read(names)
                if _state(system, files) != before:
                    raise changed(place.shown)

        draw = table.draw
        watched_draw = None if draw is None else lambda least, seed: watched(draw(least, seed))
        return replace(table, read=read, is_pinned=True, draw=watched_draw)

    return watched(table)


def _files(place: StorePlace) -> tuple[Any, list[str]]:
    """fsspec's file system, and the files that are meant."""
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(place.named)
    except (ImportError, ValueError) as error:
        raise UsageError(
            f"{place.shown} is read by {PACKAGES[place.scheme]}, which is not installed.",
            next_step=f"pip install {PACKAGES[place.scheme]}",
        ) from error
    if place.scheme in WEB:
        return system, [path]
    if "*" in path:
        return system, sorted(system.glob(path))
    if path.lower().endswith(PARQUET_SUFFIXES) and system.isfile(path):
        return system, [path]
    found = system.find(path)
    return system, sorted(file for file in found if file.lower().endswith(PARQUET_SUFFIXES))


def _state(system: Any, files: Sequence[str]) -> list[str]:
    """What tells that a file was written again."""
    system.invalidate_cache()
    return [str(system.ukey(file)) for file in files]


@contextmanager
def _explained(place: StorePlace) -> Iterator[None]:
    try:
        yield
    except EmbauditError:
        raise
    except FileNotFoundError as error:
        raise CorpusError(f"There is nothing at {place.shown}.", next_step="Check the address.") from error
    except Exception as error:
        raise CorpusError(
            f"{place.shown} cannot be read: {one_line(error) or type(error).__name__}.",
            kept="Nothing was concluded.",
            next_step="Check the address, and the credentials in the environment.",
        ) from error


def open_hub(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a data set at the commit that its revision is now; its files are kept in the hub's cache."""
    from embaudit.stores.kinds import kind_of

    found = locate(HubRef.parse(place.named).as_part(ROWS), ROWS.name)
    shown = f"{HUB}:{found.repository.name}@{found.commit[:12]}"
    files = [StorePlace(str(found.repository.file(name))) for name in found.files]
    found.repository.remember(found.asked)
    if all(Path(name).suffix.lower() in PARQUET_SUFFIXES for name in found.files):
        parts = [
            ParquetPart(f"{shown}, {name}", lambda file=file: file.path)  # type: ignore[misc]
            for name, file in zip(found.files, files, strict=True)
        ]
        return table_of_parts(shown, parts, is_pinned=True)
    kind = kind_of(files[0])
    if kind is None or len(files) > 1:
        raise UsageError(
            f"{shown} has {len(files):,} files that are not read together: {', '.join(found.files[:4])}.",
            next_step=f"Name one of them: {HUB}:{found.repository.name}/{found.files[0]}",
        )
    return replace(kind.open(files[0], asked), shown=f"{shown}, {found.files[0]}", is_pinned=True)


KINDS = (
    StoreKind(
        name="Parquet",
        recognises=is_remote_parquet,
        open=open_remote,
        looks="s3://, gs://, az:// or hf:// with Parquet files, https://….parquet",
        tried="S3 on moto's server, a server on this machine; gs:// and az:// not tried",
    ),
    StoreKind(
        name="Hub data set",
        recognises=lambda place: place.scheme == HUB and not place.is_path,
        open=open_hub,
        looks="hub:owner/name (a data set)",
        tried="a hub on this machine",
    ),
)
