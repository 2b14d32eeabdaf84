"""Runs of measures that search a judged collection: a small one, with a tiny checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copy
from typing import Any

from judged_collections import write_collection
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audit

from embaudit.checkpoint import load_checkpoint
from embaudit.corpora.judged import load_judged
from embaudit.finding import Finding
from embaudit.measures import MEASURES
from embaudit.measures.run import Run
from embaudit.profile import load_profile
from embaudit.staging.stage import read_rows
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.results import CheckpointSpec
from embaudit.warehouse.query import run_query

Tables = dict[str, list[dict[str, Any]]]


def collection_run(
    checkpoint: Path,
    folder: Path,
    documents: Sequence[str],
    queries: Sequence[str],
    relevant: Mapping[int, int] | None = None,
) -> Run:
    """A run over a collection of these texts; without ``relevant``, each query's is the document in its place."""
    judged = load_judged(str(write_collection(folder / "collection", documents, queries, relevant)))
    staging = str(folder / "staging")
    corpora = [stage_corpus(corpus, staging) for corpus in (judged.documents, judged.queries)]
    loaded = load_checkpoint(str(checkpoint))
    spec = CheckpointSpec(reference=str(checkpoint), checkpoint_id=loaded.checkpoint_id, device="cpu", dtype="float32")
    return Run(
        spec=spec,
        staging=staging,
        seed=0,
        profile=load_profile("quick"),
        widths=(32, 64),
        corpora={corpus.name: corpus for corpus in corpora},
    )


def measured(name: str, run: Run) -> Tables:
    """The tables that a measure stages; what it says at an audit's end under ``note``."""
    found: Tables = {}
    for part in MEASURES[name].parts().measure(run):
        found.setdefault(part.table, []).extend(read_rows([part.path]))
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
