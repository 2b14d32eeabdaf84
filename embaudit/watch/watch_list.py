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
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from embaudit.measures.listed import load_profile
from embaudit.questions.answer import ASKS
from embaudit.questions.audit import AuditSettings
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.system.small_files import read_toml
from embaudit.watch.asked import AskedEntry, read_questions
from embaudit.watch.places import beside, require_consent
from embaudit.words.errors import UsageError, hint
from embaudit.words.masking import keep_credentials, masked, without_credentials

KINDS = ("hub", "organisation", "folder", "endpoint", "index")
Api = Literal["openai", "tei", "ollama", "azure", "cohere", "voyage", "jina", "gemini"]
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
    api: Api | None = Field(default=None, description="by default, recognised")
    model: str | None = Field(default=None, description="its name there, if it serves several")
    send_texts: bool = Field(default=False, description="whether made-up texts may be sent to another machine")

    @model_validator(mode="after")
    def _require_consent(self) -> Self:
        require_consent(self.address, self.send_texts)
        return self


class IndexEntry(_Entry):
    """Stored vectors, and the function that should have built them."""

    store: str = Field(min_length=1, description="what `embaudit vectors` takes: a file, a folder, an address")
    function: str = Field(
        min_length=1, description="a checkpoint, an endpoint's address, python:module:name, or a passport's file"
    )
    vector: str | None = Field(default=None, description="column of vectors; by default, found")
    text: str | None = Field(default=None, description="column of texts, or a template of what was embedded")
    id: str | None = Field(default=None, description="column by which rows are known again; by default, found")
    texts: Path | None = Field(default=None, description="file of texts, row by row or by id")
    part: str | None = Field(default=None, alias="from", description="table, collection or split")
    numbers: str | None = Field(default=None, description="what bytes are")
    where: dict[str, str] = Field(default={}, description="rows whose fields have these values alone")
    rows: int = Field(
        default=1_000, ge=1, le=20_000, description="how many new and how many old ones are encoded again"
    )
    lost: float = Field(
        default=0.1, gt=0, le=1, description="share of the most rows that it had which, once gone, is a problem"
    )
    also: list[str] = Field(default=[], description="other functions that may have built rows")
    golden: Path | None = Field(default=None, description="golden queries that are asked every night (docs/why.md)")
    k: int = Field(default=10, ge=1, le=1_000, description="among how many results they should be found")
    api: Api | None = Field(default=None, description="of an endpoint; by default, recognised")
    model: str | None = Field(default=None, description="its name there, if it serves several")
    send_texts: bool = Field(default=False, description="whether texts of rows may be sent to another machine")

    @model_validator(mode="after")
    def _require_consent(self) -> Self:
        for one in (self.function, *self.also):
            require_consent(one, self.send_texts)
        return self

    @property
    def name(self) -> str:
        """What it is called wherever it is shown or recorded: without credentials."""
        part = f" (from {self.part})" if self.part else ""
        which = "".join(f", {name} = {value}" for name, value in sorted(self.where.items()))
        return masked(f"{without_credentials(self.store)}{part}{which}")

    @property
    def asked_rows(self) -> ReadOptions:
        given = {name: getattr(self, name) for name in ("vector", "text", "id", "texts", "part", "numbers")}
        return ReadOptions(**given, where=tuple(self.where.items()), allow_pickle=bool(self.settings.allow_pickle))


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
    index: list[IndexEntry] = []
    # By question, the tables [[search]], [[why]] …
    asked: dict[str, list[dict[str, Any]]] = {}
    # Read from these.
    questions: list[AskedEntry] = Field(default=[], exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _gather_questions(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        known = ["settings", *KINDS, *ASKS]
        if unknown := [name for name in content if name not in known]:
            raise ValueError(f"unknown key {unknown[0]}{hint(unknown[0], known)}")
        if no_list := [name for name in ASKS if not isinstance(content.get(name, []), list)]:
            raise ValueError(f"{no_list[0]}: an entry is written [[{no_list[0]}]]")
        asked = {name: content[name] for name in ASKS if name in content}
        return {**{name: value for name, value in content.items() if name not in asked}, "asked": asked}

    @property
    def all(self) -> list[HubEntry | OrganisationEntry | FolderEntry | EndpointEntry | IndexEntry]:
        return [*self.hub, *self.organisation, *self.folder, *self.endpoint, *self.index]


def read_watch_list(path: Path) -> WatchList:
    """Read a watch list; file names in it are relative to it.

    Raises:
        UsageError: if there is no such file, or it is invalid.
    """
    path = path.expanduser().absolute()
    found = read_toml(path, WatchList, what="watch list", next_step=EXAMPLE)
    if not found.all and not found.asked:
        raise UsageError(f"The watch list {path} has no entries.", next_step=EXAMPLE)
    return found.model_copy(
        update={
            kind: [_completed(entry, found.settings, path.parent) for entry in getattr(found, kind)] for kind in KINDS
        }
        | {"questions": read_questions(found.asked, path.parent, found.settings.model_dump(include={"device"}))}
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
        update["checkpoint"] = beside(entry.checkpoint, folder)
    if isinstance(entry, IndexEntry):
        keep_credentials(entry.store)
        place = StorePlace(entry.store)
        update = {
            **update,
            # Also if nothing is there tonight: it is called the same every night.
            "store": entry.store if place.scheme else str(folder / place.path),
            "function": beside(entry.function, folder),
            "also": [beside(one, folder) for one in entry.also],
            "texts": None if entry.texts is None else folder / entry.texts.expanduser(),
            "golden": None if entry.golden is None else folder / entry.golden.expanduser(),
        }
    return entry.model_copy(update=update)
