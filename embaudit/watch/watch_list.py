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

import difflib
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from embaudit.errors import UsageError
from embaudit.profile import load_profile
from embaudit.watch.settings import AuditSettings

KINDS = ("hub", "organisation", "folder")
EXAMPLE = 'For example: [[hub]] and below it name = "owner/name". README.md, "Watch", says more.'


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
    """A watch list as read: every entry with its whole settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"The watch list {path} cannot be read: {error.strerror or error}.", next_step=EXAMPLE
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The watch list {path} is not TOML: {error}.", next_step=EXAMPLE) from error
    shared = content.pop("settings", {})
    try:
        AuditSettings.model_validate(shared)
    except ValidationError as error:
        raise _misfit(path, error, ("settings",), AuditSettings) from error
    for kind in KINDS:
        entries = content.get(kind)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and isinstance(entry.get("settings", {}), dict):
                entry["settings"] = {**shared, **entry.get("settings", {})}
    try:
        found = WatchList.model_validate(content)
    except ValidationError as error:
        raise _misfit(path, error, (), WatchList) from error
    if not (found.hub or found.organisation or found.folder):
        raise UsageError(f"The watch list {path} names nothing to watch.", next_step=EXAMPLE)
    return _placed(found, path.parent)


def _placed(found: WatchList, folder: Path) -> WatchList:
    """The list with absolute paths, and every profile known to exist."""

    def settled(entry: Any) -> Any:
        settings = entry.settings.relative_to(folder)
        load_profile(settings.profile)
        update: dict[str, Any] = {"settings": settings}
        if isinstance(entry, FolderEntry):
            # A link stays a link: what it points to changes, and what is watched is the name.
            update["path"] = folder / entry.path.expanduser()
        return entry.model_copy(update=update)

    return WatchList(**{kind: [settled(entry) for entry in getattr(found, kind)] for kind in KINDS})


def _misfit(path: Path, error: ValidationError, outer: tuple[str, ...], model: type[BaseModel]) -> UsageError:
    first = error.errors()[0]
    place = (*outer, *first["loc"])
    # Counted as people count: the second [[hub]] is hub 2.
    where = " ".join(str(part + 1) if isinstance(part, int) else str(part) for part in place)
    if first["type"] == "extra_forbidden":
        names = _names_at(first["loc"], model)
        near = difflib.get_close_matches(str(place[-1]), names, n=1)
        return UsageError(
            f"The watch list {path} has something that embaudit does not know: {where}.",
            next_step=f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}.",
        )
    # A value that may be a secret is not repeated.
    said = "" if first["type"] == "value_error" else f", and it is {first['input']!r}"
    return UsageError(
        f"In the watch list {path}, {where} does not fit: {first['msg']}{said}.",
        next_step=EXAMPLE if len(place) < 3 else "",
    )


def _names_at(location: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """The names that may stand where an unknown one stands."""
    entries: dict[str, type[BaseModel]] = {"hub": HubEntry, "organisation": OrganisationEntry, "folder": FolderEntry}
    if "settings" in location[:-1]:
        return list(AuditSettings.model_fields)
    if len(location) > 1:
        return list(entries[str(location[0])].model_fields)
    return [*model.model_fields, *(["settings"] if model is WatchList else [])]
