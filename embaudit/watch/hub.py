"""What the hub says of a repository or an organisation: one small question each, nothing fetched."""

from __future__ import annotations

from fnmatch import fnmatchcase

from embaudit.errors import CheckpointError
from embaudit.hub import Repository, list_models
from embaudit.watch.watch_list import OrganisationEntry


def current_commit(name: str, revision: str | None) -> str:
    """The commit that a branch or tag of a repository stands for now.

    Raises:
        CheckpointError: if there is no such repository or revision, or it may not be read.
        HubUnreachable: if the hub gives no answer.
    """
    commit = Repository("model", name, revision, otherwise="wait: the next watch tries again").info().commit
    if not commit:
        raise CheckpointError(f"The hub names no commit of {name}: the repository is empty.")
    return commit


def list_organisation(entry: OrganisationEntry) -> list[str]:
    """The organisation's models that the entry asks for, the most recently changed first.

    Raises:
        HubUnreachable: if the hub gives no answer.
    """
    return list_models(
        entry.name,
        [tag for tag in (entry.library, *entry.tags) if tag],
        lambda name: fnmatchcase(name.rpartition("/")[2], entry.pattern),
        entry.limit,
    )
