"""References to hub data sets, and which files they mean. No network access.

The form is ``hub:owner/name[config]/split@revision:column``; all but the name is optional. Instead of a split, a file
or pattern can be given (``/data/test-*.parquet``), and ``[:N]`` after either takes only the first N rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from embaudit.corpora.catalog import CorpusSpec, HubPart
from embaudit.words.errors import CorpusError
from embaudit.words.sentences import listing

HUB = "hub"
FORM = "hub:owner/name[config]/split@revision:column"
DEFAULT_REVISION = "main"
COMMIT = re.compile(r"[0-9a-f]{40}")
REFERENCE = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)(\[(?P<config>[^\[\]:]+)\])?(/(?P<path>[^@:]+?))?(\[:(?P<first>\d+)\])?"
    r"(@(?P<revision>[^:\[\]]+))?(:(?P<columns>.+))?"
)
SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?=\.)")
# What datasets reads as rows of a table; a repository's other files (pictures, weights, code) are ignored.
FORMATS = ("parquet", "jsonl", "ndjson", "json", "csv", "tsv", "arrow", "txt")
PACKINGS = ("gz", "bz2", "xz", "zst")
LISTED_FILES = 8


@dataclass(frozen=True)
class HubRef:
    """A parsed reference; None or () for omitted parts.

    Attributes:
        path: a split, a file, a file pattern, or (for a retrieval collection) a folder.
        first: take only this many rows.
        columns: the text, or a pair's two sides and its score.
    """

    repository: str
    revision: str | None = None
    config: str | None = None
    path: str | None = None
    first: int | None = None
    columns: tuple[str, ...] = ()

    @classmethod
    def parse(cls, source: str) -> HubRef:
        """Parse ``hub:owner/name[config]/split@revision:column``.

        Raises:
            CorpusError: if it has a different form.
        """
        match = REFERENCE.fullmatch(source.removeprefix(f"{HUB}:"))
        # The cache has a file for each revision, so ".." must not occur in it (git forbids it) or in a path.
        if match is None or ".." in source or (match["revision"] or "").startswith("/"):
            raise CorpusError(
                f"{source!r} is not a hub reference.",
                next_step=f"Write {FORM}, with optional parts left out; plain 'hub' is the pinned default.",
            )
        columns = tuple(name.strip() for name in (match["columns"] or "").split(",") if name.strip())
        if any(is_data_file(name) for name in columns):
            plain = source.removesuffix(f":{match['columns']}").split("@")
            raise CorpusError(
                f"{source!r} has a file in place of a column.",
                next_step=f"Write {plain[0]}/{match['columns']}" + "".join(f"@{revision}" for revision in plain[1:]),
            )
        if match["config"] and names_files(match["path"] or ""):
            raise CorpusError(
                f"{source!r} names both a configuration and files.",
                next_step=f"Leave one out: {source.replace('[' + match['config'] + ']', '')}",
            )
        first = int(match["first"]) if match["first"] else None
        return cls(match["repository"], match["revision"], match["config"], match["path"], first, columns)

    def __str__(self) -> str:
        return (
            f"{HUB}:{self.repository}"
            + (f"[{self.config}]" if self.config else "")
            + (f"/{self.path}" if self.path else "")
            + ("" if self.first is None else f"[:{self.first}]")
            + (f"@{self.revision}" if self.revision else "")
            + (f":{','.join(self.columns)}" if self.columns else "")
        )

    def as_part(self, spec: CorpusSpec) -> HubPart:
        """This reference as a part to load; for repositories in the catalogue, its files and pin are the defaults."""
        known = next((part for part in spec.hub if part.repository == self.repository), None)
        files: tuple[str, ...] = (self.path,) if self.path and names_files(self.path) else ()
        if known and not (self.config or self.path):
            files = known.files
        return HubPart(
            repository=self.repository,
            revision=self.revision or (known.revision if known else None),
            files=files,
            config=self.config,
            split=None if files else self.path,
            first=self.first,
            columns=self.columns,
        )


def names_files(path: str) -> bool:
    """Whether a path means files rather than a split."""
    return is_data_file(path) or any(char in path for char in "/*?")


def is_data_file(name: str) -> bool:
    """Whether a file contains rows, by its suffix (``.jsonl``, ``.csv.gz``)."""
    return bool(suffixes(name)) and suffixes(name)[0] in FORMATS


def suffixes(name: str) -> list[str]:
    """Format and compression from a file's name: ``["jsonl", "gz"]``."""
    found = name.rsplit("/", 1)[-1].lower().split(".")[1:]
    return found[-2:] if found and found[-1] in PACKINGS else found[-1:]


def choose_files(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The files of the first matching pattern, in order; empty if none matches."""
    for pattern in patterns:
        matching = sorted(name for name in names if name == pattern or fnmatchcase(name, pattern))
        if matching:
            return tuple(matching)
    return ()


def is_complete_in_cache(files: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether the cached files are everything that the patterns mean on the hub.

    They are if each is named in full, or they are a complete set of numbered shards.
    """
    for file in files:
        shard = SHARD.search(file)
        if file in patterns:
            continue
        if shard is None or not any(pattern.startswith(file[: shard.start()] + "-") for pattern in patterns):
            return False
        numbers = (f"-{number:05d}-of-{shard[2]}" for number in range(int(shard[2])))
        if any(file[: shard.start()] + number + file[shard.end() :] not in files for number in numbers):
            return False
    return bool(files)


def shorten(names: Sequence[str]) -> str:
    """The first few names, for a sentence."""
    return listing(names[:LISTED_FILES], "no files") + (", …" if len(names) > LISTED_FILES else "")


def no_such_files(names: Sequence[str], patterns: Sequence[str], ref: HubRef) -> CorpusError:
    files = [name for name in names if is_data_file(name)]
    wanted = f"no file {' or '.join(patterns)}" if patterns else "no file in a supported format"
    return CorpusError(
        f"{ref} has {wanted}.",
        next_step=f"Name a file (hub:{ref.repository}/FILE). It has {shorten(files)}."
        if files
        else f"Formats: {', '.join(FORMATS)}, also compressed ({', '.join(PACKINGS)}).",
    )
