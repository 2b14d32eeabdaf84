"""The watch list: a TOML file that names repositories, organisations and folders, and how to audit them.

::

    [settings]                       # of every audit; an entry's own settings come before them
    profile = "quick"

    [[hub]]
    name = "intfloat/e5-base-v2"
    revision = "main"                # the branch to follow

    [[organisation]]
    name = "sentence-transformers"
    pattern = "all-*"
    limit = 20

    [[folder]]
    path = "runs/e5"                 # relative to this file
    each = true                      # every checkpoint folder directly inside it
    settings = { max_length = 128 }
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from embaudit.errors import UsageError
from embaudit.profile import load_profile
from embaudit.request import AuditSettings
from embaudit.toml import read_toml

KINDS = ("hub", "organisation", "folder")
EXAMPLE = 'For example: [[hub]] and below it name = "owner/name". docs/watch.md says more.'


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: AuditSettings = AuditSettings()


class HubEntry(_Entry):
    """A repository on the hub, followed on one branch."""

    name: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    revision: str | None = Field(default=None, min_length=1, description="branch, tag or commit; main if none")

    @property
    def source(self) -> str:
        """The name that it is recorded under."""
        return self.name if self.revision in (None, "main") else f"{self.name}@{self.revision}"


class OrganisationEntry(_Entry):
    """What an organisation (or a person) has on the hub, in as far as it is an embedding model."""

    name: str = Field(pattern=r"^[\w.-]+$")
    library: str = Field(default="sentence-transformers", description="tag of the library; empty for any")
    tags: list[str] = Field(default=[], description="further tags that a model must have")
    pattern: str = Field(default="*", description="of the model's name, without the organisation")
    limit: int = Field(default=50, ge=1, le=1000, description="the most recently changed ones")


class FolderEntry(_Entry):
    """A local checkpoint, or a folder of checkpoints."""

    path: Path
    each: bool = Field(default=False, description="every checkpoint folder directly inside it")
    pattern: str = Field(default="*", description="of the folders' names, with each")


class WatchList(BaseModel):
    """A watch list; as ``read_watch_list`` returns it, every entry has its whole settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: AuditSettings = Field(default=AuditSettings(), description="of every audit, unless an entry has its own")
    hub: list[HubEntry] = []
    organisation: list[OrganisationEntry] = []
    folder: list[FolderEntry] = []

    @property
    def all(self) -> list[HubEntry | OrganisationEntry | FolderEntry]:
        return [*self.hub, *self.organisation, *self.folder]


def read_watch_list(path: Path) -> WatchList:
    """Read a watch list; files that it names are relative to it.

    Raises:
        UsageError: if there is none, or something in it does not fit: named with its place.
    """
    path = path.expanduser().absolute()
    found = read_toml(path, WatchList, what="watch list", next_step=EXAMPLE)
    if not found.all:
        raise UsageError(f"The watch list {path} names nothing to watch.", next_step=EXAMPLE)
    return found.model_copy(
        update={
            kind: [_completed(entry, found.settings, path.parent) for entry in getattr(found, kind)] for kind in KINDS
        }
    )


def _completed(entry: _Entry, shared: AuditSettings, folder: Path) -> _Entry:
    """An entry with the shared settings that it does not override and absolute paths; its profile exists."""
    settings = shared.overridden_by(entry.settings).relative_to(folder)
    load_profile(settings.profile)
    update: dict[str, Any] = {"settings": settings}
    if isinstance(entry, FolderEntry):
        # A link stays a link: what it points to changes, and what is watched is the name.
        update["path"] = folder / entry.path.expanduser()
    return entry.model_copy(update=update)
