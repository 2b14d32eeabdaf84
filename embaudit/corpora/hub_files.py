"""What a person types for a hub data set, and which of its files that means. No network here.

Read by ``hub``. The form is ``hub:owner/name[@revision][:file-or-config]``: a file or pattern in the
repository (``data/test-*.parquet``), or a configuration of its card, with a split if it has several
(``en/test``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from embaudit.corpora.catalog import CorpusSpec, HubPart
from embaudit.corpora.records import SUFFIXES
from embaudit.errors import CorpusError

HUB = "hub"
DEFAULT_REVISION = "main"
COMMIT = re.compile(r"[0-9a-f]{40}")
REFERENCE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[^:]+))?(:(?P<what>.+))?")
SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?=\.)")
# Where a repository keeps its test split, in the order in which a person would look.
TEST_FILES = (
    "test.jsonl",
    "test.jsonl.gz",
    "test.parquet",
    "test-*.parquet",
    "data/test-*.parquet",
    "test.csv",
)
LISTED_FILES = 8


@dataclass(frozen=True)
class HubRef:
    """A reference taken apart: repository, revision as typed (None: not typed), file or configuration."""

    repository: str
    revision: str | None
    what: str | None

    @classmethod
    def parse(cls, source: str) -> HubRef:
        """Take ``hub:owner/name[@revision][:file-or-config]`` apart.

        Raises:
            CorpusError: if it has another form.
        """
        match = REFERENCE.fullmatch(source.removeprefix(f"{HUB}:"))
        # The cache keeps a file for each revision: git allows no ".." in one, and neither may a path.
        if match is None or ".." in source or (match["revision"] or "").startswith("/"):
            raise CorpusError(
                f"{source!r} is no hub reference.",
                next_step="Write hub:owner/name@revision[:FILE]; plain 'hub' is the pinned default.",
            )
        return cls(match["repository"], match["revision"], match["what"])

    def as_part(self, spec: CorpusSpec) -> HubPart:
        """This reference as a part to load; files and pin of the catalogue count for its own repositories."""
        known = next((part for part in spec.hub if part.repository == self.repository), None)
        return HubPart(
            repository=self.repository,
            revision=self.revision or (known.revision if known else None),
            files=(self.what,) if self.what else known.files if known else TEST_FILES,
            columns=known.columns if known else (),
            streams_when_limited=bool(known and known.streams_when_limited),
        )


def is_literal(pattern: str) -> bool:
    return not any(char in pattern for char in "*?[")


def choose_files(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The files that the first matching pattern means, in order; empty if none matches."""
    for pattern in patterns:
        matching = sorted(name for name in names if name == pattern or fnmatchcase(name, pattern))
        if matching:
            return _all_shards(matching)
    return ()


def only_data_file(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The single data file of a repository without a test split, if nobody named a file."""
    files = [name for name in names if _is_data(name)]
    return tuple(files) if tuple(patterns) == TEST_FILES and len(files) == 1 else ()


def _all_shards(files: list[str]) -> tuple[str, ...]:
    """Every shard that a name promises: a cache may hold only ``train-00000-of-00007.parquet``."""
    match = SHARD.search(files[0])
    if match is None:
        return tuple(files)
    start, end, total = files[0][: match.start()], files[0][match.end() :], int(match[2])
    return tuple(f"{start}-{number:05d}-of-{total:05d}{end}" for number in range(total))


def config_patterns(card: dict[str, Any], what: str, shown: str) -> tuple[str, ...]:
    """The patterns of configuration ``what`` (``name`` or ``name/split``) in a card; empty if unknown.

    Raises:
        CorpusError: if the configuration has several splits, no test split among them, and none was named.
    """
    for config in card.get("configs") or ():
        name = str(config.get("config_name"))
        if what != name and not what.startswith(f"{name}/"):
            continue
        splits = _splits(config.get("data_files"))
        split = what.removeprefix(name).lstrip("/") or ("test" if "test" in splits else "")
        if not split and len(splits) == 1:
            split = next(iter(splits))
        if split not in splits:
            raise CorpusError(
                f"Configuration {name} of {shown} has the splits {', '.join(splits)}.",
                next_step=f"Name one: {shown}:{name}/{next(iter(splits), 'train')}",
            )
        return splits[split]
    return ()


def _splits(data_files: Any) -> dict[str, tuple[str, ...]]:
    """A card writes data files as one path, a list of paths, a list of (split, path), or a mapping."""
    if isinstance(data_files, str):
        return {"train": (data_files,)}
    if isinstance(data_files, dict):
        return {str(split): _paths(paths) for split, paths in data_files.items()}
    entries = list(data_files or ())
    if entries and all(isinstance(entry, str) for entry in entries):
        return {"train": tuple(entries)}
    return {str(entry.get("split")): _paths(entry.get("path")) for entry in entries if isinstance(entry, dict)}


def _paths(paths: Any) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else tuple(map(str, paths or ()))


def no_such_files(names: Sequence[str], patterns: Sequence[str], shown: str) -> CorpusError:
    files = [name for name in names if _is_data(name)]
    listed = ", ".join(files[:LISTED_FILES]) + (", ..." if len(files) > LISTED_FILES else "")
    return CorpusError(
        f"{shown} has no file {' or '.join(patterns)}.",
        next_step=f"Name a file: {shown}:FILE. It has {listed}." if files else "It has no file of a format read here.",
    )


def _is_data(name: str) -> bool:
    return PurePosixPath(name.removesuffix(".gz")).suffix in SUFFIXES
