"""Ingests a corpus: reads it, counts what is dropped, and stages the rest by content."""

from __future__ import annotations

from typing import Any

from embaudit.corpora.draw import Draw
from embaudit.steps.corpora import stage_source
from embaudit.steps.results import StagedCorpus
from embaudit.system.hub import is_transient
from embaudit_tasks.audit_task import audit_task


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
