"""One measure by itself, without Prefect: its run, tables, findings, and what a named query says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copy
from typing import Any

from judged_collections import write_collection
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audit

from embaudit.checkpoint import Checkpoint, load_checkpoint
from embaudit.corpora.judged import load_judged
from embaudit.declared.rule import Finding
from embaudit.measures import MEASURES
from embaudit.measures.listed import load_profile
from embaudit.measures.run import Run
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.results import CheckpointSpec
from embaudit.steps.staging.stage import read_rows
from embaudit.warehouse.query import run_query
from embaudit.warehouse.tables import TABLES

Tables = dict[str, list[dict[str, Any]]]


def run_of(checkpoint: Checkpoint | Path, folder: Path, name: str, **settings: Any) -> Run:
    """A run with these settings of the measure; without corpora, it reads the embedded sample."""
    if isinstance(checkpoint, Path):
        checkpoint = load_checkpoint(str(checkpoint))
    spec = CheckpointSpec(
        reference=str(checkpoint.resolved.folder),
        checkpoint_id=checkpoint.checkpoint_id,
        device="cpu",
        dtype="float32",
    )
    profile = load_profile("quick")
    changed = getattr(profile, name).model_copy(update={"corpora": (), **settings})
    return Run(
        spec=spec,
        staging=str(folder / "staging"),
        seed=0,
        profile=profile.model_copy(update={name: changed}),
        widths=(32, 64),
        corpora={},
    )


def run_on(
    checkpoint: Checkpoint | Path,
    folder: Path,
    name: str,
    documents: Sequence[str],
    queries: Sequence[str],
    relevant: Mapping[int, int] | None = None,
    **settings: Any,
) -> Run:
    """The same on a collection; without ``relevant``, each query's document is the one in its place."""
    run = run_of(checkpoint, folder, name, corpora=("retrieval",), **settings)
    judged = load_judged(str(write_collection(folder / "collection", documents, queries, relevant)))
    staged = [stage_corpus(corpus, run.staging) for corpus in (judged.documents, judged.queries)]
    return Run(**{**run.__dict__, "corpora": {corpus.name: corpus for corpus in staged}})


def tables_of(run: Run, name: str) -> Tables:
    """The rows that a measure stages, by table, after every declared rule has been checked; notes are in ``note``."""
    import pandas as pd

    found: Tables = {}
    for part in MEASURES[name].parts().measure(run):
        found.setdefault(part.table, []).extend(read_rows([part.path]))
    for table in found.keys() & TABLES.keys():
        declared = TABLES[table]
        frame = declared.derive(pd.DataFrame(found[table]))
        for one in declared.statements:
            assert frame[one.name].all(), f"{table}: {one.name}"
        for larger, smaller, _ in declared.comparisons:
            known = frame[[larger, smaller]].dropna()
            assert (known[larger] >= known[smaller] - 1e-12).all(), f"{table}: {larger} below {smaller}"
        for column in declared.columns.values():
            assert column.is_nullable or frame[column.name].notna().all(), f"{table}: {column.name}"
            for row in found[table]:
                assert row[column.name] is None or row[column.name] == row[column.name], f"{table}: {column.name}"
    return found


def found_by(name: str, tables: Mapping[str, list[dict[str, Any]]]) -> dict[str, Finding]:
    """A measure's findings from these tables, by name."""
    settings = getattr(load_profile("quick"), name)
    made = MEASURES[name].parts().findings(lambda table: list(tables.get(table, [])), settings)
    return {one.name: one for one in made}


def answered(query: str, tables: Tables, empty: Path, folder: Path) -> list[dict[str, Any]]:
    """What a named query says about an audit with these tables.

    Args:
        empty: a warehouse without an audit.
    """
    warehouse = Path(copy(empty, folder))
    put_audit(warehouse, audit_record(), {"checkpoint": plausible_rows()["checkpoint"], **tables})
    result = run_query(warehouse, query)
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]
