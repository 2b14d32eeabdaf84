"""The watch list: a TOML file that names repositories, organisations, folders and endpoints, and how to audit them.

::

    [settings]                       # for every audit; an entry's own settings override them
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

    [[endpoint]]
    address = "http://localhost:8080"
    checkpoint = "runs/e5/best"      # what it should serve; without it, what it served when it was first asked
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from embaudit.errors import UsageError
from embaudit.functions.endpoint.client import KEY_VARIABLE
from embaudit.functions.endpoint.recognise import is_address, is_loopback
from embaudit.masking import has_credentials
from embaudit.profile import load_profile
from embaudit.request import AuditSettings
from embaudit.toml import read_toml

KINDS = ("hub", "organisation", "folder", "endpoint")
EXAMPLE = 'For example: [[hub]] and below it name = "owner/name". See docs/watch.md.'


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: AuditSettings = AuditSettings()


class HubEntry(_Entry):
    """A repository on the hub, followed on one branch."""

    name: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    revision: str | None = Field(default=None, min_length=1, description="branch, tag or commit; default main")

    @property
    def source(self) -> str:
        """The name under which it is recorded."""
        return self.name if self.revision in (None, "main") else f"{self.name}@{self.revision}"


class OrganisationEntry(_Entry):
    """The embedding models of an organisation (or user) on the hub."""

    name: str = Field(pattern=r"^[\w.-]+$")
    library: str = Field(default="sentence-transformers", description="library tag; empty for any")
    tags: list[str] = Field(default=[], description="further tags a model must have")
    pattern: str = Field(default="*", description="pattern of the model's name, without the organisation")
    limit: int = Field(default=50, ge=1, le=1000, description="maximum number of models, most recently changed first")


class FolderEntry(_Entry):
    """A local checkpoint, or a folder of checkpoints."""

    path: Path
    each: bool = Field(default=False, description="watch every checkpoint folder directly inside it")
    pattern: str = Field(default="*", description="pattern of the folders' names, with each")


class EndpointEntry(_Entry):
    """A served model, and what it should serve: a checkpoint, or whatever it served when it was first asked."""

    address: str = Field(pattern="^(https?://|python:)", description="an endpoint's, or python:module:name")
    checkpoint: str | None = Field(
        default=None,
        min_length=1,
        description="a folder, packaged:NAME or owner/name@revision; by default, what its own passport says",
    )
    api: Literal["openai", "tei", "ollama", "azure", "cohere", "voyage", "jina", "gemini"] | None = Field(
        default=None, description="by default, recognised"
    )
    model: str | None = Field(default=None, description="its name there, if it serves several")
    send_texts: bool = Field(default=False, description="whether made-up texts may be sent to another machine")

    @model_validator(mode="after")
    def _require_consent(self) -> Self:
        if has_credentials(self.address):
            raise ValueError(f"the address has a password: a key is read from {KEY_VARIABLE}")
        if is_address(self.address) and not is_loopback(self.address) and not self.send_texts:
            raise ValueError(
                "it is another machine, and texts would be sent there: if that is meant, send_texts = true"
            )
        return self


class WatchList(BaseModel):
    """A watch list; ``read_watch_list`` returns it with the complete settings in every entry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: AuditSettings = Field(
        default=AuditSettings(), description="for every audit, unless overridden by an entry"
    )
    hub: list[HubEntry] = []
    organisation: list[OrganisationEntry] = []
    folder: list[FolderEntry] = []
    endpoint: list[EndpointEntry] = []

    @property
    def all(self) -> list[HubEntry | OrganisationEntry | FolderEntry | EndpointEntry]:
        return [*self.hub, *self.organisation, *self.folder, *self.endpoint]


def read_watch_list(path: Path) -> WatchList:
    """Read a watch list; file names in it are relative to it.

    Raises:
        UsageError: if there is no such file, or it is invalid.
    """
    path = path.expanduser().absolute()
    found = read_toml(path, WatchList, what="watch list", next_step=EXAMPLE)
    if not found.all:
        raise UsageError(f"The watch list {path} has no entries.", next_step=EXAMPLE)
    return found.model_copy(
        update={
            kind: [_completed(entry, found.settings, path.parent) for entry in getattr(found, kind)] for kind in KINDS
        }
    )


def _completed(entry: _Entry, shared: AuditSettings, folder: Path) -> _Entry:
    """The entry with the shared settings filled in and paths made absolute; checks that its profile exists."""
    settings = shared.overridden_by(entry.settings).relative_to(folder)
    load_profile(settings.profile)
    update: dict[str, Any] = {"settings": settings}
    if isinstance(entry, FolderEntry):
        # Links are not resolved: the name is watched, and its target may change.
        update["path"] = folder / entry.path.expanduser()
    if isinstance(entry, EndpointEntry) and entry.checkpoint is not None:
        place = folder / Path(entry.checkpoint).expanduser()
        update["checkpoint"] = str(place) if place.is_dir() else entry.checkpoint
    return entry.model_copy(update=update)
