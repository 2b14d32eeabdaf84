"""``embaudit.switch``: what becomes of an index when a new revision takes over, from Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embaudit.api.check import given_material
from embaudit.corpora.catalog import CorpusSpec
from embaudit.corpora.draw import Draw
from embaudit.corpora.golden import DOCUMENT, load_golden
from embaudit.corpora.load import load_corpus
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.kept import cost_line
from embaudit.embedders.opened import (
    AS_IT_IS,
    CallOptions,
    Given,
    ProgressCallback,
    asked_of,
    is_checkpoint,
    name_of,
    open_kept,
)
from embaudit.measures.quality.material import SAMPLE, MaterialLimits, ScoredPairs, golden_of
from embaudit.questions.audit import AuditRequest
from embaudit.questions.switch.encode import SearchTexts
from embaudit.questions.switch.material import MIN_DOCUMENTS
from embaudit.questions.switch.switch import ROWS, Progress, SwitchReport, switch_functions
from embaudit.questions.switch.verdict import HOLDS
from embaudit.words.errors import CheckpointError, CorpusError, UsageError

# Read of what is given: what two small checkpoints encode in minutes, and enough for a bridge.
TEXTS, QUERIES = 2_000, 300
SEED = 0
QUERY = CorpusSpec(
    "queries", "texts", "queries", "queries.jsonl", (), text_fields=("query", "text", "question"), beir="queries"
)


@dataclass(frozen=True)
class SwitchMaterial:
    """Texts to compare two checkpoints on.

    Attributes:
        missing: what was given and cannot be used, and why.
    """

    pairs: tuple[ScoredPairs, ...]
    searches: tuple[SearchTexts, ...]
    missing: tuple[str, ...] = ()


def switch(
    old: Given,
    new: Given,
    *,
    api: str | Sequence[str] | None = None,
    model: str | Sequence[str] | None = None,
    query_prompt: str | Sequence[str] | None = None,
    document_prompt: str | Sequence[str] | None = None,
    pairs: Sequence[str | Path] = (),
    data: Sequence[str | Path] = (),
    corpus: str | Path | None = None,
    queries: str | Path | None = None,
    golden: str | Path | None = None,
    thresholds: Sequence[float] = (),
    rows: int = ROWS,
    texts: int = TEXTS,
    holds: float = HOLDS,
    **settings: Any,
) -> SwitchReport:
    """What becomes of the index that OLD built, and of a cut-off, if NEW takes over.

    Args:
        old, new: packaged:NAME, a local folder or owner/name@revision on the hub, an endpoint's address,
            or a Python object or its name (docs/functions.md).
        api, model: of an endpoint; one of each endpoint, if they differ.
        query_prompt, document_prompt: what an endpoint's callers put before queries and documents; likewise.
        pairs: files of scored pairs, a data set each; by default, the embedded sample.
        data: folders of judged queries in BEIR's layout; by default, unless a corpus is given, the embedded sample.
        corpus: texts of the index: a file, a folder or a data set on the hub.
        queries: a file of queries for them, without judgements; by default, texts ask for their own neighbours.
        golden: a file of golden queries (docs/why.md) that should find texts of the corpus, by id or text.
        thresholds: numbers that similarities by OLD are compared with in production.
        rows: of the index, for the cost of encoding it again.
        texts: how many documents, and scored pairs, are read at most.
        holds: what a bridge must keep of what NEW finds.
        settings: how both are loaded: device, dtype, pooling, max_length, prompt, allow_pickle, trust_remote_code.

    Raises:
        EmbauditError: if a checkpoint cannot be loaded, a file cannot be read, or a vector is not finite.
    """
    material = switch_material(
        [Path(path) for path in pairs],
        [Path(path) for path in data],
        None if corpus is None else str(corpus),
        None if queries is None else str(queries),
        texts,
        golden=None if golden is None else Path(golden),
    )
    return run(
        AuditRequest.of(checkpoint=name_of(old), **settings),
        new,
        material,
        old=old,
        asked=asked_of((old, new), api=api, model=model, query_prompt=query_prompt, document_prompt=document_prompt),
        thresholds=thresholds,
        rows=rows,
        holds=holds,
    )


def run(
    request: AuditRequest,
    new: Given,
    material: SwitchMaterial,
    *,
    old: Given | None = None,
    asked: Sequence[CallOptions] = (AS_IT_IS, AS_IT_IS),
    thresholds: Sequence[float] = (),
    rows: int = ROWS,
    holds: float = HOLDS,
    progress: Progress = lambda what: None,
    say: Callable[[str], None] = lambda line: None,
    told: ProgressCallback | None = None,
) -> SwitchReport:
    """Compare what a request names with another function.

    Args:
        old: in place of what the request names, a function that is there already.
        asked: how each of the two is asked, if it is no checkpoint.
        say: is given a line before the first text is sent.
        told: is told how much is done of what an endpoint is asked.
    """
    if not 0 < holds <= 1:
        raise UsageError(f"A bridge cannot be asked to keep {holds}.", next_step="Give a share above 0, at most 1.")
    if wrong := [number for number in thresholds if not math.isfinite(number)]:
        raise UsageError(
            f"No similarity can be compared with a threshold of {wrong[0]}.", next_step="Give a number, such as .7."
        )
    if rows < 1:
        raise UsageError(f"An index of {rows} rows cannot be encoded.", next_step="Give at least 1.")
    given = (request.checkpoint if old is None else old), new
    order = sorted((0, 1), key=lambda side: is_checkpoint(given[side]))
    with ExitStack() as stack:
        opened: dict[int, EmbeddingFunction] = {}
        # An endpoint first: loading a model takes longer than finding that none answers.
        for side in order:
            with _named(("OLD", "NEW")[side]):
                opened[side] = stack.enter_context(open_kept(given[side], request.load_options, asked[side], told))
        texts = [text for some in material.pairs for text in (*some.firsts, *some.seconds)]
        texts += [text for one in material.searches for text in one.collection.documents]
        texts += [text for one in material.searches if not one.asks_itself for text in one.collection.queries]
        for function in opened.values():
            if function.checkpoint is None:
                say(cost_line(function, texts))
        return switch_functions(
            opened[0],
            opened[1],
            material.pairs,
            material.searches,
            thresholds=thresholds,
            rows=rows,
            holds=holds,
            missing=material.missing,
            progress=progress,
        )


@contextmanager
def _named(side: str) -> Iterator[None]:
    """Say which of the two cannot be loaded."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{side}: {error.happened}", kept=error.kept, next_step=error.next_step) from error


