"""Runs of one measure on a small collection, without Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judged_collections import write_collection

from embaudit.checkpoint import Checkpoint
from embaudit.corpora.judged import load_judged
from embaudit.measures import MEASURES
from embaudit.measures.run import Run
from embaudit.profile import load_profile
from embaudit.staging.stage import read_rows
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.results import CheckpointSpec
from embaudit.tables import TABLES


def run_of(checkpoint: Checkpoint, folder: Path, name: str, **settings: Any) -> Run:
    """A run with these settings of the measure; without corpora, it reads the embedded sample."""
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
    checkpoint: Checkpoint, folder: Path, name: str, documents: Sequence[str], queries: Sequence[str], **settings: Any
) -> Run:
    """The same on a collection in which each query's document is the one in its place."""
    run = run_of(checkpoint, folder, name, corpora=("retrieval",), **settings)
    judged = load_judged(str(write_collection(folder / "collection", documents, queries)))
    staged = [stage_corpus(corpus, run.staging) for corpus in (judged.documents, judged.queries)]
    return Run(**{**run.__dict__, "corpora": {corpus.name: corpus for corpus in staged}})


def tables_of(run: Run, name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows that a measure stages, by table, after every declared rule has been checked; notes are in ``note``."""
    import pandas as pd

    found: dict[str, list[dict[str, Any]]] = {}
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
