"""``embaudit.vectors``: look at stored vectors from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from embaudit.checkpoint import Checkpoint, load_checkpoint, resolve
from embaudit.checkpoint.load import describe
from embaudit.comparisons.stored.every_row import check_table, find_foreign
from embaudit.comparisons.stored.report import SAMPLED, StoredReport, look_at
from embaudit.request import AuditRequest
from embaudit.vector_files.columns import AskedColumns
from embaudit.vector_files.opened import open_index

Progress = Callable[[str, int, int | None], None]


def vectors(
    file: str | Path,
    checkpoint: str | Path | None = None,
    *,
    vector: str | None = None,
    text: str | None = None,
    id: str | None = None,
    texts: str | Path | None = None,
    from_table: str | None = None,
    rows: int = SAMPLED,
    also: Sequence[str | Path] = (),
    every_row: bool = False,
    table: str | Path | None = None,
    with_explanation: bool = True,
    **settings: Any,
) -> StoredReport:
    """What stored vectors show by themselves, and whether a checkpoint built them.

    Args:
        file: Parquet (a file or a folder), Feather, JSON lines, .npy, a DuckDB file, or a postgresql:// address.
        checkpoint: packaged:NAME, a local folder or owner/name@revision on the hub; None to look at the vectors alone.
        vector, text, id: the columns; by default, found by type and name.
        texts: the file of texts beside an .npy file.
        from_table: the table of a database that has several.
        rows: how many rows, drawn at random, are encoded again.
        also: other checkpoints that may have built rows.
        every_row: encode every row again.
        table: where the rows that the checkpoint did not build are written, .csv or .parquet; implies ``every_row``.
        settings: seed of the draw, and how the checkpoint is loaded: device, pooling, max_length, prompt, allow_pickle,
            trust_remote_code.

    Raises:
        EmbauditError: if the file or the checkpoint cannot be read, or it is unclear which columns are meant.
    """
    request = AuditRequest.of(checkpoint=str(checkpoint or file), **settings)
    return run(
        request if checkpoint is not None else None,
        str(file),
        AskedColumns(vector, text, id),
        texts=None if texts is None else Path(texts),
        from_table=from_table,
        rows=rows,
        seed=request.seed,
        also=[str(one) for one in also],
        every_row=every_row,
        table=None if table is None else Path(table),
        with_explanation=with_explanation,
    )


def run(
    request: AuditRequest | None,
    file: str,
    asked: AskedColumns,
    *,
    texts: Path | None = None,
    from_table: str | None = None,
    rows: int = SAMPLED,
    seed: int = 0,
    also: Sequence[str] = (),
    every_row: bool = False,
    table: Path | None = None,
    with_explanation: bool = True,
    progress: Progress = lambda what, done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> StoredReport:
    """Look at an index; against the checkpoint that a request names, if there is one."""
    if table is not None:
        # Before hours of encoding.
        check_table(table)
    index = open_index(file, asked, texts=texts, table=from_table)
    if request is None:
        return look_at(index, seed=seed, progress=progress)
    options = replace(request.load_options, dtype="float32")

    def load(name: str) -> Checkpoint:
        if name.startswith("dtype:"):
            return load_checkpoint(request.checkpoint, replace(options, dtype=name.removeprefix("dtype:")))
        return load_checkpoint(name, options)

    # A name that is wrong is told before the index is read, which may take minutes.
    for other in also:
        describe(
            resolve(other, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code), options
        )
    return look_at(
        index,
        load_checkpoint(request.checkpoint, options),
        name=request.checkpoint,
        rows=rows,
        seed=seed,
        also=also,
        load=load,
        every_row=(
            lambda against, checkpoint: find_foreign(
                index, checkpoint, against, table=table, total=against.population, progress=progress
            )
        )
        if every_row or table is not None
        else None,
        with_explanation=with_explanation,
        progress=progress,
        say=say,
    )
