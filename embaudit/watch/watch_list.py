"""The watch list: a TOML file that names what is looked at every night, and how.

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

    [[index]]
    store = "chroma:http://localhost:8000"
    function = "runs/e5/best"        # what should have built it

    [[search]]                       # any question, with its parameters (docs/commands.md) and how often it is asked
    store = "chroma:http://localhost:8000"
    function = "runs/e5/best"
    every = "week"

Looks up repositories and organisations on the hub, without downloading anything.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from embaudit.measures.listed import load_profile
from embaudit.questions.audit import AuditSettings
from embaudit.questions.names import ASKS
from embaudit.system.hub import Repository, list_models
from embaudit.system.settings import Settings
from embaudit.system.small_files import read_toml
from embaudit.watch.asked import SHORT_FORMS, AskedEntry, read_questions
from embaudit.words.errors import CheckpointError, UsageError, hint

# In the folder of reports, the passports of watched endpoints.
PASSPORTS = "endpoints"
# What questions take from the settings of the whole list.
SHARED = {"device", "allow_pickle", "trust_remote_code"}
KINDS = ("hub", "organisation", "folder")
# What is asked at night: any question, and what is short for several.
ASKED = (*SHORT_FORMS, *ASKS)
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


class WatchList(BaseModel):
    """A watch list; ``read_watch_list`` returns it with the complete settings in every entry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: AuditSettings = Field(
        default=AuditSettings(), description="for every audit, unless overridden by an entry"
    )
    hub: list[HubEntry] = []
    organisation: list[OrganisationEntry] = []
    folder: list[FolderEntry] = []
    # By question or short form, the tables [[index]], [[search]], [[why]] …
    asked: dict[str, list[dict[str, Any]]] = {}
    # Read from these.
    questions: list[AskedEntry] = Field(default=[], exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _gather_questions(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        known = ["settings", *KINDS, *ASKED]
        if unknown := [name for name in content if name not in known]:
            raise ValueError(f"unknown key {unknown[0]}{hint(unknown[0], known)}")
        if no_list := [name for name in ASKED if not isinstance(content.get(name, []), list)]:
            raise ValueError(f"{no_list[0]}: an entry is written [[{no_list[0]}]]")
        asked = {name: content[name] for name in ASKED if name in content}
        return {**{name: value for name, value in content.items() if name not in asked}, "asked": asked}

    @property
    def all(self) -> list[HubEntry | OrganisationEntry | FolderEntry]:
        return [*self.hub, *self.organisation, *self.folder]


def read_watch_list(path: Path) -> WatchList:
    """Read a watch list; file names in it are relative to it.

    Raises:
        UsageError: if there is no such file, or it is invalid.
    """
    path = path.expanduser().absolute()
    found = read_toml(path, WatchList, what="watch list", next_step=EXAMPLE)
    if not found.all and not found.asked:
        raise UsageError(f"The watch list {path} has no entries.", next_step=EXAMPLE)
    shared = found.settings.model_dump(include=SHARED, exclude_none=True)
    return found.model_copy(
        update={
            kind: [_completed(entry, found.settings, path.parent) for entry in getattr(found, kind)] for kind in KINDS
        }
        | {"questions": read_questions(found.asked, path, shared, Settings().reports / PASSPORTS)}
    )


def _completed(entry: _Entry, shared: AuditSettings, folder: Path) -> _Entry:
    """The entry with the shared settings filled in and paths made absolute; checks that its profile exists."""
    settings = shared.overridden_by(entry.settings).relative_to(folder)
    load_profile(settings.profile)
    update: dict[str, Any] = {"settings": settings}
    if isinstance(entry, FolderEntry):
        # Links are not resolved: the name is watched, and its target may change.
        update["path"] = folder / entry.path.expanduser()
    return entry.model_copy(update=update)


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
