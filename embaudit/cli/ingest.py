"""``embaudit ingest``: load a corpus into the warehouse."""

from __future__ import annotations

import click

from embaudit.cli.options import warehouse_option
from embaudit.cli.prefect_setup import prepare_prefect
from embaudit.corpora import load_corpus
from embaudit.corpora.catalog import CORPORA
from embaudit.system.address import Warehouse


@click.command()
@click.argument("corpus")
@click.argument("source")
@warehouse_option
@click.option("--logs", is_flag=True, help="Show Prefect's log lines.")
def ingest(corpus: str, source: str, warehouse: Warehouse | None, logs: bool) -> None:
    """Ingest CORPUS from SOURCE: sample, hub, hub:owner/name[config]/split@revision:column, or a local file or folder.

    CORPUS is wikipedia, msmarco, msmarco-queries, msmarco-hard-negatives, sts or longdocs. Ingesting the same rows
    again changes nothing.
    """
    if corpus not in CORPORA:
        load_corpus(corpus, source)  # raises with the closest name
    prepare_prefect(show_logs=logs)
    from embaudit_flows.ingest import ingest as ingest_flow
    from embaudit_flows.server.temporary import await_server

    await_server()
    result = ingest_flow(name=corpus, source=source, warehouse=str(warehouse) if warehouse else None)
    click.echo(f"Corpus {result.name} ({result.corpus_id}): {result.report}")
