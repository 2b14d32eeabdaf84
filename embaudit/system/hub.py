"""All access to the Hugging Face hub: requests with a deadline, downloads, streams, and their errors.

``huggingface_hub`` is imported on first use: it reads the environment on import, and most commands do not need it.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from embaudit.words.errors import CheckpointError, CorpusError, EmbauditError, HubOffline, HubUnreachable, one_line
from embaudit.words.masking import keep_secret, without_credentials

ANSWER_SECONDS = 5.0
# Name lookups and the library's own retries have no timeout.
GIVE_UP_SECONDS = 8.0
# Listing retries by itself for half a minute.
LISTING_SECONDS = 40.0
CANNOT_STORE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
# Status codes of a hub that is down or busy: a retry may succeed.
PASSING_STATUS = (408, 429)
STREAM_TRIES = 2
STREAM_RETRY_SECONDS = 1

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class RepositoryInfo:
    """A repository's commit at the given revision, and the names of its files."""

    commit: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Repository:
    """A repository at a revision.

    All methods raise ``HubUnreachable`` if the hub does not answer, and ``CheckpointError`` (for a model) or
    ``CorpusError`` (for a data set) if the repository does not exist, may not be accessed, or cannot be stored.

    Attributes:
        revision: branch, tag or commit; None for main.
        otherwise: what to do without the hub, as the end of a sentence ("pass a local folder").
    """

    kind: Literal["model", "dataset"]
    name: str
    revision: str | None
    otherwise: str

    def info(self) -> RepositoryInfo:
        """Commit and file names, from the hub."""
        with translate_errors(self):
            return self._ask()

    def file(self, name: str) -> Path:
        """A file, from the cache or downloaded."""
        from huggingface_hub import hf_hub_download

        # No deadline: downloads can take long, and the library itself gives up on a dead connection.
        with translate_errors(self, name):
            return Path(
                hf_hub_download(
                    self.name, name, repo_type=self.kind, revision=self.revision, etag_timeout=ANSWER_SECONDS
                )
            )

    def address(self, name: str) -> str:
        """The address from which ``datasets`` streams a file at this commit."""
        return f"hf://datasets/{self.name}@{self.revision}/{name}"

    def size(self, name: str) -> int:
        """Size of a file in bytes."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        with translate_errors(self, name):
            url = hf_hub_url(self.name, name, repo_type=self.kind, revision=self.revision)
            return int(get_hf_file_metadata(url, timeout=ANSWER_SECONDS).size or 0)

    def opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """A data set's file with random access over the network; nothing is cached.

        Unlike the other methods it leaves errors to the caller's ``translate_errors``: the content may be damaged.
        """
        from huggingface_hub import HfFileSystem, constants

        files = HfFileSystem(endpoint=constants.ENDPOINT)
        file: AbstractContextManager[IO[bytes]] = files.open(self.address(name), "rb", cache_type="none")
        return file

    def snapshot(self, patterns: Sequence[str], accept: Callable[[Sequence[str]], None]) -> Path:
        """A folder with the matching files, from the hub, or from the cache if the hub does not answer.

        Args:
            accept: called with all file names before anything is downloaded; raises to refuse.
        """
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError, RevisionNotFoundError

        download = partial(snapshot_download, self.name, revision=self.revision, allow_patterns=list(patterns))
        with translate_errors(self):
            try:
                # A download waits forever for a hub that accepts the connection but never answers: ask first.
                info = self._ask()
            except RevisionNotFoundError:
                raise
            except Exception as error:
                try:
                    return Path(download(local_files_only=True))
                except LocalEntryNotFoundError:
                    raise error from None
            accept(info.files)
            return Path(download(etag_timeout=ANSWER_SECONDS))

    def cached_snapshot(self) -> Path | None:
        """The folder of previously downloaded files, if any; it is named after their commit."""
        folder, revision = self._cache, self.revision or "main"
        ref = folder / "refs" / revision
        commit = ref.read_text(encoding="utf-8").strip() if ref.is_file() else revision
        snapshot = folder / "snapshots" / commit
        return snapshot if snapshot.is_dir() else None

    def cached_commits(self) -> list[str]:
        """The commits that have files in the cache."""
        return sorted(path.name for path in (self._cache / "snapshots").glob("*"))

    def remember(self, revision: str) -> None:
        """Record in the cache, as ``huggingface_hub`` does, that a branch or tag points to this commit.

        Offline, the revision then resolves to it. A commit without cached files is not recorded: the cache would look
        broken.
        """
        if revision != self.revision and self.cached_snapshot():
            ref = self._cache / "refs" / revision
            with suppress(OSError):  # an unwritable cache is reported when something has to be stored
                ref.parent.mkdir(parents=True, exist_ok=True)
                ref.write_text(str(self.revision), encoding="utf-8")

    @property
    def _cache(self) -> Path:
        from huggingface_hub import constants

        return Path(constants.HF_HUB_CACHE) / f"{self.kind}s--{self.name.replace('/', '--')}"

    def _ask(self) -> RepositoryInfo:
        from huggingface_hub import HfApi

        ask = partial(HfApi().repo_info, repo_type=self.kind, revision=self.revision, timeout=ANSWER_SECONDS)
        info: Any = with_deadline(lambda: ask(self.name))
        names = (one.rfilename for one in info.siblings or ())
        return RepositoryInfo(str(info.sha or ""), tuple(name for name in names if _is_inside(name)))

    def __str__(self) -> str:
        what = {"model": "checkpoint", "dataset": "data set"}[self.kind]
        return f"{what} {self.name}" + (f"@{self.revision}" if self.revision else "")


def list_models(author: str, tags: Sequence[str], accept: Callable[[str], bool], limit: int) -> list[str]:
    """Names of the models of an organisation or user, most recently changed first.

    Args:
        tags: all of which a model must have.
        accept: whether a name counts; at most ``limit`` names are returned.

    Raises:
        HubUnreachable: if the hub does not answer.
    """
    from huggingface_hub import HfApi

    def ask() -> list[str]:
        models = HfApi().list_models(author=author, filter=list(tags) or None, sort="last_modified")
        return list(islice((model.id for model in models if accept(model.id)), limit))

    try:
        return with_deadline(ask, LISTING_SECONDS)
    except Exception as error:
        raise _unreachable(f"the models of {author}", error, "wait") from error


def answering_address() -> str:
    """The hub's address, after checking that it answers.

    Raises:
        HubUnreachable: if it does not.
    """
    from huggingface_hub import constants, get_session

    address = without_credentials(constants.ENDPOINT)
    if constants.HF_HUB_OFFLINE:
        raise HubOffline("HF_HUB_OFFLINE is set", next_step="unset HF_HUB_OFFLINE to fetch checkpoints and corpora")
    try:
        # A redirect is an answer, too. Neither session follows one here: requests' (huggingface_hub 0) nor httpx's.
        with_deadline(lambda: get_session().head(constants.ENDPOINT, timeout=ANSWER_SECONDS))
    except Exception as error:
        raise HubUnreachable(
            f"{address} cannot be reached ({type(error).__name__})",
            next_step="local folders, packaged: and --corpus NAME=FILE work without it; behind a proxy, set "
            "HTTPS_PROXY",
        ) from error
    return address


def with_deadline(call: Callable[[], Answer], seconds: float | None = None) -> Answer:
    """The result of a call that might otherwise wait forever.

    Raises:
        TimeoutError: if it takes longer than ``seconds`` (``GIVE_UP_SECONDS``); otherwise whatever the call raises.
    """
    seconds = GIVE_UP_SECONDS if seconds is None else seconds
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True, name="ask-hub")
    thread.start()
    thread.join(seconds)
    if answers:
        return answers[0]
    raise errors[0] if errors else TimeoutError(f"no answer within {seconds:g} s")


def is_transient(error: object) -> bool:
    """Whether a retry may succeed."""
    return isinstance(error, HubUnreachable) and not isinstance(error, HubOffline)


def datasets_library() -> Any:
    """``datasets`` without progress bars, log lines and long retries: an ingest retries by itself.

    It is only given files at a commit, never the name of a repository: if the hub does not answer, it would take any
    revision that some other program left in its cache.
    """
    import datasets

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    config = datasets.config
    config.STREAMING_OPEN_MAX_RETRIES = config.STREAMING_READ_MAX_RETRIES = STREAM_TRIES
    for name in ("OPEN", "READ", "READ_SERVER_UNAVAILABLE", "READ_RATE_LIMIT"):
        setattr(config, f"STREAMING_{name}_RETRY_INTERVAL", STREAM_RETRY_SECONDS)
    return datasets


def stream_options() -> dict[str, Any]:
    """Storage options that make ``datasets`` stream from the same hub as everything else here."""
    from huggingface_hub import constants

    return {"hf": {"endpoint": constants.ENDPOINT}}


def _is_inside(name: str) -> bool:
    """Whether a file name stays inside the repository's folder: a custom hub may send any name."""
    return not {"", ".", ".."} & set(name.split("/"))


