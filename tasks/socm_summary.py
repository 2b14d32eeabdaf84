"""SOCM's averages over all pairs of a corpus or a list, as a task that reads the staged pairs batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from prefect import task

from embaudit.measures.socm.tables import SocmSummaryRow, SocmSurfaceRow
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.socm import MEASURE

if TYPE_CHECKING:
    from embaudit.measures.socm.pairs import PairBlock

PAIR_COLUMNS = ("first", "second", "d_mu", "d_sigma", "socm")


@task(name="SOCM summary", task_run_name="SOCM summary of {corpus}", **CACHED)
def socm_summary(
    spec: CheckpointSpec,
    corpus: str,
    corpus_id: str,
    pair_kind: str,
    text_paths: list[str],
    pair_paths: list[str],
    exponents: list[float],
    method: str,
    accuracy: float,
    checked_pairs: int,
    key: str,
    staging: str,
) -> list[Staged]:
    """Averages with a jackknife interval over texts, or over the queries of a list, and other exponents' averages.

    Tables ``socm_summary`` and ``socm_surface``.
    """
    import numpy as np

    from embaudit.measures.socm.clouds import COSINE_BOUND, TRACE_BOUND
    from embaudit.measures.socm.pairs import PairBlock
    from embaudit.measures.socm.summary import Surface, summarise
    from embaudit.warehouse.stage import read_batches, read_rows, staged_path, write_rows

    def blocks() -> Iterator[PairBlock]:
        for path in pair_paths:
            for batch in read_batches(path, PAIR_COLUMNS):
                yield PairBlock(**{name: batch.column(name).to_numpy() for name in PAIR_COLUMNS})

    texts = read_rows(text_paths)
    traces = np.full(1 + max(row["position"] for row in texts), np.nan)
    for row in texts:
        traces[row["position"]] = np.nan if row["trace_sigma"] is None else row["trace_sigma"]
    surface = Surface(exponents)
    summary = summarise(traces, surface.passing(blocks()), "texts" if pair_kind == "all" else "firsts")
    # Appendix J: for tokens of one length the two bounds are one and the same.
    both = [row for row in texts if row["trace_sigma"] is not None and row["mean_cosine"] is not None]
    above = [row["mean_cosine"] >= COSINE_BOUND for row in both]
    agree = [is_above == (row["trace_sigma"] <= TRACE_BOUND) for row, is_above in zip(both, above, strict=True)]
    row = {
        "corpus": corpus,
        "corpus_id": corpus_id,
        "pair_kind": pair_kind,
        **asdict(summary),
        "one_token": sum(row["tokens"] == 1 for row in texts),
        "truncated": sum(row["is_truncated"] for row in texts),
        "share_cosine_above_bound": sum(above) / len(both) if both else None,
        "share_bounds_agree": sum(agree) / len(both) if both else None,
        "method": method,
        "accuracy": accuracy,
        "checked_pairs": checked_pairs,
        "pooling_is_mean": checkpoint_of(spec).recipe.pooling == ("mean",),
    }
    points = [
        {"corpus": corpus, "alpha": alpha, "beta": beta, "socm_mean": mean} for alpha, beta, mean in surface.means()
    ]
    written = []
    for table, rows, schema in (
        ("socm_summary", [row], SocmSummaryRow.table.schema),
        ("socm_surface", points, SocmSurfaceRow.table.schema),
    ):
        path = staged_path(staging, MEASURE, key, table)
        written.append(Staged(table=table, path=str(path), rows=write_rows(path, rows, schema)))
    return written
