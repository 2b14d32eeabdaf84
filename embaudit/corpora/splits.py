"""Determines the files of a repository's configuration and split as ``datasets`` would, from file names and card.

``datasets`` is given a folder of empty files with the repository's names, so that the result is the same with and
without network, and always for the revision with these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from embaudit.corpora.hub_reference import HubRef, choose_files, is_data_file, no_such_files, suffixes
from embaudit.system.hub import datasets_library, stream_options
from embaudit.words.errors import CorpusError, one_line

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
