"""Ingesting a corpus: read, count what was dropped, stage by content."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from prefect import task

from embaudit.hub import is_transient
from embaudit.tables.corpora import CorpusRow, TextPairRow, TextRow
from embaudit_tasks.results import Staged, StagedCorpus

if TYPE_CHECKING:
    from embaudit.corpora import Corpus


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
def ingest_corpus(name: str, source: str, staging: str) -> StagedCorpus:
    """Read a corpus and stage its rows under its content id; a source is always read, since it may have changed."""
    from embaudit.corpora import load_corpus

    return stage_corpus(load_corpus(name, source), staging)


def stage_corpus(corpus: Corpus, staging: str) -> StagedCorpus:
    """Stage a corpus that was read: its rows by content, and the record of where they came from."""
    from embaudit.warehouse.files import is_file
    from embaudit.warehouse.stage import staged_path, write_rows

    table, rows, schema = (
        ("text", corpus.texts, TextRow.table.schema)
        if corpus.kind == "texts"
        else ("text_pair", corpus.pairs, TextPairRow.table.schema)
    )
    content = staged_path(staging, "corpus", corpus.corpus_id, table)
    if not is_file(content):
        numbered = ({"corpus_id": corpus.corpus_id, "position": i, **vars(row)} for i, row in enumerate(rows))
        write_rows(content, numbered, schema)
    # One content can come under two names or from two files: the record of where from is kept a name.
    record = staged_path(staging, "corpus", corpus.corpus_id, f"corpus-{corpus.name}")
    write_rows(
        record,
        [
            {
                "corpus_id": corpus.corpus_id,
                "name": corpus.name,
                "kind": corpus.kind,
                "source": corpus.source,
                "revision": corpus.revision,
                **asdict(corpus.counts),
                "ingested": datetime.now(UTC),
            }
        ],
        CorpusRow.table.schema,
    )
    return StagedCorpus(
        name=corpus.name,
        corpus_id=corpus.corpus_id,
        kind=corpus.kind,
        source=corpus.source,
        rows=len(rows),
        report=str(corpus.counts),
        files=(
            Staged(table="corpus", path=str(record), rows=1),
            Staged(table=table, path=str(content), rows=len(rows)),
        ),
    )


def staged_texts(corpus_path: str, texts: int) -> list[str]:
    """The first texts of a staged corpus."""
    import pyarrow.parquet as pq

    from embaudit.warehouse.stage import opened

    with opened(corpus_path) as source:
        rows = pq.read_table(source, columns=["text"]).slice(0, texts)
    return [str(text) for text in rows.column("text").to_pylist()]
