"""References to hub data sets, and which files they mean. No network access.

The form is ``hub:owner/name[config]/split@revision:column``; all but the name is optional. Instead of a split, a file
or pattern can be given (``/data/test-*.parquet``), and ``[:N]`` after either takes only the first N rows.

Determines the files of a repository's configuration and split as ``datasets`` would, from file names and card.

``datasets`` is given a folder of empty files with the repository's names, so that the result is the same with and
without network, and always for the revision with these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from embaudit.corpora.catalog import CorpusSpec, HubPart
from embaudit.system.hub import datasets_library, stream_options
from embaudit.words.errors import CorpusError, one_line
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


CARD = "README.md"
READ_BY = ("parquet", "json", "csv", "arrow", "text")
ELSEWHERE = re.compile(r"^[/~]|://|::|\.\.")


def builder_of_files(files: Sequence[str]) -> Any:
    """The builder for these files, by the suffix of the first; not by its name, which may look like a pattern."""
    stand_in = f"rows.{'.'.join(suffixes(files[0]))}"
    return _builder([stand_in], None, data_files={"rows": [stand_in]})[0]


def builder_of_split(names: Sequence[str], card: Path | None, ref: HubRef) -> tuple[Any, str, tuple[str, ...]]:
    """The builder of a split, the split's name, and its files in order.

    Args:
        names: all file names of the repository.
        card: its README.md, if any.
        ref: with the configuration (None for the default) and, as path, the split (None for test, or the only one).

    Raises:
        CorpusError: if there is no such configuration or split, no supported file, or code is required.
    """
    script = f"{ref.repository.rsplit('/', 1)[-1]}.py"
    if script in names:
        raise CorpusError(
            f"{ref} defines its splits in code ({script}), which embaudit does not run.",
            next_step=f"Name its files (hub:{ref.repository}/FILE), or the hub's Parquet copy: "
            f"hub:{ref.repository}/{ref.config or 'CONFIG'}/{ref.path or 'SPLIT'}/*.parquet@refs/convert/parquet",
        )
    if named_elsewhere := next(filter(ELSEWHERE.search, patterns_of(card)), ""):
        raise CorpusError(
            f"The card of {ref} refers to data elsewhere ({named_elsewhere}), which its commits do not pin.",
            next_step="Name the repository with that data.",
        )
    if not any(map(is_data_file, names)):
        raise no_such_files(names, (), ref)
    try:
        builder, splits = _builder(names, card, config=ref.config)
    except ValueError as error:
        raise _unreadable(names, card, ref, error) from error
    if builder.__module__.rsplit(".", 1)[-1] not in READ_BY or not splits:
        raise CorpusError(f"{ref} contains no tables or text files.", next_step="Name its files: hub:owner/name/FILE.")
    split = ref.path or ("test" if "test" in splits else next(iter(splits)) if len(splits) == 1 else "")
    if split not in splits:
        asked = f"no split {split}" if split else "several splits and none was given"
        exists = replace(ref, path=next(iter(splits)))
        raise CorpusError(f"{ref} has {asked}: it has {', '.join(splits)}.", next_step=f"Name one: {exists}")
    return builder, split, splits[split]


def patterns_of(card: Path | None) -> list[str]:
    """Every file, pattern and folder named in the card."""
    return [text for config in _configs(card) for text in _strings(config)]


def default_patterns(split: str) -> tuple[str, ...]:
    """Where ``datasets`` looks first if the card names no files."""
    return (f"data/{split}-",)


def placeholders(names: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    """A made-up name for each pattern without a match: ``datasets`` requires files for every split of a card."""
    suffix = next((PurePosixPath(name).suffix for name in names if is_data_file(name)), "")
    for pattern in patterns:
        if not choose_files(names, (pattern,)):
            name = pattern.replace("*", "x")
            yield name if is_data_file(name) else name + suffix


def _metadata(card: Path | None) -> dict[str, Any]:
    from huggingface_hub.repocard import metadata_load

    try:
        return (metadata_load(card) if card else None) or {}
    except Exception as error:  # of YAML, of encodings
        raise CorpusError(
            f"The card {CARD} of the data set cannot be read: {one_line(error)}",
            next_step="Name another revision, or download the files and give their folder.",
        ) from error


def _configs(card: Path | None) -> list[dict[str, Any]]:
    configs = _metadata(card).get("configs")
    return [config for config in configs if isinstance(config, dict)] if isinstance(configs, list) else []


def _strings(config: Any) -> Iterator[str]:
    """The strings in ``data_files`` and ``data_dir``, however a card nests them."""
    nested = [config.get("data_files"), config.get("data_dir")]
    while nested:
        one = nested.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            nested += one.values()
        elif isinstance(one, list):
            nested += one


def _builder(
    names: Sequence[str],
    card: Path | None,
    config: str | None = None,
    data_files: dict[str, list[str]] | None = None,
) -> tuple[Any, dict[str, tuple[str, ...]]]:
    load_dataset_builder = datasets_library().load_dataset_builder
    with TemporaryDirectory(prefix="embaudit-") as temporary:
        folder = Path(temporary).resolve() / "repository"
        for name in filter(_is_local_data_file, names):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        if card is not None and _metadata(card):
            copyfile(card, folder / CARD)
        try:
            builder = load_dataset_builder(
                str(folder),
                name=config,
                data_files=data_files,
                cache_dir=f"{temporary}/cache",
                storage_options=stream_options(),
            )
        except (ValueError, OSError) as error:
            raise ValueError(str(error).replace(f"{folder}/", "").replace(str(folder), "it")) from error
        found = builder.config.data_files or {}
        return builder, {
            str(split): tuple(str(Path(file).relative_to(folder)) for file in files) for split, files in found.items()
        }


def _is_local_data_file(name: str) -> bool:
    return is_data_file(name) and not ELSEWHERE.search(name)


def _unreadable(names: Sequence[str], card: Path | None, ref: HubRef, error: Exception) -> CorpusError:
    configs = [str(config.get("config_name")) for config in _configs(card)]
    if configs and ref.config not in configs:
        asked = f"no configuration {ref.config}" if ref.config else "several configurations and none was given"
        exists = replace(ref, config=configs[0])
        return CorpusError(f"{ref} has {asked}: it has {', '.join(configs)}.", next_step=f"Name one: {exists}")
    if ref.config and not configs:
        return CorpusError(
            f"{ref} has no configuration {ref.config}: its card names none.",
            next_step=f"Leave it out: {replace(ref, config=None)}",
        )
    return CorpusError(
        f"The splits of {ref} cannot be determined from its card and files: {one_line(error)}",
        next_step=f"Name a file: hub:{ref.repository}/{next(filter(is_data_file, names))}",
    )
