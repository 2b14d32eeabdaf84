"""A checkpoint's score on the whole of some data, as it is declared, and under every other reading of it.

Other poolings, the other similarity and fewer dimensions come from the pass that the declared score needs. A prompt, a
limit, special tokens or lower case cost a pass over those texts whose tokens they change, which again has every
pooling; they are tried in the order of these tokens, and no longer once one reaches what was published.

    operations   2 · parameters · tokens read, and for nDCG one product of queries × documents

What a result file of MTEB publishes, and which of the data that are given each task was scored on.

MTEB names a task, its split and subset, and one main score: nDCG@10 of a retrieval task, Spearman's ρ of similarity
tasks. It says nothing of the prompts, the limit and the pooling that the score was reached with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.prompts import declared_prompts, prompt_tokens
from embaudit.checkpoint.settings import SETTINGS, read_settings
from embaudit.checkpoint.tokenizer import position_limit
from embaudit.corpora.scores.formats import Score
from embaudit.embedders.checkpoint import declared_similarity
from embaudit.measures.quality.alternatives import (
    PROMPT_FILE,
    Alternative,
    Reader,
    from_one_pass,
    other_readers,
    with_limit,
)
from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.measures.quality.measured import Measured, MeasuredCollection, MeasuredPairs
from embaudit.measures.quality.passes import POOLINGS, MultiPoolingEncoder, Pass
from embaudit.measures.quality.scores import CollectionScorer, PairScorer
from embaudit.measures.quality.wordings import WORDINGS
from embaudit.questions.blackbox.quality import FAMILIES, CallerPrompts
from embaudit.words.errors import UsageError, did_you_mean, is_of_machine

Data = ScoredPairs | Collection
# Main scores of tasks that are no retrieval and no pairs with people's scores. `map`, `ap` and the others are of texts
# that neither --data nor --pairs can hold.
RETRIEVAL, SIMILARITY = ("ndcg_at_10",), ("cosine_spearman", "cos_sim.spearman", "spearman")
UNKNOWN = "main_score"


@dataclass(frozen=True)
class PublishedScore:
    """A published score and the data that it is of."""

    score: Score
    data: Data

    @property
    def part(self) -> str:
        """Task, split and subset, as people say them."""
        subset = "" if self.score.subset == "default" else f", {self.score.subset}"
        return f"{self.score.task} ({self.score.split}{subset})"


def of_data(scores: Sequence[Score], data: Sequence[Data], part: str | None = None) -> list[PublishedScore]:
    """Each data set with the score that was published of it.

    The only task belongs to the only data set; of several, a task and a data set belong together that are called alike.

    Args:
        part: split or subset, where a task has several; by default its test split.

    Raises:
        UsageError: if a data set has no task, or a task has several parts to choose from.
    """
    found = []
    for one in data:
        fitting = [score for score in scores if _fits(score, one)]
        tasks = list(dict.fromkeys(score.task for score in fitting))
        named = [task for task in tasks if _word(task) in _words(one.name)]
        if not named and len(tasks) == len(data) == 1:
            named = tasks
        if len(named) != 1:
            kind = "similarity" if isinstance(one, ScoredPairs) else "retrieval"
            there = ", ".join(dict.fromkeys(score.task for score in scores))
            hint = did_you_mean(Path(one.name).stem, tasks)
            raise UsageError(
                f"No {kind} task is called as {one.name} is: there are scores of {there}.",
                next_step=f"{hint}Give the file of that task alone, or call the data as the task.",
            )
        found.append(PublishedScore(_only([score for score in fitting if score.task == named[0]], part), one))
    return found


def _only(scores: Sequence[Score], part: str | None) -> Score:
    """The score of a part of a task; of its test split, if none is named."""
    chosen = [one for one in scores if part in (one.split, one.subset)] if part else _of_test(scores)
    if len(chosen) == 1:
        return chosen[0]
    parts = "; ".join(f"{one.split}, {one.subset}" for one in scores)
    count = f"no part {part!r}" if part and not chosen else "several scores"
    raise UsageError(
        f"{scores[0].task} has {count} ({parts}).",
        next_step="Say which of these your data are, by its split or subset: --part NAME.",
    )


def _of_test(scores: Sequence[Score]) -> list[Score]:
    return [one for one in scores if one.split == "test"] or [*scores]


def _fits(score: Score, data: Data) -> bool:
    wanted = SIMILARITY if isinstance(data, ScoredPairs) else RETRIEVAL
    return score.metric in (*wanted, UNKNOWN, None)


def _words(name: str) -> Iterator[str]:
    """What a data set may be called: the parts of its path."""
    for part in Path(name).parts:
        yield _word(part)
        yield _word(part.partition(".")[0])


def _word(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


# Scores are of all the data: there is nothing to resample, and two resamples are the fewest.
RESAMPLES = 2
# Texts that are encoded between two lines of progress.
AT_ONCE = 512
LONGER = (128, 256, 512, 1_024, 2_048, 8_192)
Told = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class ScoredReading:
    """One way to read a checkpoint.

    Attributes:
        name: "as declared", or as the subject of "… reaches it".
        file: where it would be declared; empty of the declared one.
        scores: by data set.
        is_double: whether it differs from the declared one in two things.
    """

    name: str
    file: str
    scores: dict[str, float]
    is_double: bool = False


AS_DECLARED = "as declared"


def declared_reading(checkpoint: Checkpoint, data: Sequence[Data], told: Told) -> tuple[ScoredReading, list[Measured]]:
    """The declared reading, and the vectors behind it."""
    measured = [_encoded(Reader("", "", "", "", checkpoint), one, told) for one in data]
    return ScoredReading(AS_DECLARED, "", _scores(measured)), measured


def other_readings(checkpoint: Checkpoint, measured: Sequence[Measured], told: Told) -> Iterator[list[ScoredReading]]:
    """All other readings that change something: those that one pass gives together, the cheapest pass first."""
    yield _scored(measured, from_one_pass(checkpoint, measured))
    readers = [*other_readers(checkpoint), *_prompts(checkpoint), *_longer(checkpoint)]
    costs = {place: _cost(reader, measured) for place, reader in enumerate(readers)}
    for place in sorted((place for place, cost in costs.items() if cost), key=lambda place: costs[place]):
        reader = readers[place]
        try:
            encoded = [_encoded(reader, _data_of(one), told, one) for one in measured]
        except Exception as error:  # texts without tokens, vectors that are not finite
            if is_of_machine(error):
                raise
            continue
        both = [one for one in from_one_pass(reader.checkpoint, encoded) if one.group == "pooling"]
        yield [
            ScoredReading(reader.name, reader.file, _scores(encoded)),
            *(
                replace(one, name=f"{one.name} and {reader.name}", file=f"{one.file}, {reader.file}", is_double=True)
                for one in _scored(encoded, both)
            ),
        ]


def _scores(measured: Sequence[Measured]) -> dict[str, float]:
    return {one.data_set: one.score(one.similarities()).value for one in measured}


def _scored(measured: Sequence[Measured], others: Iterable[Alternative]) -> list[ScoredReading]:
    scores = _scores(measured)
    return [
        ScoredReading(
            other.name,
            other.file,
            {one.data_set: scores[one.data_set] + other.gains[one.name].value for one in measured},
        )
        for other in others
    ]


def _prompts(checkpoint: Checkpoint) -> Iterator[Reader]:
    """Prompts that the checkpoint declares for some task and does not apply, and those of well-known families."""
    call, is_pooled, folder = checkpoint.recipe.call, checkpoint.recipe.pools_prompt, checkpoint.resolved.folder
    document = checkpoint.prompts["document"].text
    tried = {
        f"the declared prompt {name!r}": CallerPrompts(text, document)
        for name, text in declared_prompts(read_settings(folder), folder / SETTINGS).items()
    }
    known = {given.query for given in FAMILIES.values()}
    tried |= FAMILIES | {
        f"the query prompt of {name}": CallerPrompts(text, document)
        for name, text in WORDINGS.items()
        if text and text not in known
    }
    applied = {kind: one.text for kind, one in checkpoint.prompts.items()}
    for name, given in tried.items():
        # Pairs are of texts that ask for each other.
        texts = {"query": given.query, "document": given.document, "text": given.query}
        if texts != applied:
            prompts = {
                kind: prompt_tokens(texts[kind], checkpoint.tokenizer, call, is_pooled=is_pooled) for kind in applied
            }
            yield Reader("prompts", name, "prompts as declared", PROMPT_FILE, replace(checkpoint, prompts=prompts))


def _longer(checkpoint: Checkpoint) -> Iterator[Reader]:
    most = position_limit(checkpoint.model) or max(LONGER)
    for limit in sorted({most, *LONGER}):
        if checkpoint.max_length < limit <= most:
            yield with_limit(checkpoint, limit)


def _cost(reader: Reader, measured: Sequence[Measured]) -> int:
    """Tokens that are read anew; 0 if the reading changes no text."""
    return sum(
        len(ids)
        for one in measured
        for (role, texts), known in zip(_sides(_data_of(one)), _known_ids(one), strict=True)
        for ids, before in zip(reader.ids(texts, role), known, strict=True)
        if list(ids) != list(before)
    )


def _sides(data: Data) -> tuple[tuple[str, Sequence[str]], tuple[str, Sequence[str]]]:
    """What is encoded, and as what."""
    if isinstance(data, Collection):
        return ("query", data.queries), ("document", data.documents)
    return ("text", data.firsts), ("text", data.seconds)


def _data_of(measured: Measured) -> Data:
    return measured.collection if isinstance(measured, MeasuredCollection) else measured.pairs


def _known_ids(measured: Measured) -> tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]:
    if isinstance(measured, MeasuredCollection):
        return measured.query_ids, measured.document_ids
    return measured.firsts_ids, measured.seconds_ids


def _known_vectors(measured: Measured) -> tuple[Pass, Pass]:
    if isinstance(measured, MeasuredCollection):
        return measured.queries, measured.documents
    return measured.firsts, measured.seconds


def _encoded(reader: Reader, data: Data, told: Told, known: Measured | None = None) -> Measured:
    """Vectors of all texts of the data; those whose tokens are known already are not encoded again.

    Raises:
        MeasureError: if a vector is not finite.
    """
    ids = [reader.ids(texts, role) for role, texts in _sides(data)]
    vectors = []
    for side, (role, _) in enumerate(_sides(data)):
        encoder = MultiPoolingEncoder(reader.checkpoint.reading(role))  # type: ignore[arg-type]
        before = None if known is None else (_known_ids(known)[side], _known_vectors(known)[side])
        what = f"texts of {data.name}" if known is None else f"texts of {data.name}, {reader.name}"
        vectors.append(_passes(encoder, ids[side], before, partial(told, what)))
    one, two = vectors
    if isinstance(data, Collection):
        similarity = declared_similarity(reader.checkpoint)
        return MeasuredCollection(data, CollectionScorer(data, RESAMPLES), one, two, ids[0], ids[1], similarity)
    # The main score of pairs is that of their cosines, whatever a checkpoint declares.
    return MeasuredPairs(data, PairScorer(data, RESAMPLES), one, two, ids[0], ids[1], "cosine")


def _passes(
    encoder: MultiPoolingEncoder,
    ids: Sequence[Sequence[int]],
    known: tuple[Sequence[Sequence[int]], Pass] | None,
    told: Callable[[int, int], None],
) -> Pass:
    """Each distinct sequence once, in parts of like length."""
    distinct = list(dict.fromkeys(map(tuple, ids)))
    of_known = {} if known is None else {tuple(one): row for row, one in enumerate(known[0])}
    new = sorted((one for one in distinct if one not in of_known), key=len)
    found: dict[tuple[int, ...], dict[str, np.ndarray]] = {}
    for start in range(0, len(new), AT_ONCE):
        part = new[start : start + AT_ONCE]
        encoded = encoder.passes(part, POOLINGS)
        for row, one in enumerate(part):
            found[one] = {name: rows[row] for name, rows in encoded.vectors.items()}
        told(len(part), len(new))
    if known is not None:
        found |= {one: {name: rows[row] for name, rows in known[1].vectors.items()} for one, row in of_known.items()}
    return Pass({name: np.stack([found[tuple(one)][name] for one in ids]) for name in found[tuple(ids[0])]})
