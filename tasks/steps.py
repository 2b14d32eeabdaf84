"""Steps as Prefect tasks: each call is a task run, which shows the state Cached if its files existed.

What a running audit tells the Prefect UI: progress artifacts of long tasks, and lines in the flow run's log.

Tasks of an audit: task runs within a run of a flow, else plain calls, which need no server (``flows/audit.py``).

Ingests a corpus: reads it, counts what is dropped, and stages the rest by content.

Mining hard negatives as a task: a BEIR folder in, a staged corpus of pairs out.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import httpx
import numpy as np
from prefect import State, Task, task
from prefect.artifacts import create_markdown_artifact, create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext, TaskRunContext
from prefect.exceptions import MissingContextError
from prefect.futures import PrefectFuture
from prefect.logging import get_logger, get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from embaudit.corpora.catalog import MinedSource, mined_corpus
from embaudit.corpora.draw import Draw
from embaudit.corpora.folders import read_retrieval
from embaudit.measures.socm import lengths
from embaudit.steps.corpora import stage_corpus, stage_source
from embaudit.steps.progress import Report, reported_by, show, tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, Step, step
from embaudit.system.hub import is_transient

P = ParamSpec("P")
R = TypeVar("R")


def in_a_run() -> bool:
    """Whether this is called by a run that a Prefect server knows."""
    return FlowRunContext.get() is not None or TaskRunContext.get() is not None


class AuditTask(Task[P, R]):
    """A task that is its function outside of a run."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs) if in_a_run() else self.fn(*args, **kwargs)


def audit_task(name: str, run_name: str | None = None, **options: Any) -> Callable[[Callable[P, R]], Task[P, R]]:
    """Turn a function into a task of an audit.

    Args:
        name, run_name: what people see in the Prefect UI, of the task and of its runs; the latter is a format string
            for the arguments. Without it, runs are named like the task.
        options: further options of a Prefect task.
    """

    def made(function: Callable[P, R]) -> Task[P, R]:
        return AuditTask(function, name=name, task_run_name=run_name or name, persist_result=False, **options)

    return made


def run_logger() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """The logger of the current run, or outside of one, of this program."""
    try:
        return get_run_logger()
    except MissingContextError:
        return get_logger("embaudit")


# The audit that a run makes, as soon as it is known; and what its gate found.
AUDIT_LABEL = "embaudit.audit_id"
GATE_LABEL = "embaudit.gate"


def label_run(labels: Mapping[str, str]) -> None:
    """Add labels to the flow run that this is called in."""
    run_id = flow_run.get_id()
    if run_id is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run_labels(UUID(run_id), dict(labels))


# How long to wait before calling an unreachable server again: each call spends a minute on Prefect's own retries.
SECONDS_OF_SILENCE = 600.0
_silent_until = 0.0


def say(line: str, level: int = logging.INFO) -> None:
    """Show a line in the terminal and write it to the flow run's log."""
    show(line, level)
    run_logger().log(level, line)


def progress_artifact(label: str) -> Report | None:
    """An artifact for the progress of this task, as a function that sets its percentage; None if there is none."""
    if TaskRunContext.get() is None:
        return None
    artifact = _told(lambda: create_progress_artifact(progress=0.0, description=label))
    if artifact is None:
        return None

    def report(percent: float) -> None:
        _told(lambda: update_progress_artifact(artifact_id=artifact, progress=percent))

    return report


def markdown_artifact(key: str, markdown: str, description: str) -> None:
    """An artifact of this run that it can do without."""
    _told(lambda: create_markdown_artifact(key=key, markdown=markdown, description=description))


def _told(call: Callable[[], object]) -> UUID | None:
    """Tell the server something that the run can do without. An unreachable server must not fail the run."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return None
    try:
        answer = call()
    except (httpx.HTTPError, RuntimeError):
        _silent_until = time.monotonic() + SECONDS_OF_SILENCE
        return None
    return answer if isinstance(answer, UUID) else None


# Tasks on a GPU have this tag, to find them in the UI; ``gpu_slot`` keeps audits from sharing a GPU.
GPU_TAG = "embaudit-gpu"


def run_step(step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
    """The step's staged files, found or made by a task of the current run; without one, by a plain call."""
    if not in_a_run():
        return step.compute(staging, *args, **kwargs)
    found: Any = task_of(step, *args, **kwargs)(staging, *args, **kwargs)
    # If the task returned a state, Prefect gives back that state.
    return list(found.result() if isinstance(found, State) else found)


