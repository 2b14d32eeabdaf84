"""Hub data sets at a fixed commit: from the cache, downloaded, or streamed.

The files are determined from the names at that commit (``splits``), and each is requested at that commit: ``datasets``
never looks up a repository by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from embaudit.corpora import pieces
from embaudit.corpora.catalog import CorpusSpec, HubPart
from embaudit.corpora.draw import Flaw
from embaudit.corpora.fields import choose_columns
from embaudit.corpora.hub_reference import (
    CARD,
    COMMIT,
    DEFAULT_REVISION,
    HubRef,
    builder_of_files,
    builder_of_split,
    choose_files,
    default_patterns,
    is_complete_in_cache,
    is_data_file,
    no_such_files,
    patterns_of,
    placeholders,
    shorten,
    suffixes,
)
from embaudit.corpora.openers import ByteSource
from embaudit.corpora.pieces import IN_LINES, IN_ROW_GROUPS, FileInPieces, Pieces, choose_pieces, in_pieces
from embaudit.corpora.tables import Choose, Record, report_damage, stream_records, table_records
from embaudit.system.hub import Repository, translate_errors
from embaudit.words.errors import CorpusError, HubUnreachable


@dataclass(frozen=True)
class HubFiles:
    """Files of a data set at a commit.

    Attributes:
        ref: the reference that gives the same rows.
        asked: the requested revision: this commit, or a name for it.
        builder: reads the split; None if files were named.
    """

    repository: Repository
    ref: HubRef
    files: tuple[str, ...]
    asked: str
    builder: Any = field(default=None, compare=False, repr=False)

    @property
    def commit(self) -> str:
        return str(self.repository.revision)

    def downloads(self) -> Iterator[ByteSource]:
        """Each file, downloaded when it is reached."""
        for name in self.files:
            yield ByteSource(self._shown(name), self._fetched(name), name)

    def records(self, spec: CorpusSpec, *, stream: bool) -> Iterator[Record | Flaw]:
        """Rows in file order.

        Args:
            stream: read over the network without storing anything; otherwise each file is downloaded into the hub cache
                when it is reached.

        Raises:
            CorpusError: if a column is missing or not text, or a file is broken.
            HubUnreachable: if the hub does not answer and a file is not cached.
        """
        builder = self.builder or builder_of_files(self.files)
        for name in self.files:
            path = self._cached(name) if stream else self._fetched(name)
            with self._readable(name, spec):
                yield from stream_records(
                    builder, str(path or self.repository.address(name)), self._columns(name, spec)
                )

    def pieces(self, seed: int) -> Pieces | None:
        """The pieces of the files that a draw with this seed reads; None if it reads them whole.

        Raises:
            CorpusError: if a file is broken.
            HubUnreachable: if the hub does not answer and a file is not cached.
        """
        kinds = {tuple(suffixes(name)) for name in self.files}
        if not kinds <= {(kind,) for kind in (*IN_LINES, *IN_ROW_GROUPS)}:
            return None
        sizes = {name: self._size(name) for name in self.files}
        if sum(sizes.values()) < pieces.LARGE_BYTES:
            return None
        of_pieces = {}
        for name, size in sizes.items():
            with self._readable(name):
                of_pieces[name] = self._in_pieces(name, size).sizes()
        return choose_pieces(of_pieces, seed)

    def records_of(self, chosen: Pieces, spec: CorpusSpec) -> Iterator[Record | Flaw]:
        """Rows of these pieces in file order; from the cache, or over the network without storing them.

        Raises:
            CorpusError, HubUnreachable: as ``records``.
        """
        for name, places in chosen.chosen.items():
            choose = self._columns(name, spec)
            with self._readable(name, spec):
                yield from table_records(self._in_pieces(name, self._size(name)).tables(places, choose), choose)

    def _columns(self, name: str, spec: CorpusSpec) -> Choose:
        wanted = ("COLUMN",) if spec.kind == "texts" else ("FIRST", "SECOND")
        hint = f"Name the columns to read: {replace(self.ref, columns=wanted)}"
        if suffixes(self.files[0])[:1] in (["csv"], ["tsv"]):
            hint += " (a table without a header can be read as a local file)"
        return partial(choose_columns, shown=self._shown(name), spec=spec, named=self.ref.columns, next_step=hint)

    @contextmanager
    def _readable(self, name: str, spec: CorpusSpec | None = None) -> Iterator[None]:
        """Turn errors of a file or the hub into one sentence."""
        advice = self._read_locally(name, self._cached(name), spec) if spec else ""
        with translate_errors(self.repository, name), report_damage(self._shown(name), advice):
            yield

    def _in_pieces(self, name: str, size: int) -> FileInPieces:
        path = self._cached(name)
        return in_pieces(
            suffixes(name)[0], size, (lambda: path.open("rb")) if path else partial(self.repository.opened, name)
        )

    def _size(self, name: str) -> int:
        path = self._cached(name)
        return path.stat().st_size if path else self.repository.size(name)

    def _fetched(self, name: str) -> Path:
        path = self.repository.file(name)
        self.repository.remember(self.asked)
        return path

    def _cached(self, name: str) -> Path | None:
        snapshot = self.repository.cached_snapshot()
        return snapshot / name if snapshot and (snapshot / name).is_file() else None

    def _read_locally(self, name: str, path: Path | None, spec: CorpusSpec) -> str:
        fetch = f"hf download {self.repository.name} {name} --repo-type dataset --revision {self.commit}"
        return (
            "Read it" if path else f"Fetch it ({fetch}) and read it"
        ) + f" as a local file, for which broken rows are dropped and counted: --corpus {spec.name}={path or 'FILE'}"

    def _shown(self, name: str) -> str:
        return f"hub:{self.repository.name}/{name}@{self.commit[:12]}"


def locate(part: HubPart, corpus: str) -> HubFiles:
    """The commit and files of ``part``: from the cache if it is pinned and cached, otherwise from the hub.

    Raises:
        CorpusError: if the repository, revision, configuration, split or files do not exist.
        HubUnreachable: if the hub cannot be reached and they are not cached.
    """
    revision = part.revision or DEFAULT_REVISION
    repository = Repository("dataset", part.repository, revision, f"pass a local file: --corpus {corpus}=FILE")
    if COMMIT.fullmatch(revision) and (cached := _cached(repository, part)):
        return cached
    try:
        info = repository.info()
    except HubUnreachable as error:
        if cached := _cached(repository, part):
            return cached
        raise _with_cached(error, repository) from error
    pinned = replace(repository, revision=info.commit)
    card = pinned.file(CARD) if CARD in info.files and not part.files else None
    return _chosen(pinned, part, info.files, card)


def _chosen(repository: Repository, part: HubPart, names: Sequence[str], card: Path | None) -> HubFiles:
    asked = part.revision or DEFAULT_REVISION
    ref = HubRef(part.repository, repository.revision, part.config, part.split, part.first, part.columns)
    if part.files:
        files = choose_files(names, part.files)
        if not files:
            raise no_such_files(names, part.files, ref)
        matched = files[0] if len(files) == 1 else next(one for one in part.files if choose_files(names, (one,)))
        return HubFiles(repository, replace(ref, path=matched), files, asked)
    builder, split, files = builder_of_split(names, card, ref)
    return HubFiles(repository, replace(ref, path=split), files, asked, builder)


def _cached(repository: Repository, part: HubPart) -> HubFiles | None:
    """The cached files of ``part``, if the cache alone shows that they are complete.

    That is the case for files named in full and for numbered shards. Splits are defined by the card: without a card, or
    if an uncached split might be meant, the hub is asked.
    """
    snapshot = repository.cached_snapshot()
    if snapshot is None:
        return None
    names = _cached_names(snapshot)
    pinned = replace(repository, revision=snapshot.name)
    if part.files:
        files = choose_files(names, part.files)
        return _chosen(pinned, part, names, None) if is_complete_in_cache(files, part.files) else None
    card = snapshot / CARD
    if not card.is_file():
        return None
    try:
        patterns = patterns_of(card)
        found = _chosen(pinned, part, [*names, *placeholders(names, patterns)], card)
    except CorpusError:
        return None
    split = str(found.ref.path)
    is_told = set(found.files) <= set(names) and is_complete_in_cache(
        found.files, (*patterns, *default_patterns(split))
    )
    return found if is_told and split in (part.split, "test") else None


def _cached_names(snapshot: Path) -> list[str]:
    return sorted(path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file())


def _with_cached(error: HubUnreachable, repository: Repository) -> HubUnreachable:
    """The error with what the cache has of the data set and how to request it."""
    snapshot = repository.cached_snapshot()
    names = list(filter(is_data_file, _cached_names(snapshot))) if snapshot else []
    commits = repository.cached_commits()
    if snapshot and names:
        kept = f"The local hub cache has {shorten(names)} of commit {snapshot.name}, which may not be all of it."
        next_step = f"Name the file to use: hub:{repository.name}/{names[0]}@{snapshot.name}."
    elif commits and not snapshot:
        kept = f"The local hub cache only has other commits of it: {shorten(commits)}."
        next_step = f"To use one of them, name it: hub:{repository.name}@{commits[0]}."
    else:
        return error
    return type(error)(error.happened, kept=kept, next_step=f"{next_step} {error.next_step}")
