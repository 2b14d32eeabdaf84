"""What becomes of an index with a new revision? What ``embaudit switch`` and ``embaudit.switch`` ask."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from embaudit.checkpoint.loading import DTYPE, CheckpointOptions
from embaudit.declared.option import Argument, Option
from embaudit.embedders.call_options import CacheOptions, RoleOptions
from embaudit.questions.question import (
    FUNCTION,
    MATERIAL_LEAVES,
    QUIET,
    CorpusPart,
    PathName,
    Progress,
    Question,
    SentTexts,
)
from embaudit.words.errors import CheckpointError, CorpusError, UsageError

if TYPE_CHECKING:
    from embaudit.checkpoint import LoadOptions
    from embaudit.embedders.function import EmbeddingFunction
    from embaudit.measures.quality.material import ScoredPairs
    from embaudit.questions.switch.encode import SearchTexts
    from embaudit.questions.switch.switch import SwitchReport

# Queries that are read of what is given: enough for a bridge.
QUERIES = 300
SEED = 0


@dataclass(frozen=True)
class SwitchMaterial:
    """Texts to compare two functions on.

    Attributes:
        missing: what was given and cannot be used, and why.
    """

    pairs: tuple[ScoredPairs, ...]
    searches: tuple[SearchTexts, ...]
    missing: tuple[str, ...] = ()


class SwitchQuestion(CheckpointOptions, RoleOptions, CacheOptions, CorpusPart, Question):
    """OLD built an index: what becomes of it, and of a cut-off, if NEW takes over?

    Either may be a checkpoint, the address of an endpoint, or a Python object (python:MODULE:NAME). Both encode the
    same texts: yours, or the embedded sample.
    Exit code 0 if the index may stay as it is, 1 if a new threshold, a bridge or a new index is needed, 2 if that could
    not be told.
    """

    asks: ClassVar = "switch"

    old: Annotated[Any, Argument(metavar="OLD", holds="function"), FUNCTION] = Field(kw_only=False)
    new: Annotated[Any, Argument(metavar="NEW", holds="function"), FUNCTION] = Field(kw_only=False)
    dtype: Annotated[Literal["auto", "float32", "bfloat16", "float16"], DTYPE] = "auto"
    queries: Annotated[PathName | None, Option(metavar="FILE", is_file=True)] = Field(
        None,
        description="Queries for --corpus, without judgements. By default, its texts ask for their neighbours.",
    )
    thresholds: Annotated[Sequence[float], Option("threshold", metavar="NUMBER")] = Field(
        (), description="A cut-off that is in use with OLD. By default, one is chosen."
    )
    rows: Annotated[int, Option(metavar="N")] = Field(
        1_000_000, ge=1, description="Rows of the index, for the cost of encoding it again."
    )
    texts: Annotated[int, Option(metavar="N")] = Field(
        2_000, ge=20, description="Documents, and scored pairs, that are read at most."
    )
    holds: Annotated[float, Option(metavar="SHARE")] = Field(
        0.95, gt=0, le=1, description="What a bridge must keep of what NEW finds."
    )

    @property
    def load_options(self) -> LoadOptions:
        return replace(super().load_options, dtype=self.dtype)

    def texts_sent(self) -> Iterator[SentTexts]:
        yield SentTexts([self.old, self.new], *MATERIAL_LEAVES)

    def answer(self, progress: Progress = QUIET) -> SwitchReport:
        from embaudit.embedders.kept import cost_line
        from embaudit.embedders.opened import is_checkpoint, open_kept
        from embaudit.questions.switch.switch import switch_functions

        if wrong := [number for number in self.thresholds if not math.isfinite(number)]:
            raise UsageError(
                f"No similarity can be compared with a threshold of {wrong[0]}.", next_step="Give a number, such as .7."
            )
        material = self.switch_material()
        given, calls = (self.old, self.new), self.calls(self.old, self.new)
        with ExitStack() as stack:
            opened: dict[int, EmbeddingFunction] = {}
            # An endpoint first: loading a model takes longer than finding that none answers.
            for side in sorted((0, 1), key=lambda side: is_checkpoint(given[side])):
                with _named(("OLD", "NEW")[side]):
                    opened[side] = stack.enter_context(
                        open_kept(given[side], self.load_options, calls[side], progress.asked)
                    )
            texts = [text for some in material.pairs for text in (*some.firsts, *some.seconds)]
            texts += [text for some in material.searches for text in some.collection.documents]
            texts += [text for some in material.searches if not some.asks_itself for text in some.collection.queries]
            for function in opened.values():
                if function.checkpoint is None:
                    progress.say(cost_line(function, texts))
            return switch_functions(
                opened[0],
                opened[1],
                material.pairs,
                material.searches,
                thresholds=self.thresholds,
                rows=self.rows,
                holds=self.holds,
                missing=material.missing,
                progress=progress.comparing,
            )

    def switch_material(self) -> SwitchMaterial:
        """What is given; of what is not, the embedded sample. A corpus takes the place of the sample's queries.

        Raises:
            CorpusError: if a file cannot be read, or has too few texts.
            UsageError: if there are queries for no texts.
        """
        from embaudit.corpora.golden import load_golden
        from embaudit.measures.quality.material import SAMPLE, MaterialLimits, golden_of
        from embaudit.questions.switch.encode import SearchTexts

        corpus = None if self.corpus is None else str(self.corpus)
        if (asked := self.queries or self.golden) is not None and corpus is None:
            raise UsageError(
                f"There are queries ({asked}) and no texts to find.",
                next_step="Give the texts of the index: --corpus FILE",
            )
        try:
            given = self.material(MaterialLimits(self.texts, self.texts, QUERIES))
        except CorpusError as error:
            if "no judged queries" not in error.happened:
                raise
            raise CorpusError(
                error.happened,
                next_step="Queries without judgements are read so: --corpus FOLDER/corpus.jsonl --queries "
                "FOLDER/queries.jsonl. With judgements: a folder that also has qrels/test.tsv.",
            ) from error
        searches = [SearchTexts(some) for some in given.collections if self.data or corpus is None]
        for search in searches:
            _require_enough(search, search.collection.name)
        if corpus is not None and (self.queries is not None or self.golden is None):
            searches.append(_unjudged(corpus, None if self.queries is None else str(self.queries), self.texts))
        if corpus is not None and self.golden is not None:
            searches.append(SearchTexts(golden_of(load_golden(Path(self.golden), corpus), self.texts)))
            _require_enough(searches[-1], corpus)
        own = [some for some in given.pairs if some.name != SAMPLE]
        # What is given comes first: the verdict's line takes the first cut-off.
        return SwitchMaterial(
            (*own, *(some for some in given.pairs if some not in own)), tuple(searches), given.missing
        )


@contextmanager
def _named(side: str) -> Iterator[None]:
    """Say which of the two cannot be loaded."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{side}: {error.happened}", kept=error.kept, next_step=error.next_step) from error


def _unjudged(corpus: str, queries: str | None, texts: int) -> SearchTexts:
    from embaudit.corpora.draw import Draw
    from embaudit.corpora.golden import DOCUMENT, QUERY
    from embaudit.corpora.load import load_corpus
    from embaudit.questions.switch.encode import SearchTexts

    documents = load_corpus(DOCUMENT, corpus, draw=Draw(rows=texts, seed=SEED))
    asked = None
    if queries is not None:
        asked = [text.text for text in load_corpus(QUERY, queries, draw=Draw(rows=QUERIES, seed=SEED)).texts]
    search = SearchTexts.of(documents.source, [text.text for text in documents.texts], asked)
    _require_enough(search, corpus)
    return search


def _require_enough(search: SearchTexts, source: str) -> None:
    from embaudit.questions.switch.material import MIN_DOCUMENTS

    count = len(search.collection.documents)
    if count < MIN_DOCUMENTS:
        raise CorpusError(
            f"{source} has {count} different texts: of so few, the first ten say nothing.",
            next_step=f"Give at least {MIN_DOCUMENTS}, better 2,000, of the texts that are in the index.",
        )
