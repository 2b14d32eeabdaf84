"""Files of hub data sets at a fixed commit: from the cache, else fetched, else an error at once.

Read by ``load``; the files are then read by ``records`` like local ones. ``datasets.load_dataset`` is not
used: without network it takes any cached revision, whatever was pinned, and it refuses repositories that
still hold a loading script.
"""

from __future__ import annotations

import errno
import io
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar, cast

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
from embaudit.errors import CorpusError

ANSWER_SECONDS = 5.0
GIVE_UP_SECONDS = 8.0
CARD = "README.md"
CANNOT_STORE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)

T = TypeVar("T")


@dataclass(frozen=True)
class HubFiles:
    """Files of a repository at a commit; ``corpus`` is only for messages."""

    repository: str
    commit: str
    files: tuple[str, ...]
    corpus: str

    def sources(self, *, stream: bool) -> Iterator[ByteSource]:
        """Each file when it is reached, so that a limited load fetches no more shards than it needs."""
        for name in self.files:
            shown = f"{HUB}:{self.repository}@{self.commit[:12]}:{name}"
            if stream and not _cached(self.repository, self.commit, (name,)):
                yield ByteSource(shown, name, partial(self._stream, name))
            else:
                path = _fetch(self.repository, self.commit, name, self.corpus)
                yield replace(local_file(path), shown=shown, name=name)

    def _stream(self, name: str) -> IO[bytes]:
        from huggingface_hub import HfFileSystem

        # block_size 0: one plain request that is dropped when enough rows are in.
        path = f"datasets/{self.repository}@{self.commit}/{name}"
        filesystem = partial(HfFileSystem, skip_instance_cache=True)
        opened = _asking(lambda: filesystem().open(path, "rb", block_size=0), self.repository, self.corpus)
        explain = partial(_failure, repository=self.repository, corpus=self.corpus, name=name)
        return cast(IO[bytes], _HubStream(opened, explain))


class _HubStream(io.RawIOBase):
    """Bytes over the wire; the transport library's errors, which are no OSErrors, become ours."""

    def __init__(self, opened: IO[bytes], explain: Callable[[Exception], CorpusError]) -> None:
        self._opened = opened
        self._explain = explain

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._opened.read(len(buffer))
        except Exception as error:
            raise self._explain(error) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._opened.close()
        super().close()


def locate(part: HubPart, corpus: str) -> HubFiles:
    """The commit and files that ``part`` means: from the cache if it is pinned and cached, else from the hub.

    Raises:
        CorpusError: if the repository, revision or files do not exist, or the hub cannot be reached and the
            cache does not hold them.
    """
    revision = part.revision or DEFAULT_REVISION
    pinned = COMMIT.fullmatch(revision) is not None
    cached = _cached(part.repository, revision, part.files)
    if cached and pinned:
        return HubFiles(part.repository, cached[0], cached[1], corpus)
    try:
        commit, names = _ask_for_files(part.repository, revision, corpus)
    except HubUnreachableError:
        if cached:
            return HubFiles(part.repository, cached[0], cached[1], corpus)
        raise
    shown = f"{HUB}:{part.repository}@{revision}"
    files = choose_files(names, part.files) or only_data_file(names, part.files)
    if not files and CARD in names:
        card = _card(_fetch(part.repository, commit, CARD, corpus))
        files = choose_files(names, config_patterns(card, part.files[0], shown))
    if not files:
        raise no_such_files(names, part.files, shown)
    return HubFiles(part.repository, commit, files, corpus)


class HubUnreachableError(CorpusError):
    """The hub did not answer: no network, a wrong endpoint, or offline mode."""


def _cached(repository: str, revision: str, patterns: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Commit and files of a cached snapshot, if the cache alone can tell which files ``patterns`` mean.

    It can for a literal name and for numbered shards; for other patterns it may hold only some of the files.
    """
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"datasets--{repository.replace('/', '--')}"
    ref = folder / "refs" / revision
    commit = ref.read_text(encoding="utf-8").strip() if ref.is_file() else revision
    snapshot = folder / "snapshots" / commit
    if not snapshot.is_dir():
        return None
    names = [str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if path.is_file()]
    files = choose_files(names, patterns)
    told = files and all(SHARD.search(name) or any(name == p and is_literal(p) for p in patterns) for name in files)
    return (commit, files) if told else None


def _ask_for_files(repository: str, revision: str, corpus: str) -> tuple[str, list[str]]:
    from huggingface_hub import HfApi

    info = _asking(
        lambda: HfApi().dataset_info(repository, revision=revision, timeout=ANSWER_SECONDS),
        repository,
        corpus,
    )
    return str(info.sha), [sibling.rfilename for sibling in info.siblings or ()]


def _fetch(repository: str, commit: str, name: str, corpus: str) -> Path:
    from huggingface_hub import hf_hub_download

    # No deadline of ours: a download may take its time, and the library gives up on a dead connection itself.
    try:
        return Path(
            hf_hub_download(repository, name, repo_type="dataset", revision=commit, etag_timeout=ANSWER_SECONDS)
        )
    except Exception as error:  # the transport library and its errors differ between releases of huggingface_hub
        raise _failure(error, repository, corpus, name) from error


def _card(path: Path) -> dict[str, Any]:
    from huggingface_hub.repocard import metadata_load

    return dict(metadata_load(path) or {})


def _asking(call: Callable[[], T], repository: str, corpus: str) -> T:
    """Run ``call`` for at most ``GIVE_UP_SECONDS``: name lookups and retries know no timeout of their own."""
    answers: list[T] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(call())
        except Exception as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True, name=f"ask-hub-{repository}")
    thread.start()
    thread.join(GIVE_UP_SECONDS)
    if answers:
        return answers[0]
    error = errors[0] if errors else TimeoutError(f"no answer within {GIVE_UP_SECONDS:g} s")
    raise _failure(error, repository, corpus) from error


def _failure(error: Exception, repository: str, corpus: str, name: str = "") -> CorpusError:
    """The library's error as ours, with the step that always works: a local file."""
    from huggingface_hub import errors

    what = f"data set {repository}" + (f", file {name}" if name else "")
    local = f"pass a local file: --corpus {corpus}=FILE"
    response = getattr(error, "response", None)
    if isinstance(error, errors.GatedRepoError):
        return CorpusError(
            f"The hub's {what} wants its licence accepted first.",
            next_step=f"Accept it on the hub and log in (hf auth login), or {local}",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return CorpusError(f"The hub's {what} has no such revision.", next_step=f"Leave it out, or {local}")
    if isinstance(error, errors.RepositoryNotFoundError):
        return CorpusError(
            f"The hub has no {what}, or it is private.",
            next_step=f"Check the name, log in (hf auth login), or {local}",
        )
    if isinstance(error, errors.HfHubHTTPError) and response is not None:
        return CorpusError(
            f"The hub answered with status {response.status_code} for {what}.",
            next_step=f"Try again later, or {local}",
        )
    if isinstance(error, OSError) and error.errno in CANNOT_STORE:
        return CorpusError(
            f"The hub's {what} could not be stored: {error.strerror}.",
            next_step=f"Set HF_HOME to a folder with room, or {local}",
        )
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
    return HubUnreachableError(
        f"The hub could not be reached for {what} ({reason}).",
        kept="Files already in the hub cache stay there.",
        next_step=f"Go online once, or {local}",
    )
