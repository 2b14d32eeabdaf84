"""``embaudit.vectors``: look at stored vectors from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from embaudit.api.rows import opened_first, opened_for, rows_asked_for
from embaudit.checkpoint import resolve
from embaudit.checkpoint.load import describe
from embaudit.checkpoint.modules import NoTransformer
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.kept import FOLDER
from embaudit.embedders.opened import CallOptions, Given, asked_of, is_checkpoint, name_of, open_function, open_kept
from embaudit.questions.audit import AuditRequest
from embaudit.questions.vectors.every_row import check_table, find_foreign
from embaudit.questions.vectors.report import SAMPLED, StoredReport, look_at
from embaudit.steps.elsewhere import require_runner
from embaudit.stores.opened import open_store
from embaudit.stores.place import LARGE, ReadOptions
from embaudit.system.settings import Settings

Progress = Callable[[str, int, int | None], None]


def vectors(
    file: str | Path,
    checkpoint: Given | None = None,
    *,
    api: str | None = None,
    model: str | None = None,
    vector: str | None = None,
    text: str | None = None,
    id: str | None = None,
    texts: str | Path | None = None,
    from_table: str | None = None,
    numbers: str | None = None,
    where: Mapping[str, object] | None = None,
    rows: int = SAMPLED,
    also: Sequence[Given] = (),
    every_row: bool = False,
    table: str | Path | None = None,
    with_explanation: bool = True,
    whole: bool = False,
    **settings: Any,
) -> StoredReport:
    """What stored vectors show by themselves, and whether a checkpoint, or another function, built them.

    Args:
        file: a file, a folder, a database or the address of a store (docs/vectors.md lists them).
        checkpoint: packaged:NAME, a local folder or owner/name@revision on the hub, an endpoint's address, or a
            Python object or its name (docs/functions.md); None to look at the vectors alone.
        api: openai, tei, ollama, azure, cohere, voyage, jina or gemini; by default, recognised.
        model: its name at the endpoint, if that serves several.
        vector, text, id: the columns, by name or dotted path; by default, found by type and name. ``text`` may be a
            template of what was embedded: ``'{title}\\n{text}'``.
        texts: a file with the texts, row by row or by id.
        from_table: the table, collection or split that is meant where there are several; or a query, for a database.
        numbers: what bytes are, where that is unclear: float32, float16, int8, bits …
        where: rows whose fields have these values alone.
        rows: how many rows, drawn at random, are encoded again.
        also: other functions that may have built rows.
        every_row: encode every row again.
        table: where the rows that the checkpoint did not build are written, .csv or .parquet; implies ``every_row``.
        whole: read all rows of Parquet files that have more than ten million; by default, row groups drawn at random.
        settings: seed of the draw, and how the checkpoint is loaded: device, pooling, max_length, prompt, allow_pickle,
            trust_remote_code.

    Raises:
        EmbauditError: if the file or the checkpoint cannot be read, or it is unclear which columns are meant.
    """
    given = str(file) if checkpoint is None else checkpoint
    request = AuditRequest.of(checkpoint=name_of(given), **settings)
    return run(
        request if checkpoint is not None else None,
        str(file),
        rows_asked_for(
            texts,
            from_table,
            where,
            vector=vector,
            text=text,
            id=id,
            numbers=numbers,
            allow_pickle=request.allow_pickle,
            most=most_of(whole or every_row or table is not None),
            seed=request.seed,
        ),
        function=checkpoint,
        asked=asked_of([given, *also], api=api, model=model),
        rows=rows,
        seed=request.seed,
        also=also,
        every_row=every_row,
        table=None if table is None else Path(table),
        with_explanation=with_explanation,
    )


def most_of(is_whole: bool) -> int | None:
    """Rows of a store that is read whole; None: however many it has."""
    return None if is_whole else LARGE


def run(
    request: AuditRequest | None,
    file: str,
    asked_rows: ReadOptions,
    *,
    function: Given | None = None,
    asked: Sequence[CallOptions] = (),
    rows: int = SAMPLED,
    seed: int = 0,
    also: Sequence[Given] = (),
    every_row: bool = False,
    table: Path | None = None,
    with_explanation: bool = True,
    progress: Progress = lambda what, done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> StoredReport:
    """Look at an index; against the function that a request names, if there is one.

    Args:
        function: in place of what the request names, one that is there already.
        asked: how that, and each of ``also``, is asked, if it is no checkpoint.
    """
    if table is not None:
        # Before hours of encoding.
        check_table(table)
    # A place that is wrong is told before a function is opened, which may take a while.
    if request is None:
        return look_at(open_store(file, asked_rows), seed=seed, progress=progress)
    index = opened_first(file, asked_rows)
    options = replace(request.load_options, dtype="float32")
    given: list[Given] = [request.checkpoint if function is None else function, *also]
    ways = asked or asked_of(given)
    names = _told_apart([name_of(one) for one in given])
    if (every_row or table is not None) and is_checkpoint(given[0]):
        require_runner()
    # A name that is wrong is told before the index is read, which may take minutes.
    for other in also:
        if is_checkpoint(other):
            resolved = resolve(
                str(other), allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code
            )
            # What is no transformer may be read by sentence-transformers.
            with suppress(NoTransformer):
                describe(resolved, options)
    with ExitStack() as stack:

        def load(name: str) -> EmbeddingFunction:
            if name.startswith("dtype:"):
                lower = replace(options, dtype=name.removeprefix("dtype:"))
                return open_function(request.checkpoint, lower)
            place = names.index(name)
            return stack.enter_context(open_kept(given[place], options, ways[place]))

        opened = stack.enter_context(open_kept(given[0], options, ways[0]))
        store = opened_for(opened, file, asked_rows, index)
        return look_at(
            store,
            opened,
            rows=rows,
            seed=seed,
            also=names[1:],
            load=load,
            every_row=(
                lambda store, against, function: find_foreign(
                    store,
                    function,
                    against,
                    table=table,
                    total=against.population,
                    kept_in=Settings().home / FOLDER,
                    progress=progress,
                )
            )
            if every_row or table is not None
            else None,
            with_explanation=with_explanation,
            progress=progress,
            say=say,
        )


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names of functions, with a number where two Python objects have one name."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if name in names[:place] else name
        for place, name in enumerate(names)
    ]
