"""How tight the Gaussian view is, and SIF pooling beside plain, as a task on a random sample of pairs."""

from __future__ import annotations

import time

from prefect import task

from embaudit.measures.socm.tables import SocmTightnessRow
from embaudit_tasks.corpora import staged_texts
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.socm import MEASURE, clouds_of_corpus

# SOCM draws nothing else at random: with a seed of its own, audits of other seeds share this sample too.
SAMPLE_SEED = 0


@task(name="SOCM tightness", task_run_name="SOCM tightness of {corpus}", **CACHED)
def socm_tightness(
    spec: CheckpointSpec, corpus: str, corpus_path: str, texts: int, pairs: int, key: str, staging: str
) -> Staged:
    """Exact transport and SIF weights on ``pairs`` random pairs (table ``socm_tightness``)."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.socm.tightness import pair_tightness, sample_pairs, sif_weights
    from embaudit.warehouse.stage import staged_path, write_rows

    started = time.perf_counter()
    clouds, _ = clouds_of_corpus(spec, corpus, corpus_path, texts)
    token_ids = Encoder(checkpoint_of(spec)).tokenize(staged_texts(corpus_path, texts))
    weights = dict(enumerate(sif_weights(token_ids)))
    by_position = {cloud.position: cloud for cloud in clouds}
    first, second = sample_pairs(list(by_position), pairs, SAMPLE_SEED)
    rows = [{"corpus": corpus, **vars(row)} for row in pair_tightness(by_position, weights, first, second)]
    path = staged_path(staging, MEASURE, key, "socm_tightness")
    return Staged(
        table="socm_tightness",
        path=str(path),
        rows=write_rows(path, rows, SocmTightnessRow.table.schema),
        seconds=time.perf_counter() - started,
    )
