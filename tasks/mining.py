"""Mining hard negatives as a task: a BEIR folder in, a staged corpus of pairs out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prefect import task

from embaudit_tasks.corpora import stage_corpus
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, StagedCorpus, checkpoint_of

if TYPE_CHECKING:
    from embaudit.corpora import Retrieval

MINED_SCHEMA = {"query": "string", "passage": "string"}
# Changing how negatives are found changes this number, and what was mined before is mined again.
MINING_VERSION = 1


@task(name="mine hard negatives", task_run_name="mine {name} in {folder} by {method}", persist_result=False)
def mine_corpus(
    spec: CheckpointSpec, name: str, method: str, folder: str, negatives: int, staging: str
) -> StagedCorpus:
    """For each judged query the best passages that are not judged relevant, by BM25 or by the checkpoint's cosine.

    The folder is always read, since it may have changed; what was mined from the same content is not mined again.
    """
    from embaudit.corpora import MinedSource, mined_corpus, read_retrieval
    from embaudit.keys import content_key
    from embaudit.warehouse.files import is_file
    from embaudit.warehouse.stage import read_rows, staged_path, write_rows

    source = MinedSource.parse(name, f"mined:{method}:{folder}")
    assert source is not None
    retrieval = read_retrieval(source.folder)
    key = content_key(
        version=MINING_VERSION,
        method=method,
        negatives=negatives,
        queries=list(retrieval.queries),
        passages=list(retrieval.passages),
        relevant=[sorted(places) for places in retrieval.relevant],
        **(spec.key_parts if method == "checkpoint" else {}),
    )
    path = staged_path(staging, "mined", key, "mined_pair")
    if not is_file(path):
        found = _mined(spec, method, retrieval, negatives)
        rows = [
            {"query": query, "passage": retrieval.passages[place]}
            for query, places in zip(retrieval.queries, found, strict=True)
            for place in places
        ]
        write_rows(path, rows, MINED_SCHEMA)
    pairs = [(row["query"], row["passage"]) for row in read_rows([path])]
    return stage_corpus(mined_corpus(name, source, pairs), staging)


def _mined(spec: CheckpointSpec, method: str, retrieval: Retrieval, negatives: int) -> Sequence[Sequence[int]]:
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.socm import mining

    if method == "bm25":
        return mining.by_bm25(retrieval.queries, retrieval.passages, retrieval.relevant, negatives)
    encoder = Encoder(checkpoint_of(spec))
    with tracked("mining hard negatives, texts", len(retrieval.queries) + len(retrieval.passages)) as advance:
        vectors = [encoder.encode_texts(side, advance) for side in (retrieval.queries, retrieval.passages)]
    queries, passages = (side / np.linalg.norm(side, axis=1, keepdims=True).clip(min=1e-30) for side in vectors)
    return mining.by_cosine(queries, passages, retrieval.relevant, negatives)