@contextmanager
def translate_errors(repository: Repository, file: str = "") -> Iterator[None]:
    """Turn errors of the library and its transport into errors that name the repository and say what to do.

    Their classes differ between releases of huggingface_hub and share no base but Exception.
    """
    try:
        yield
    except EmbauditError:
        raise
    except Exception as error:
        raise _failure(error, repository, file) from error


def _failure(error: Exception, repository: Repository, file: str) -> EmbauditError:
    from huggingface_hub import errors

    kind = CheckpointError if repository.kind == "model" else CorpusError
    name, otherwise = repository.name, repository.otherwise
    what = f"{repository}, file {file}" if file else str(repository)
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.HFValidationError):
        return kind(
            f"{name} is not a valid hub id: {one_line(error)}", next_step="Write owner/name or owner/name@revision."
        )
    if isinstance(error, errors.GatedRepoError):
        return kind(
            f"The hub's {what} is gated: you have to accept its licence first.",
            next_step=f"Accept it on the hub and log in (hf auth login), or {otherwise}",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        unpinned = replace(repository, revision=None)
        return kind(
            f"The hub has {unpinned}, but no revision {repository.revision!r} of it.",
            next_step=f"Name a commit, tag or branch that exists ({name}@main), or {otherwise}",
        )
    if isinstance(error, errors.RepositoryNotFoundError | errors.DisabledRepoError):
        return kind(
            f"The hub has no {what}, or it is private or disabled.",
            next_step=f"Check the spelling, log in (hf auth login), or {otherwise}",
        )
    is_local = isinstance(error, errors.LocalEntryNotFoundError)
    if isinstance(error, OSError) and error.errno in CANNOT_STORE and not is_local:
        return kind(
            f"The hub's {what} cannot be stored in the local hub cache: {one_line(error)}",
            next_step=f"Free some space, point HF_HOME to a writable folder, or {otherwise}",
        )
    if status is not None and status < 500 and status not in PASSING_STATUS:
        return kind(
            f"The hub answered with status {status} for {what}.", next_step=f"Log in (hf auth login), or {otherwise}"
        )
    return _unreachable(what, error, otherwise, status)


def _unreachable(what: str, error: Exception, otherwise: str, status: int | None = None) -> HubUnreachable:
    from huggingface_hub import constants, get_token

    # Also one that was stored by `hf auth login`.
    keep_secret(get_token())
    kept = "Files already in the local hub cache are kept."
    if constants.HF_HUB_OFFLINE:
        return HubOffline(
            f"The hub cannot be reached for {what}: HF_HUB_OFFLINE is set.",
            kept=kept,
            next_step=f"Unset it, or {otherwise}",
        )
    reason = one_line(error) if status is None else f"status {status}"
    return HubUnreachable(
        f"The hub cannot be reached for {what} ({reason}).",
        kept=kept,
        next_step=f"Check the network (embaudit doctor) and try again, or {otherwise}",
    )
