"""Does a store's own search find what its vectors hold? What ``embaudit search`` and ``embaudit.search`` ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from embaudit.checkpoint.loading import CheckpointOptions
from embaudit.declared.option import Option
from embaudit.embedders.call_options import CacheOptions, RoleOptions
from embaudit.questions.question import (
    QUIET,
    Function,
    PathName,
    Progress,
    QuerySettingsPart,
    Question,
    SeedPart,
    SentTexts,
    StorePart,
)
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from embaudit.questions.search.report import SearchReport
    from embaudit.stores.store import Store

# Files that hold no texts.
MATRICES = (".npy", ".npz", ".safetensors", ".pt", ".h5")


class SearchQuestion(CheckpointOptions, RoleOptions, CacheOptions, QuerySettingsPart, SeedPart, StorePart, Question):
    """Does the search of STORE find what its vectors hold?

    The store is asked as an application asks it, beside exact search over the same vectors: recall, rows that no query
    reaches, metrics, filters (--where), and what other settings of a query would give. FUNCTION, a checkpoint, an
    endpoint or a Python object, encodes queries; without it, stored vectors ask for their neighbours. Nothing is
    written to the store. Exit code 0 if it finds them, 1 if not, 2 if that could not be told.
    """

    asks: ClassVar = "search"

    function: Function = Field(None, kw_only=False)
    queries: Annotated[PathName | None, Option(metavar="FILE", is_file=True, default="beginnings of stored texts")] = (
        Field(None, description="Queries that FUNCTION encodes, or their vectors.")
    )
    recall: float = Field(0.95, gt=0, le=1, description="Of the ten nearest rows, the share that is wanted.")
    where_each: Annotated[str | None, Option(metavar="COLUMN")] = Field(
        None,
        description="Also ask under a filter on each value of this field, the fifty most frequent: what each tenant "
        "finds.",
    )
    count: int = Field(200, ge=2, le=5_000, description="How many queries are asked.")
    rows: Annotated[int | None, Option(default="2000; 10000 of a graph in memory")] = Field(
        None, ge=1, le=20_000, description="How many rows are asked for by their own vectors."
    )

    def texts_sent(self) -> Iterator[SentTexts]:
        if self.function is not None:
            yield SentTexts([self.function], f"{self.count:,} queries", "your queries would leave this one")

    def answer(self, progress: Progress = QUIET) -> SearchReport:
        from embaudit.embedders.opened import open_kept
        from embaudit.questions.search.measured import TenantFilters
        from embaudit.questions.search.report import look_at_search
        from embaudit.questions.vectors.opened import opened_first, opened_for, with_filter

        texts, vectors = self._asked()
        named, rows = str(self.store), self.read_options(allow_pickle=self.allow_pickle)
        first = opened_first(named, replace(rows, where=()))
        with ExitStack() as stack:
            function = None
            if self.function is not None:
                (call,) = self.calls(self.function)
                function = stack.enter_context(open_kept(self.function, self.load_options, call))
            store, filtered = with_filter(function, named, rows, first)
            each = None
            if (field := self.where_each) is not None:

                def opened(value: str) -> Store:
                    return opened_for(function, named, replace(rows, where=(*rows.where, (field, value))))

                each = TenantFilters(field, opened)
            return look_at_search(
                store,
                function,
                filtered=filtered,
                each=each,
                texts=texts,
                vectors=vectors,
                settings=self.query_settings,
                queries=self.count,
                rows=self.rows,
                target=self.recall,
                seed=self.seed,
                progress=progress.done,
            )

    def _asked(self) -> tuple[list[str] | None, np.ndarray | None]:
        """The texts, or the vectors, of a file of queries."""
        from embaudit.corpora.draw import Draw
        from embaudit.corpora.golden import QUERY
        from embaudit.corpora.load import load_corpus

        if self.queries is None:
            return None, None
        if self.function is None or Path(self.queries).suffix in MATRICES:
            return None, _vectors_of(str(self.queries), self.count)
        draw = Draw(rows=self.count, seed=self.seed)
        return [text.text for text in load_corpus(QUERY, str(self.queries), draw=draw).texts], None


def _vectors_of(file: str, most: int) -> np.ndarray:
    """(Q, D) the first vectors of a file; those of the dimension that most have."""
    import numpy as np

    from embaudit.stores.opened import open_store

    by_dimension: dict[int, list[Any]] = {}
    for batch in open_store(file).batches():
        for dimension, (_, vectors) in batch.vectors.items():
            by_dimension.setdefault(dimension, []).append(np.asarray(vectors, np.float32))
        if sum(len(part) for parts in by_dimension.values() for part in parts) >= most:
            break
    if not by_dimension:
        raise UsageError(f"{file} has no vectors.", next_step="Name a function that encodes queries, or another file.")
    return np.concatenate(max(by_dimension.values(), key=lambda parts: sum(map(len, parts))))[:most]