def submit_step(step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> PrefectFuture[list[Staged]]:
    """The same, on the flow's task runner."""
    return task_of(step, *args, **kwargs).submit(staging, *args, **kwargs)


def task_of(step: Step[P], *args: P.args, **kwargs: P.kwargs) -> Task[..., Any]:
    """The task that a call with these arguments runs as."""
    made = _task(step)
    is_on_gpu = any(
        isinstance(value, CheckpointSpec) and value.device.startswith("cuda")
        for value in step.bound(*args, **kwargs).values()
    )
    return made.with_options(tags={*made.tags, GPU_TAG}) if is_on_gpu else made


@cache
def _task(step: Step[Any]) -> Task[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with reported_by(progress_artifact):
            files, were_there = step.found_or_made(*args, **kwargs)
        return Completed(name="Cached", data=files) if were_there else files

    # Prefect uses this to bind, show and format the arguments.
    staging = inspect.Parameter("staging", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([staging, *step.signature.parameters.values()])  # type: ignore[attr-defined]
    function = step.function
    run.__name__, run.__qualname__, run.__doc__ = function.__name__, function.__qualname__, function.__doc__
    return task(name=step.name, task_run_name=step.run_name, persist_result=False, cache_policy=NO_CACHE)(run)


def may_pass(task: Any, run: Any, state: Any) -> bool:
    """Retry errors of the hub or a disk, which may pass; any other error says what to do."""
    error = state.result(raise_on_failure=False)
    return is_transient(error) or isinstance(error, OSError)


@audit_task(
    "ingest corpus",
    "ingest {name} from {source}",
    retries=2,
    retry_delay_seconds=[2, 10],
    retry_condition_fn=may_pass,
)
def ingest_corpus(name: str, source: str, staging: str, draw: Draw | None = None) -> list[StagedCorpus]:
    """Read a corpus and stage its rows under its content id; a source is always read, since it may have changed.

    Args:
        draw: the rows to keep of a larger source; None: all. A retrieval collection is kept whole.

    Returns:
        The corpus; of a retrieval collection, the documents and then the queries.
    """
    return stage_source(name, source, staging, draw)


MINED_SCHEMA = {"query": "string", "passage": "string"}
# Increase this when negatives are found differently: what was mined before is then mined again.
MINING_VERSION = 1


@audit_task("mine hard negatives", "mine {name} in {folder} by {method}")
def mine_corpus(
    spec: CheckpointSpec, name: str, method: str, folder: str, negatives: int, staging: str
) -> StagedCorpus:
    """For each judged query, the best passages not judged relevant, by BM25 or by the checkpoint's cosine.

    The query's own passage (``Retrieval.own``) is no negative.

    The folder is always read, since it may have changed; the same content is not mined again.
    """
    source = MinedSource.parse(name, f"mined:{method}:{folder}")
    assert source is not None
    retrieval = read_retrieval(source.folder)
    (mined,) = mined_pairs.compute(
        staging,
        spec if method == "checkpoint" else None,
        retrieval.queries,
        retrieval.passages,
        [sorted(relevant | own) for relevant, own in zip(retrieval.relevant, retrieval.own, strict=True)],
        negatives,
    )
    pairs = [(row["query"], row["passage"]) for row in read_rows([mined.path])]
    return stage_corpus(mined_corpus(name, source, pairs, retrieval.flaws), staging)


@step("mined", version=MINING_VERSION, tables=("mined_pair",), name="mine pairs")
def mined_pairs(
    out: Outputs,
    spec: CheckpointSpec | None,
    queries: Sequence[str],
    passages: Sequence[str],
    relevant: Sequence[Sequence[int]],
    negatives: int,
) -> None:
    """Each query with its hard negatives.

    Args:
        spec: the checkpoint whose cosine ranks the passages; None: BM25.
        relevant: indices of the passages that are no negatives of each query: judged relevant, or its own.
    """
    judged = [frozenset(places) for places in relevant]
    if spec is None:
        found = lengths.by_bm25(queries, passages, judged, negatives)
    else:
        with tracked("mining hard negatives, texts", len(queries) + len(passages)) as advance:
            vectors = [
                encoder_of(spec, "query").encode_texts(queries, advance),
                encoder_of(spec, "document").encode_texts(passages, advance),
            ]
        first, second = (side / np.linalg.norm(side, axis=1, keepdims=True).clip(min=1e-30) for side in vectors)
        found = lengths.by_cosine(first, second, judged, negatives)
    rows = [
        {"query": query, "passage": passages[place]}
        for query, places in zip(queries, found, strict=True)
        for place in places
    ]
    out.rows("mined_pair", rows, MINED_SCHEMA)
