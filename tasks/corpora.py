"""Ingests a corpus: reads it, counts what is dropped, and stages the rest by content.

Mining hard negatives as a task: a BEIR folder in, a staged corpus of pairs out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embaudit.corpora import MinedSource, mined_corpus, read_retrieval
from embaudit.corpora.draw import Draw
from embaudit.measures.socm import contrast
from embaudit.steps.corpora import stage_corpus, stage_source
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.system.hub import is_transient
from embaudit_tasks.steps import audit_task


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
        found = contrast.by_bm25(queries, passages, judged, negatives)
    else:
        with tracked("mining hard negatives, texts", len(queries) + len(passages)) as advance:
            vectors = [
                encoder_of(spec, "query").encode_texts(queries, advance),
                encoder_of(spec, "document").encode_texts(passages, advance),
            ]
        first, second = (side / np.linalg.norm(side, axis=1, keepdims=True).clip(min=1e-30) for side in vectors)
        found = contrast.by_cosine(first, second, judged, negatives)
    rows = [
        {"query": query, "passage": passages[place]}
        for query, places in zip(queries, found, strict=True)
        for place in places
    ]
    out.rows("mined_pair", rows, MINED_SCHEMA)
