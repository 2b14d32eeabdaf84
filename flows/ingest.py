"""Ingests one corpus into the warehouse by content: ingesting the same rows again changes nothing."""

from __future__ import annotations

from prefect import flow

from embaudit.steps.results import StagedCorpus
from embaudit.system.settings import Settings, warehouse_at
from embaudit.words.errors import CheckFailed
from embaudit_tasks.publish import check_staged, publish_corpus, refresh_snapshot
from embaudit_tasks.steps import ingest_corpus


@flow(name="ingest", flow_run_name="ingest {name} from {source}", persist_result=False)
def ingest(name: str, source: str = "sample", warehouse: str | None = None) -> StagedCorpus:
    """Read a corpus, check it and publish its rows.

    Args:
        name: wikipedia, msmarco, msmarco-queries, msmarco-hard-negatives, sts or longdocs.
        source: sample, hub, hub:owner/name[config]/split@revision:column, or a local file or folder.
    """
    settings = Settings()
    (corpus,) = ingest_corpus(name=name, source=source, staging=str(settings.staging))
    files = list(corpus.files)
    failed = [row for row in check_staged(files, {file.table: file.rows for file in files}) if not row["success"]]
    if failed:
        raise CheckFailed(
            f"{len(failed)} checks of {name} fail, {failed[0]['expectation']} on {failed[0]['column_name']} first.",
            kept="Nothing was published.",
        )
    place = warehouse_at(warehouse) if warehouse else settings.warehouse_path
    publish_corpus(str(place), settings.lock_wait_seconds, files)
    if settings.snapshot is not None:
        refresh_snapshot(str(place))
    return corpus
