"""Ingesting a corpus: read, count what was dropped, stage by content."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq
from prefect import task

from embaudit.corpora import Corpus, load_corpus
from embaudit.corpora.judged import DOCUMENTS, load_judged
from embaudit.hub import is_transient
from embaudit.tables.corpora import CorpusRow, TextPairRow, TextRow
from embaudit.warehouse.files import is_file
from embaudit.warehouse.stage import opened, staged_path
from embaudit_tasks.results import Staged, StagedCorpus, stage_rows


def may_pass(task: Any, run: Any, state: Any) -> bool:
    """Retry what the hub or a disk may answer a little later; anything else says itself what to do."""
    error = state.result(raise_on_failure=False)
    return is_transient(error) or isinstance(error, OSError)


@task(
    name="ingest corpus",
    task_run_name="ingest {name} from {source}",
    retries=2,
    retry_delay_seconds=[2, 10],
    retry_condition_fn=may_pass,
    persist_result=False,
)
def ingest_corpus(name: str, source: str, staging: str) -> list[StagedCorpus]:
    """Read a corpus and stage its rows under its content id; a source is always read, since it may have changed.

    Returns:
        The corpus. A collection of documents to be found brings its queries as a second one.
    """
    if name == DOCUMENTS:
        judged = load_judged(source)
        return [stage_corpus(corpus, staging) for corpus in (judged.documents, judged.queries)]
    return [stage_corpus(load_corpus(name, source), staging)]


def stage_corpus(corpus: Corpus, staging: str) -> StagedCorpus:
    """Stage a corpus that was read: its rows by content, and the record of where they came from."""
    kind, rows = (TextRow, corpus.texts) if corpus.kind == "texts" else (TextPairRow, corpus.pairs)
    table = kind.table.name
    path = staged_path(staging, "corpus", corpus.corpus_id, table)
    content = Staged(table=table, path=path, rows=len(rows))
    if not is_file(path):
        numbered = ({"corpus_id": corpus.corpus_id, "position": i, **vars(row)} for i, row in enumerate(rows))
        content = stage_rows(staging, "corpus", corpus.corpus_id, kind, numbered)
    record = {
        "corpus_id": corpus.corpus_id,
        "name": corpus.name,
        "kind": corpus.kind,
        "source": corpus.source,
        "revision": corpus.revision,
        **asdict(corpus.counts),
        "ingested": datetime.now(UTC),
    }
    # One content can come under two names or from two files: the record of where from is kept a name.
    file_name = f"corpus-{corpus.name}"
    return StagedCorpus(
        name=corpus.name,
        corpus_id=corpus.corpus_id,
        kind=corpus.kind,
        source=corpus.source,
        rows=len(rows),
        report=str(corpus.counts),
        files=(stage_rows(staging, "corpus", corpus.corpus_id, CorpusRow, [record], file_name=file_name), content),
    )


def staged_texts(corpus_path: str, texts: int) -> list[str]:
    """The first texts of a staged corpus."""
    with opened(corpus_path) as source:
        rows = pq.read_table(source, columns=["text"]).slice(0, texts)
    return [str(text) for text in rows.column("text").to_pylist()]
