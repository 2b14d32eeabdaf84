"""Looks up repositories and organisations on the hub, without downloading anything."""

from __future__ import annotations

from fnmatch import fnmatchcase

from embaudit.system.hub import Repository, list_models
from embaudit.watch.watch_list import OrganisationEntry
from embaudit.words.errors import CheckpointError


def current_commit(name: str, revision: str | None) -> str:
    """The current commit of a repository's branch or tag.

    Raises:
        CheckpointError: if there is no such repository or revision, or it is not accessible.
        HubUnreachable: if the hub does not answer.
    """
    commit = Repository("model", name, revision, otherwise="wait: the next watch tries again").info().commit
    if not commit:
        raise CheckpointError(
            f"The hub has no commits of {name}: the repository is empty.",
            next_step="Wait until it is filled, or take it off the watch list.",
        )
    return commit


def list_organisation(entry: OrganisationEntry) -> list[str]:
    """The organisation's models that match the entry, most recently changed first.

    Raises:
        HubUnreachable: if the hub does not answer.
    """
    return list_models(
        entry.name,
        [tag for tag in (entry.library, *entry.tags) if tag],
        lambda name: fnmatchcase(name.rpartition("/")[2], entry.pattern),
        entry.limit,
    )