def switch_material(
    pairs: Sequence[Path],
    data: Sequence[Path],
    corpus: str | None = None,
    queries: str | None = None,
    texts: int = TEXTS,
    golden: Path | None = None,
) -> SwitchMaterial:
    """What is given; of what is not, the embedded sample. A corpus takes the place of the sample's queries.

    Raises:
        CorpusError: if a file cannot be read, or has too few texts.
        UsageError: if there are queries for no texts.
    """
    if (asked := queries or golden) is not None and corpus is None:
        raise UsageError(
            f"There are queries ({asked}) and no texts to find.",
            next_step="Give the texts of the index: --corpus FILE",
        )
    if texts < MIN_DOCUMENTS:
        raise UsageError(
            f"{texts} texts are too few to compare their first ten.", next_step=f"Read at least {MIN_DOCUMENTS}."
        )
    try:
        given = given_material(pairs, data, MaterialLimits(texts, texts, QUERIES))
    except CorpusError as error:
        if "no judged queries" not in error.happened:
            raise
        raise CorpusError(
            error.happened,
            next_step="Queries without judgements are read so: --corpus FOLDER/corpus.jsonl --queries "
            "FOLDER/queries.jsonl. With judgements: a folder that also has qrels/test.tsv.",
        ) from error
    searches = [SearchTexts(one) for one in given.collections if data or corpus is None]
    for one in searches:
        _require_enough(one, f"{one.collection.name}")
    if corpus is not None and (queries is not None or golden is None):
        searches.append(_unjudged(corpus, queries, texts))
    if corpus is not None and golden is not None:
        searches.append(SearchTexts(golden_of(load_golden(golden, corpus), texts)))
        _require_enough(searches[-1], corpus)
    own = [one for one in given.pairs if one.name != SAMPLE]
    # What is given comes first: the verdict's line takes the first cut-off.
    return SwitchMaterial((*own, *(one for one in given.pairs if one not in own)), tuple(searches), given.missing)


def _unjudged(corpus: str, queries: str | None, texts: int) -> SearchTexts:
    documents = load_corpus(DOCUMENT, corpus, draw=Draw(rows=texts, seed=SEED))
    asked = None
    if queries is not None:
        asked = [text.text for text in load_corpus(QUERY, queries, draw=Draw(rows=QUERIES, seed=SEED)).texts]
    found = SearchTexts.of(documents.source, [text.text for text in documents.texts], asked)
    _require_enough(found, corpus)
    return found


def _require_enough(found: SearchTexts, source: str) -> None:
    count = len(found.collection.documents)
    if count < MIN_DOCUMENTS:
        raise CorpusError(
            f"{source} has {count} different texts: of so few, the first ten say nothing.",
            next_step=f"Give at least {MIN_DOCUMENTS}, better 2,000, of the texts that are in the index.",
        )
