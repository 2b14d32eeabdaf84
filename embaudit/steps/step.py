"""Steps of an audit: functions whose staged files are the cache.

    @step("layers", version=MEASURE_VERSION, tables=(LayerTextRow, LayerStatRow), name="layers")
    def layer_statistics(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, texts: int) -> None:
        ...
        out.columns(LayerTextRow, blocks)
        out.rows(LayerStatRow, rows, encodes=encoder.texts)

    text, stat = layer_statistics.compute(staging, spec, corpus, texts=20)

A step's content key is made here from its version and arguments, and names the folder of its files. If all of these
exist, they are the result, on whatever machine they were made. What people and later steps need to know about a file
(seconds, encodes, figures) is in the file itself. An audit runs its steps as Prefect tasks (``embaudit_tasks.steps``);
nothing here knows Prefect.

Every declared table is staged, even if empty, so a step is complete when its files exist.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias

from pydantic import BaseModel

from embaudit.steps.results import (
    NOT_IN_KEY,
    CheckpointSpec,
    Schema,
    Staged,
    StagedCorpus,
    TableOf,
    schema_of,
    table_name,
    versions_here,
    versions_of,
)
from embaudit.steps.staging.stage import is_staged, read_record, staged_path, write_columns, write_rows
from embaudit.system.installed import content_key

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = ParamSpec("P")
# Small figures that later steps need: JSON values by name, or a dataclass of them, as ``Staged.found`` reads it.
Detail: TypeAlias = "Mapping[str, Any] | DataclassInstance"

# The argument of which a step may read only some fields.
SETTINGS = "settings"
_only_staged: ContextVar[bool] = ContextVar("only_staged", default=False)


class NotStaged(BaseException):
    """A step's files would have to be made within ``only_staged``. It is no error, so nothing reports it as one."""


@contextmanager
def only_staged() -> Iterator[None]:
    """Let no step compute anything within the block.

    Raises:
        NotStaged: by the first step whose files do not exist.
    """
    token = _only_staged.set(True)
    try:
        yield
    finally:
        _only_staged.reset(token)


class Outputs:
    """Stages the tables that a step declares, each as its own file under the step's key."""

    def __init__(self, staging: str, folder: str, key: str, versions: Mapping[str, str]) -> None:
        self._staging, self._folder, self._key, self._versions = staging, folder, key, versions
        self._since = time.perf_counter()
        self.files: dict[str, Staged] = {}

    def rows(
        self,
        table: TableOf,
        rows: Iterable[Any],
        schema: Schema | None = None,
        *,
        encodes: int = 0,
        detail: Detail | None = None,
    ) -> None:
        """Stage rows of a row class, or of an unpublished table with the given schema.

        Args:
            encodes: number of texts that were encoded for them.
            detail: small figures that later steps need.

        Raises:
            MeasureError, StorageError: as ``write_rows``.
        """
        self._stage(
            table, partial(write_rows, rows=rows, schema=schema_of(table, schema)), encodes, lambda: detail or {}
        )

    def columns(
        self,
        table: TableOf,
        blocks: Iterable[Mapping[str, Any]],
        schema: Schema | None = None,
        *,
        encodes: int = 0,
        detail: Callable[[], Detail] | None = None,
    ) -> None:
        """Stage arrays block by block, for tables larger than memory.

        Args:
            detail: called when the last block has been written.

        Raises:
            MeasureError, StorageError: as ``write_columns``.
        """
        declared = schema_of(table, schema)
        assert declared is not None
        self._stage(table, partial(write_columns, blocks=blocks, schema=declared), encodes, detail or dict)

    def _stage(self, table: TableOf, write: Callable[..., int], encodes: int, detail: Callable[[], Detail]) -> None:
        name = table_name(table)
        path = staged_path(self._staging, self._folder, self._key, name)
        kept: dict[str, Any] = {}

        def record() -> Detail:
            seconds = time.perf_counter() - self._since
            # A result that is found again later must not pass for one of the packages that are installed then.
            found = detail()
            named = asdict(found) if is_dataclass(found) else found
            kept.update(seconds=seconds, encodes=encodes, detail=named, versions=self._versions)
            return kept

        rows = write(path, record=record)
        # With the values that will be read from the file.
        self.files[name] = Staged(table=name, path=path, rows=rows, **json.loads(json.dumps(kept)))
        self._since = time.perf_counter()


