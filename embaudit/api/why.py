"""``embaudit.why``: why was it not found? From Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from embaudit.api.rows import opened_first, rows_asked_for, with_filter
from embaudit.corpora.golden import GoldenQuery, read_golden
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.opened import CallOptions, Given, asked_of, name_of, open_kept
from embaudit.questions.audit import AuditRequest
from embaudit.questions.why.absent import OtherPlaces
from embaudit.questions.why.report import K, WhyReport, look_into
from embaudit.questions.why.verdict import ShownResults
from embaudit.remedies.screening.tokens import read_token_list
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import UsageError

Progress = Callable[[str, int, int | None], None]


def why(
    store: str | Path,
    function: Given,
    query: str | Mapping[str, str | Sequence[str]] | None = None,
    expect: str | Sequence[str] | None = None,
    *,
    golden: str | Path | None = None,
    also: Given | None = None,
    api: str | Sequence[str] | None = None,
    model: str | Sequence[str] | None = None,
    k: int = K,
    min_score: float | None = None,
    where: Mapping[str, object] | None = None,
    query_settings: Mapping[str, int] | None = None,
    tokens: str | Path | None = None,
    vector: str | None = None,
    text: str | None = None,
    id: str | None = None,
    texts: str | Path | None = None,
    from_table: str | None = None,
    **settings: Any,
) -> WhyReport:
    """Where a search was lost: in the index, the vector, the text, the function, the search, the filter, the cut-off.

    Args:
        store: where the vectors are (docs/vectors.md lists what is read; docs/search.md what is searched by itself).
        function: a checkpoint, an endpoint's address, or a Python object: what encodes queries, and built the index.
        query, expect: a query, and the id or text that it should find (or several, of which one is enough); or queries
            with what each should find.
        golden: a file of such, CSV or JSON lines with ``query`` and ``expect``.
        also: another function: where it would put the rows that this one loses.
        api, model: of an endpoint; one of each endpoint, if they differ.
        k: how many results the application shows.
        min_score: the cosine below which it shows none.
        where, query_settings: the filter that it asks with, and what it sets in a query: ``{"efSearch": 64}``.
        tokens: a list of severe tokens that ``embaudit filter`` wrote: what they do in a query and its text is said.
        vector, text, id, texts, from_table: as for ``embaudit.vectors``.
        settings: seed of the draws, and how a checkpoint is loaded.

    Raises:
        EmbauditError: if the store, the function or the golden file cannot be read.
    """
    request = AuditRequest.of(checkpoint=name_of(function), **settings)
    return run(
        request,
        str(store),
        rows_asked_for(texts, from_table, where, vector=vector, text=text, id=id),
        golden_of(query, expect, golden),
        function=function,
        asked=asked_of([function, *([] if also is None else [also])], api=api, model=model),
        also=also,
        cut_off=ShownResults(k, min_score),
        query_settings=query_settings or {},
        tokens=None if tokens is None else Path(tokens),
    )


def golden_of(
    query: str | Mapping[str, str | Sequence[str]] | None,
    expect: str | Sequence[str] | None,
    golden: str | Path | None,
) -> list[GoldenQuery]:
    """What was asked for, from a file and besides."""
    found = [] if golden is None else read_golden(Path(golden))
    if isinstance(query, str):
        if expect is None:
            raise UsageError("It is not said what the query should find.", next_step='--expect "ID or text"')
        query = {query: expect}
    for one, answers in (query or {}).items():
        found.append(GoldenQuery(one, (answers,) if isinstance(answers, str) else tuple(map(str, answers))))
    if not found:
        raise UsageError("There is no query.", next_step='--query "…" --expect ID; or --golden FILE')
    return found


def run(
    request: AuditRequest,
    named: str,
    asked_rows: ReadOptions,
    golden: Sequence[GoldenQuery],
    *,
    function: Given,
    asked: Sequence[CallOptions],
    also: Given | None = None,
    cut_off: ShownResults,
    query_settings: Mapping[str, int],
    tokens: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> WhyReport:
    """Walk these searches."""
    first = opened_first(named, replace(asked_rows, where=()))
    with ExitStack() as stack:
        options = replace(request.load_options, dtype="float32")
        opened = stack.enter_context(open_kept(function, options, asked[0]))
        other = None if also is None else stack.enter_context(open_kept(also, options, asked[-1]))
        store, filtered = with_filter(opened, named, asked_rows, first)
        return look_into(
            store,
            opened,
            golden,
            filtered=filtered,
            settings=query_settings,
            cut_off=cut_off,
            severe=() if tokens is None else severe_ids(tokens, opened),
            also=other,
            places=OtherPlaces(named, asked_rows),
            seed=request.seed,
            progress=progress,
        )


def severe_ids(tokens: Path, function: EmbeddingFunction) -> set[int]:
    """Ids of a list of severe tokens, which must be of this function's tokenizer.

    Raises:
        UsageError: if it is of another, or nobody sees the function's tokens.
    """
    listed = read_token_list(tokens)
    checkpoint = function.checkpoint
    if checkpoint is None or checkpoint.identity.tokenizer_sha256 != listed.tokenizer_sha256:
        raise UsageError(
            f"{tokens} lists tokens of {listed.checkpoint}, whose tokenizer is not that of {function.name}.",
            next_step="Make one of its own: embaudit filter CHECKPOINT --out FILE",
        )
    return set(listed.losses)
