"""Arguments and results of steps: small JSON values, which the Prefect UI can show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict

from embaudit.checkpoint import Checkpoint, Encoder, TextKind, load_checkpoint
from embaudit.checkpoint.loading import Loading
from embaudit.declared.table import Row
from embaudit.steps.staging.stage import staged_path, write_rows
from embaudit.steps.workers import settle
from embaudit.system.installed import content_key
from embaudit.words.errors import CheckpointError, NotMeasurable, is_out_of_memory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kind = TypeVar("Kind", bound="DataclassInstance")
Schema = Mapping[str, str]
# Packages on which the values of results may depend.
COMPUTING = ("embaudit", "torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
# A row class, or the name of a table that is passed between steps and not published.
TableOf = type[Row] | str
# Marks a field of a step's argument that is for people, and that no value depends on: ``Annotated[str, NOT_IN_KEY]``.
NOT_IN_KEY: Final = "no part of a step's key"


class CheckpointSpec(Loading):
    """Which checkpoint, on which device, in which precision: everything a worker needs to load the same one."""

    reference: str
    checkpoint_id: str

    @property
    def key_parts(self) -> dict[str, str]:
        """What goes into a key. ``cuda:0`` and ``cuda:1`` compute the same."""
        return {"checkpoint": self.checkpoint_id, "device": self.device.split(":")[0], "dtype": self.dtype}

    @property
    def in_float32(self) -> CheckpointSpec:
        """The same checkpoint in full precision."""
        return self.model_copy(update={"dtype": "float32"})


class Staged(BaseModel):
    """A staged file, and what it cost to compute."""

    model_config = ConfigDict(frozen=True)

    table: str
    path: str
    rows: int
    seconds: float = 0.0
    encodes: int = 0
    # Small figures that later steps need (blocks of a corpus, pairs found), read by ``found``.
    detail: dict[str, Any] = {}
    # Versions of the packages that computed it and what it was computed from; empty for rows that no step computed.
    versions: dict[str, str] = {}
    # Whether an earlier run computed it.
    is_reused: bool = False

    def __eq__(self, other: object) -> bool:
        """Whether it is the same file, whoever computed it."""
        return isinstance(other, Staged) and super().__eq__(other.model_copy(update={"is_reused": self.is_reused}))

    def found(self, kind: type[Kind]) -> Kind:
        """The figures of a dataclass that the step gave with the file, perhaps among others."""
        return kind(**{one.name: self.detail[one.name] for one in fields(kind)})

    @property
    def key(self) -> str:
        """The key of its content: the name of its folder."""
        return self.path.rsplit("/", 2)[-2]


@cache
def versions_here() -> dict[str, str]:
    """Versions of the packages that a result computed by this process depends on."""
    return {name: version(name) for name in COMPUTING}


def versions_of(staged: Iterable[Staged]) -> dict[str, str]:
    """Versions of the packages that computed these files; of one package several if they differ."""
    found: dict[str, set[str]] = {}
    for part in staged:
        for name, several in part.versions.items():
            found.setdefault(name, set()).update(several.split(", "))
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


class StagedCorpus(BaseModel):
    """An ingested corpus: its identity, its size and its staged rows."""

    model_config = ConfigDict(frozen=True)

    name: str
    corpus_id: str
    kind: str
    source: str
    rows: int
    report: str
    files: tuple[Staged, ...]

    @property
    def content_path(self) -> str:
        """Path of the staged texts or pairs."""
        return next(file.path for file in self.files if file.table in ("text", "text_pair"))


def stage_rows(
    staging: str,
    folder: str,
    key: str,
    table: TableOf,
    rows: Iterable[Any],
    schema: Schema | None = None,
    *,
    file_name: str | None = None,
) -> Staged:
    """Stage rows that belong to no step, under the caller's key; an existing file is replaced.

    Args:
        table: a row class, or the name of a table that is not published.
        file_name: instead of the table's name.

    Raises:
        MeasureError, StorageError: as ``write_rows``.
    """
    path = staged_path(staging, folder, key, file_name or table_name(table))
    return Staged(table=table_name(table), path=path, rows=write_rows(path, rows, schema_of(table, schema)))


@dataclass(frozen=True)
class NoteText:
    """A message for the audit's end."""

    text: str


def note(text: str, staging: str) -> Staged:
    """A message for the audit's end, as a staged file that is not published."""
    staged = stage_rows(staging, "audit", content_key(note=text), "note", [{"text": text}])
    return staged.model_copy(update={"detail": asdict(NoteText(text))})


def table_name(table: TableOf) -> str:
    return table if isinstance(table, str) else table.table.name


def schema_of(table: TableOf, schema: Schema | None = None) -> Schema | None:
    """The columns of a row class; for the name of an unpublished table, those given."""
    return schema if isinstance(table, str) else table.table.schema


@contextmanager
def in_full_precision(measure: str) -> Iterator[None]:
    """Work in float32 that an audit can do without if the device, or the machine, is too small for it.

    Raises:
        NotMeasurable: if memory runs out.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise NotMeasurable(
            f"the memory of this device is too small for {measure} in float32.",
            next_step="Measure it on a larger one, or where there is more memory, on the processor: --device cpu.",
        ) from error


@lru_cache(maxsize=2)
def checkpoint_of(spec: CheckpointSpec, *, as_a_whole: bool = False) -> Checkpoint:
    """Load a checkpoint once per process, and make sure that it is still the one that the audit was planned with.

    Args:
        as_a_whole: for whoever writes to its weights or takes derivatives: large ones otherwise stay in their files.

    Raises:
        CheckpointError: if its files have changed since.
    """
    settle(spec.device)
    checkpoint = load_checkpoint(spec.reference, spec.load_options, may_stay_in_files=not as_a_whole)
    if checkpoint.checkpoint_id != spec.checkpoint_id:
        raise CheckpointError(
            f"{spec.reference} changed while it was being audited: it was {spec.checkpoint_id} and is now "
            f"{checkpoint.checkpoint_id}.",
            next_step="Run the command again: it audits the checkpoint as it is now.",
        )
    return checkpoint


def encoder_of(spec: CheckpointSpec, kind: TextKind = "text", *, as_a_whole: bool = False) -> Encoder:
    """A new encoder for one kind of texts, with their prompt; it counts the texts that it encodes."""
    return Encoder(checkpoint_of(spec, as_a_whole=as_a_whole).reading(kind))