class Step(Generic[P]):
    """A function of a checkpoint, corpora, staged files and settings, whose results are staged under a content key.

    Attributes:
        folder: folder of its files in the staging folder.
        version: increased when values change.
        tables, columns: the tables that it stages, and by table its declared columns; none for unpublished tables.
        not_in_key: arguments that no value depends on, such as a label; such fields of a model are ``NOT_IN_KEY``.
        reads: the fields of the argument ``settings`` that count; the function sees no others. None: all of them.
    """

    def __init__(
        self,
        function: Callable[Concatenate[Outputs, P], None],
        folder: str,
        version: int,
        columns: Mapping[str, Collection[str]],
        not_in_key: Collection[str],
        reads: Collection[str] | None,
        name: str,
        run_name: str | None,
    ) -> None:
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self.function, self.folder, self.version = function, folder, version
        self.columns, self.tables = columns, tuple(columns)
        self.not_in_key, self.reads, self.name, self.run_name = frozenset(not_in_key), reads, name, run_name or name
        parameters = list(inspect.signature(function).parameters.values())[1:]
        unknown = self.not_in_key - {one.name for one in parameters}
        if unknown:
            raise TypeError(f"{function.__name__} has no argument {sorted(unknown)[0]!r} to leave out of its key")
        self.signature = inspect.Signature(parameters)

    def compute(self, staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
        """The staged files in the order of ``tables``, found or made."""
        files, _ = self.found_or_made(staging, *args, **kwargs)
        return files

    def key(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """16 hex digits that are the same for the same question on any machine."""
        counted = {name: value for name, value in self.bound(*args, **kwargs).items() if name not in self.not_in_key}
        if self.reads is not None:
            settings = counted[SETTINGS].model_dump(mode="json")
            counted[SETTINGS] = {field: settings[field] for field in self.reads}
        return content_key(step=self.function.__name__, version=self.version, arguments=key_part(counted))

    def found_or_made(self, staging: str, *args: P.args, **kwargs: P.kwargs) -> tuple[list[Staged], bool]:
        """The step's files, and whether they already existed, with every column that is declared today.

        Raises:
            StorageError: if one of them is broken.
            NotStaged: if they would have to be made within ``only_staged``.
        """
        key = self.key(*args, **kwargs)
        paths = {table: staged_path(staging, self.folder, key, table) for table in self.tables}
        if all(map(is_staged, paths.values())):
            found = [_read(table, path, self.columns.get(table, set())) for table, path in paths.items()]
            whole = [file for file in found if file is not None]
            if len(whole) == len(found):
                return [file.model_copy(update={"is_reused": True}) for file in whole], True
        if _only_staged.get():
            raise NotStaged(self.name)
        arguments = self.bound(*args, **kwargs)
        here = Staged(table="", path="", rows=0, versions=versions_here())
        out = Outputs(staging, self.folder, key, versions_of([here, *_files_in(arguments)]))
        if self.reads is not None:
            arguments[SETTINGS] = part_of(arguments[SETTINGS], self.reads)
        call: Callable[..., None] = self.function
        call(out, **arguments)
        if out.files.keys() != paths.keys():
            raise RuntimeError(f"{self.name} declares {sorted(paths)} and staged {sorted(out.files)}")
        return [out.files[table] for table in self.tables], False

    def bound(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """The function's arguments by name, with its defaults."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def __reduce__(self) -> str:
        # Pickled by the name that the decorated function has in its module, which worker processes import.
        return self.function.__qualname__


def step(
    folder: str,
    *,
    version: int,
    tables: tuple[TableOf, ...],
    name: str,
    run_name: str | None = None,
    not_in_key: Collection[str] = (),
    reads: Collection[str] | None = None,
) -> Callable[[Callable[Concatenate[Outputs, P], None]], Step[P]]:
    """Turn a function into a ``Step``, which describes the arguments.

    Args:
        tables: row classes of the tables that it stages, and names of those that are not published.
        name, run_name: what people see in the Prefect UI, of the task and of its runs; the latter is a format string
            for the arguments. Without it, runs are named like the task, and not numbered by Prefect.
    """

    def made(function: Callable[Concatenate[Outputs, P], None]) -> Step[P]:
        columns = {table_name(table): set(schema_of(table) or ()) for table in tables}
        return Step(function, folder, version, columns, not_in_key, reads, name, run_name)

    return made


def key_part(value: Any) -> Any:
    """An argument's part of a key: its content, but no paths or times.

    Raises:
        TypeError: for a value whose content is not known.
    """
    match value:
        case CheckpointSpec():
            return value.key_parts
        case Staged():
            return f"{value.table}/{value.key}"
        case StagedCorpus():
            return {"name": value.name, "corpus_id": value.corpus_id}
        case BaseModel():
            shown = {name for name, field in type(value).model_fields.items() if NOT_IN_KEY in field.metadata}
            return {name: key_part(one) for name, one in value if name not in shown}
        case Mapping():
            return {str(name): key_part(one) for name, one in value.items()}
        case list() | tuple():
            return [key_part(one) for one in value]
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(f"a {type(value).__name__} cannot be part of a key")


def _files_in(value: Any) -> Iterator[Staged]:
    """The staged files in a step's arguments, wherever they are."""
    match value:
        case Staged():
            yield value
        case BaseModel():
            for _, one in value:
                yield from _files_in(one)
        case Mapping():
            for one in value.values():
                yield from _files_in(one)
        case list() | tuple():
            for one in value:
                yield from _files_in(one)


def part_of(settings: BaseModel, fields: Collection[str]) -> BaseModel:
    """Settings without any other fields, so that a step cannot accidentally read what is not in its key."""
    part = settings.model_copy()
    for name in type(settings).model_fields.keys() - set(fields):
        del part.__dict__[name]
    return part


def _read(table: str, path: str, columns: Collection[str]) -> Staged | None:
    """A staged file; None if it was made before one of these columns was declared."""
    rows, names, record = read_record(path)
    return Staged(table=table, path=path, rows=rows, **record) if set(columns) <= set(names) else None
