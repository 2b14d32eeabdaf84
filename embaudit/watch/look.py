"""Decides for one source what is there now and whether it is new, without fetching known commits.

Local checkpoint folders are found, and checked for completeness. A preview of a list fetches and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError, safe_open

from embaudit.checkpoint import resolve
from embaudit.checkpoint.files import weight_files
from embaudit.checkpoint.load import describe
from embaudit.questions.audit import AuditSettings
from embaudit.warehouse.tables.audits import DONE, Status
from embaudit.watch.history import NO_REVISION, History, WatchedRevision, read_watched
from embaudit.watch.watch_list import OrganisationEntry, WatchList, current_commit, list_organisation
from embaudit.words.errors import CheckpointError, EmbauditError, HubUnreachable, one_line

# A folder with any of these holds a checkpoint, or will when copying is done.
SIGNS = ("config.json", "modules.json", "tokenizer.json", "*.safetensors", "*.safetensors.index.json", "*.bin")

READABLE = "Check that it is there, and who may read it; the next watch looks again."


def checkpoint_folders(folder: Path, pattern: str) -> list[Path]:
    """The checkpoint folders directly inside a folder, by name, including half-copied ones.

    Raises:
        CheckpointError: if the folder cannot be read.
    """
    try:
        children = sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be listed: {error.strerror or error}.", next_step=READABLE) from error
    return [
        child
        for child in children
        if not child.name.startswith(".") and fnmatchcase(child.name, pattern) and _holds_checkpoint(child)
    ]


def require_whole_weights(folder: Path) -> None:
    """Refuse truncated weight files: a file that is still being copied would have a hash, too.

    Raises:
        CheckpointError: naming the file.
    """
    for path in weight_files(folder):
        if path.suffix != ".safetensors":
            continue
        try:
            with safe_open(path, framework="numpy"):
                pass
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{path} is incomplete ({one_line(error)}).",
                next_step="If it is still being copied, the next watch will find it complete; otherwise copy it again.",
            ) from error


def fingerprint(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and modification time of every file, which change while someone is writing.

    Raises:
        CheckpointError: if a file disappears meanwhile, or a folder cannot be listed.
    """
    try:
        stats = {path: path.stat() for path in sorted(folder.rglob("*")) if path.is_file()}
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be read: {error.strerror or error}.", next_step=READABLE) from error
    return {str(path.relative_to(folder)): (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def _holds_checkpoint(folder: Path) -> bool:
    try:
        return any(next(folder.glob(sign), None) is not None for sign in SIGNS)
    except OSError:
        # Unreadable: whoever reads its content reports that.
        return True


BASELINE = "the settings have changed: a new baseline, not compared"


class Source(BaseModel):
    """A watched checkpoint."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["hub", "local"]
    name: str
    # owner/name or a path; the branch's commit is looked up.
    place: str
    branch: str | None = None
    settings: AuditSettings


class SourceState(BaseModel):
    """The result of looking at a source.

    Attributes:
        status: of the row to write; None if an audit is needed first.
        is_new: whether this revision was never seen before.
        reference: what to audit, pinned.
    """

    model_config = ConfigDict(frozen=True)

    source: Source
    revision: str = NO_REVISION
    checkpoint_id: str | None = None
    status: Status | None = None
    is_new: bool = False
    reason: str | None = None
    audit_id: str | None = None
    reference: str = ""

    @property
    def needs_audit(self) -> bool:
        return self.status is None


def named_sources(watch_list: WatchList) -> tuple[list[Source], list[SourceState]]:
    """The repositories and folders of a list, and findings for folders that could not be listed; no organisations."""
    found = [
        Source(kind="hub", name=entry.source, place=entry.name, branch=entry.revision, settings=entry.settings)
        for entry in watch_list.hub
    ]
    failed = []
    for folder in watch_list.folder:
        source = local_source(folder.path, folder.settings)
        if not folder.each:
            found.append(source)
            continue
        try:
            inside = checkpoint_folders(folder.path, folder.pattern)
        except CheckpointError as error:
            failed.append(failed_finding(source, error))
            continue
        found += [local_source(path, folder.settings) for path in inside]
    return found, failed


def every_source(
    watch_list: WatchList, models_of: Callable[[OrganisationEntry], list[str]]
) -> tuple[list[Source], list[SourceState]]:
    """Every source of a list, once per settings, and findings for entries that could not be listed.

    Args:
        models_of: gets an organisation's models from the hub; flows pass a task.
    """
    sources, failed = named_sources(watch_list)
    # A repository's own entry takes precedence over its organisation's.
    named = {source.name for source in sources}
    for entry in watch_list.organisation:
        everything = Source(kind="hub", name=f"{entry.name}/*", place=entry.name, settings=entry.settings)
        try:
            names = models_of(entry)
        except HubUnreachable as error:
            failed.append(failed_finding(everything, error, "unreachable"))
            continue
        if not names:
            none = CheckpointError(
                f"The hub has no models of {entry.name} that match the entry.",
                next_step="Correct the entry in the watch list.",
            )
            failed.append(failed_finding(everything, none))
        sources += [
            Source(kind="hub", name=name, place=name, settings=entry.settings) for name in names if name not in named
        ]
    distinct = {(source.name, source.settings.key): source for source in reversed(sources)}
    return list(distinct.values())[::-1], failed


def local_source(path: Path, settings: AuditSettings) -> Source:
    return Source(kind="local", name=str(path), place=str(path), settings=settings)


def look(
    source: Source,
    history: History,
    *,
    commit_of: Callable[[str, str | None], str] = current_commit,
    content_of: Callable[[Source, str], str] | None = None,
    again: bool = False,
) -> SourceState:
    """What is there now for a source, and whether it needs an audit. Errors become findings, too.

    Args:
        commit_of: gets a branch's commit from the hub; flows pass a task.
        content_of: fetches a reference and returns its checkpoint id. Without it, a new commit's content stays unknown.
        again: audit it even if seen before.
    """
    key = source.settings.key
    revision = NO_REVISION
    try:
        if source.kind == "local":
            checkpoint_id = (content_of or read_content)(source, source.place)
            return judged(source, checkpoint_id, checkpoint_id, source.place, history, again=again)
        revision = commit_of(source.place, source.branch)
        reference = f"{source.place}@{revision}"
        seen = history.find(source.name, revision, key)
        if seen is not None and seen.status in DONE and not again:
            return known_finding(source, seen)
        if content_of is None:
            return SourceState(source=source, revision=revision, is_new=seen is None, reference=reference)
        return judged(source, revision, content_of(source, reference), reference, history, again=again)
    except HubUnreachable as error:
        return failed_finding(source, error, "unreachable", revision)
    except EmbauditError as error:
        # Including invalid settings, such as an unknown pooling.
        if source.kind == "local" and not Path(source.place).exists():
            gone = CheckpointError(
                f"There is no folder {source.place}.", next_step="Put it back, or take it off the list."
            )
            return failed_finding(source, gone, "gone", revision)
        return failed_finding(source, error, "failed", revision)


def judged(
    source: Source, revision: str, checkpoint_id: str, reference: str, history: History, *, again: bool = False
) -> SourceState:
    """The finding for a revision with known content: seen, unchanged, audited elsewhere, or to be audited."""
    key = source.settings.key
    seen = history.find(source.name, revision, key)
    facts: dict[str, Any] = {
        "source": source,
        "revision": revision,
        "checkpoint_id": checkpoint_id,
        "is_new": seen is None,
    }
    if again:
        return SourceState(**facts, reference=reference)
    if seen is not None and seen.status in DONE:
        return known_finding(source, seen)
    before = history.newest(source.name, key)
    if before is not None and before.checkpoint_id == checkpoint_id:
        reason = f"the same content as {before.revision}"
        return SourceState(**facts, status="unchanged", audit_id=before.audit_id, reason=reason)
    known = history.by_content(checkpoint_id, key)
    if known is not None:
        reason = f"audited before, as {known.source} {known.revision}"
        return SourceState(**facts, status="known", audit_id=known.audit_id, reason=reason)
    baseline = BASELINE if history.has_other_settings(source.name, key) else None
    return SourceState(**facts, reference=reference, reason=baseline)


def known_finding(source: Source, row: WatchedRevision) -> SourceState:
    """The finding for a revision that was dealt with before."""
    return SourceState(
        source=source,
        revision=row.revision,
        checkpoint_id=row.checkpoint_id,
        status=row.status,
        reason=row.reason,
        audit_id=row.audit_id,
    )


def failed_finding(
    source: Source, error: EmbauditError, status: Status = "failed", revision: str = NO_REVISION
) -> SourceState:
    """The finding for a source that could not be read."""
    return SourceState(source=source, status=status, revision=revision, reason=error.happened)


def read_content(source: Source, reference: str) -> str:
    """The checkpoint id of a reference; incomplete weights are an error.

    Raises:
        CheckpointError: if it cannot be read, or is being written.
        HubUnreachable: if the hub does not answer and the cache does not have it.
    """
    options = source.settings.load_options
    resolved = resolve(reference, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code)
    before = fingerprint(resolved.folder) if source.kind == "local" else None
    recipe, identity = describe(resolved, options)
    for part in (recipe.transformer_path, *(module.path for module in recipe.modules)):
        require_whole_weights(resolved.folder / part)
    if before is not None and fingerprint(resolved.folder) != before:
        raise CheckpointError(
            f"{source.place} changed while being read: it is still being written.",
            next_step="Wait: the next watch looks again.",
        )
    return identity.checkpoint_id


def preview(entries: WatchList, warehouse: str, *, again: bool) -> list[SourceState]:
    """The findings for everything on the list, given what the warehouse knows."""
    history = History(read_watched(warehouse))
    sources, findings = every_source(entries, list_organisation)
    return findings + [look(source, history, again=again) for source in sources]
