"""What goes into a task and what comes out: small JSON values, so that Prefect can cache and show them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from prefect.context import TaskRunContext

    from embaudit.checkpoint import Checkpoint


class CheckpointSpec(BaseModel):
    """Which checkpoint, on which device, in which precision: everything a worker needs to load the same one."""

    model_config = ConfigDict(frozen=True)

    reference: str
    checkpoint_id: str
    device: str
    dtype: str
    pooling: str | None = None
    max_length: int | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    @property
    def key_parts(self) -> dict[str, str]:
        """What a cache key holds of it. ``cuda:0`` and ``cuda:1`` compute the same."""
        return {"checkpoint": self.checkpoint_id, "device": self.device.split(":")[0], "dtype": self.dtype}


class Staged(BaseModel):
    """A staged file, and what it cost to compute."""

    model_config = ConfigDict(frozen=True)

    table: str
    path: str
    rows: int
    seconds: float = 0.0
    encodes: int = 0
    # Small figures that later steps plan with (blocks of a corpus, pairs found).
    detail: dict[str, Any] = {}


def note(text: str, staging: str) -> Staged:
    """Something that an audit must say at its end, as a staged file that is not published."""

    from embaudit.keys import content_key
    from embaudit.warehouse.stage import staged_path, write_rows

    path = staged_path(staging, "audit", content_key(note=text), "note")
    return Staged(table="note", path=str(path), rows=write_rows(path, [{"text": text}]), detail={"text": text})


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
        """The staged texts or pairs."""
        return next(file.path for file in self.files if file.table in ("text", "text_pair"))


def by_key(context: TaskRunContext, parameters: dict[str, Any]) -> str:
    """Prefect's cache key: the task's name and the content key that the flow computed for it."""
    return f"embaudit-{context.task.name}-{parameters['key']}"


# Options of every task whose result is remembered by content, across runs and servers.
CACHED: dict[str, Any] = {"cache_key_fn": by_key, "persist_result": True, "result_serializer": "json"}


@lru_cache(maxsize=2)
def checkpoint_of(spec: CheckpointSpec) -> Checkpoint:
    """Load a checkpoint once a process, and make sure that it still is the one the flow planned with.

    Raises:
        CheckpointError: if its files changed since.
    """
    from embaudit.checkpoint import LoadOptions, load_checkpoint
    from embaudit.errors import CheckpointError
    from embaudit_tasks.workers import settle

    settle(spec.device)
    options = LoadOptions(
        device=spec.device,
        dtype=spec.dtype,
        pooling=spec.pooling,
        max_length=spec.max_length,
        allow_pickle=spec.allow_pickle,
        trust_remote_code=spec.trust_remote_code,
    )
    checkpoint = load_checkpoint(spec.reference, options)
    if checkpoint.checkpoint_id != spec.checkpoint_id:
        raise CheckpointError(
            f"{spec.reference} changed while it was being audited: it was {spec.checkpoint_id} and is now "
            f"{checkpoint.checkpoint_id}.",
            next_step="Run the command again: it audits the checkpoint as it is now.",
        )
    return checkpoint
