"""Files of hub data sets at a fixed commit: from the cache, else fetched, else an error at once.

Read by ``load``; the files are then read by ``records`` like local ones. ``datasets.load_dataset`` is not
used: without network it takes any cached revision, whatever was pinned, and it refuses repositories that
still hold a loading script.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from embaudit.corpora.catalog import HubPart
from embaudit.corpora.hub_files import (
    COMMIT,
    DEFAULT_REVISION,
    HUB,
    SHARD,
    choose_files,
    config_patterns,
    is_literal,
    no_such_files,
    only_data_file,
)
from embaudit.corpora.openers import ByteSource, local_file
from embaudit.errors import HubUnreachable
from embaudit.hub import Repository

CARD = "README.md"


@dataclass(frozen=True)
class HubFiles:
    """Files of a data set at a commit."""

    repository: Repository
    commit: str
    files: tuple[str, ...]

    def sources(self, *, stream: bool) -> Iterator[ByteSource]:
        """Each file when it is reached, so that a limited load fetches no more shards than it needs."""
        for name in self.files:
            shown = f"{HUB}:{self.repository.name}@{self.commit[:12]}:{name}"
            if stream and not _cached(self.repository, (name,)):
                yield ByteSource(shown, name, partial(self.repository.stream, name))
            else:
                yield replace(local_file(self.repository.file(name)), shown=shown, name=name)


def locate(part: HubPart, corpus: str) -> HubFiles:
    """The commit and files that ``part`` means: from the cache if it is pinned and cached, else from the hub.

    Raises:
        CorpusError: if the repository, revision or files do not exist.
        HubUnreachable: if the hub cannot be reached and the cache does not hold them.
    """
    revision = part.revision or DEFAULT_REVISION
    repository = Repository("dataset", part.repository, revision, f"pass a local file: --corpus {corpus}=FILE")
    cached = _cached(repository, part.files)
    if cached and COMMIT.fullmatch(revision):
        return cached
    try:
        info = repository.info()
    except HubUnreachable:
        if cached:
            return cached
        raise
    shown = f"{HUB}:{part.repository}@{revision}"
    pinned = replace(repository, revision=info.commit)
    files = choose_files(info.files, part.files) or only_data_file(info.files, part.files)
    if not files and CARD in info.files:
        files = choose_files(info.files, config_patterns(_card(pinned.file(CARD)), part.files[0], shown))
    if not files:
        raise no_such_files(info.files, part.files, shown)
    return HubFiles(pinned, info.commit, files)


def _cached(repository: Repository, patterns: tuple[str, ...]) -> HubFiles | None:
    """Commit and files of a cached snapshot, if the cache alone can tell which files ``patterns`` mean.

    It can for a literal name and for numbered shards; for other patterns it may hold only some of the files.
    """
    snapshot = repository.cached_snapshot()
    if snapshot is None:
        return None
    names = [str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if path.is_file()]
    files = choose_files(names, patterns)
    told = files and all(SHARD.search(name) or any(name == p and is_literal(p) for p in patterns) for name in files)
    return HubFiles(replace(repository, revision=snapshot.name), snapshot.name, files) if told else None


def _card(path: Path) -> dict[str, Any]:
    from huggingface_hub.repocard import metadata_load

    return dict(metadata_load(path) or {})
