"""What else would find a row that exact search loses: a piece, another field, another way to ask, no sticky tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from embaudit.checkpoint import Encoder, TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.measured import words_of
from embaudit.questions.vectors.encode import encode_rows, role_of_rows
from embaudit.questions.why.case import Case, InAField
from embaudit.questions.why.gathered import WordWeights, words_in_name
from embaudit.questions.why.pieces import TextPiece, pieces_of, read_of
from embaudit.questions.why.ranked import RankedQueries, ranked
from embaudit.questions.why.readings import encoded, other_queries
from embaudit.remedies.screening.density import counts_of
from embaudit.stores.store import Metric, Store


@dataclass(frozen=True)
class WithoutTokens:
    """A text without its severe tokens.

    Attributes:
        tokens: as the tokenizer writes them, with how often each stands there.
        vector: (D,) of the rest.
    """

    tokens: tuple[str, ...]
    vector: np.ndarray


def without_severe(
    function: EmbeddingFunction, text: str, role: TextKind, severe: Collection[int]
) -> WithoutTokens | None:
    """None if it has none, nothing else, or nobody sees the function's tokens."""
    if function.checkpoint is None or not severe:
        return None
    reading = function.checkpoint.reading(role)
    ids = reading.content_ids(text)
    counts = counts_of(ids, severe)
    rest = [one for one in reading.own_ids([text])[0] if one not in counts]
    if not counts or not rest:
        return None
    whole = reading.with_special_tokens(reading.cut(rest, reading.content_limit))
    names = reading.tokenizer.convert_ids_to_tokens(list(counts))
    shown = tuple(f"{name!r} × {count:,}" for name, count in zip(names, counts.values(), strict=True))
    return WithoutTokens(shown, Encoder(reading).encode_ids([whole])[0])


# Of what was asked for, by weight of its words: so much in a field, or in a piece, is no chance.
IN_FIELD, ANSWERS = 0.4, 0.4
# A piece without these words answers if its cosine is so much above that of the k-th result.
NEARER = 0.05


@dataclass(frozen=True)
class OtherMeans:
    """By what rows are sought.

    Attributes:
        k: results that are shown; who is among them needs no other way.
        vocabulary: words of the store.
        severe: ids of tokens that an audit found to be sticky.
        words: what words weigh in the store; None if it has no texts.
        fields: by row number, what else the rows hold that are lost: by name, as text.
    """

    k: int
    vocabulary: Set[str]
    severe: Collection[int] = ()
    words: WordWeights | None = None
    fields: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class OtherWays:
    """What is tried for one case: queries (n, D) with the vectors that are ranked for each.

    Attributes:
        place: of the case.
        pieces: ranked for the query itself, the first one.
        said: how the others are asked.
        sticky: tokens without which the last one is asked; empty if there are none.
        field: one that has what was asked for, whose vectors, before the text and alone, are ranked behind the pieces.
    """

    place: int
    pieces: list[TextPiece]
    field: InAField | None
    said: list[str]
    sticky: tuple[str, ...]
    queries: list[np.ndarray]
    vectors: list[list[np.ndarray]]


def with_other_ways(
    store: Store,
    function: EmbeddingFunction,
    cases: Sequence[Case],
    queries: np.ndarray,
    metric: Metric,
    means: OtherMeans,
    progress: Callable[[int], None],
) -> list[Case]:
    """The cases with what would find those that exact search loses, in one more pass."""
    found = list(cases)
    plan = list(_planned(function, cases, queries, means))
    if not plan:
        return found
    asked = np.stack([query for one in plan for query in one.queries])
    ranks = ranked(store, asked, [own for one in plan for own in one.vectors], [metric], progress)
    start = 0
    for one in plan:
        found[one.place] = _told(found[one.place], function, one, ranks, metric, start, means)
        start += len(one.queries)
    return found


def has_vector(vector: np.ndarray) -> bool:
    return bool(np.isfinite(vector).all() and vector.any())


def _planned(
    function: EmbeddingFunction, cases: Sequence[Case], queries: np.ndarray, means: OtherMeans
) -> Iterator[OtherWays]:
    D = queries.shape[1]
    for place, case in enumerate(cases):
        if case.row is None or case.row.vector is None or case.rank is None or case.rank <= means.k:
            continue
        query, stored, text = queries[place], np.asarray(case.row.vector, np.float32), case.row.text or ""
        pieces = pieces_of(function, text)
        own = encode_rows(function, [piece.text for piece in pieces])[:, :D] if pieces else np.empty((0, D))
        kept = [number for number, vector in enumerate(own) if np.isfinite(vector).all()]
        ranked_alone = [own[number].astype(np.float32) for number in kept]
        in_field = means.words and _in_a_field(case, means.words, means.fields.get(case.row.number, {}))
        if in_field:
            both = encode_rows(function, [f"{in_field.value}\n{text}", in_field.value])[:, :D]
            ranked_alone += list(both.astype(np.float32)) if np.isfinite(both).all() else []
        others = other_queries(function, case.query, means.vocabulary)
        ways = encoded(function, others)[:, :D] if others else np.empty((0, D), np.float32)
        usable = [number for number, vector in enumerate(ways) if has_vector(vector)]
        asked = [query, *(ways[number] for number in usable)]
        vectors = [ranked_alone, *([stored] for _ in usable)]
        of_query = without_severe(function, case.query, "query", means.severe)
        of_text = without_severe(function, text, role_of_rows(function), means.severe)
        sticky: tuple[str, ...] = ()
        if of_query is not None or of_text is not None:
            sticky = tuple(
                dict.fromkeys(token for one in (of_query, of_text) if one is not None for token in one.tokens)
            )
            asked.append(query if of_query is None else of_query.vector[:D])
            vectors.append([stored if of_text is None else of_text.vector[:D]])
        said = [others[number].said for number in usable]
        in_field = in_field if len(ranked_alone) > len(kept) else None
        yield OtherWays(place, [pieces[number] for number in kept], in_field or None, said, sticky, asked, vectors)


def _in_a_field(case: Case, words: WordWeights, fields: Mapping[str, str]) -> InAField | None:
    """The field that has most of what was asked for and the text has not; None if that is little."""
    in_text = set(words_of(case.row.text or "")) if case.row is not None else set()
    best, found = max(IN_FIELD, words.share(case.query, in_text)), None
    for name, value in fields.items():
        own = words_in_name(value) - in_text
        if (share := words.share(case.query, own)) > best:
            named = [one for one in dict.fromkeys(words_of(case.query)) if one in own and words.weight(one)]
            best, found = share, InAField(name, value, tuple(named))
    return found


def _told(
    case: Case,
    function: EmbeddingFunction,
    one: OtherWays,
    ranks: RankedQueries,
    metric: Metric,
    start: int,
    means: OtherMeans,
) -> Case:
    """A case with the ranks of what was tried, of which the queries begin at ``start``."""

    def rank(query: int, place: int = 0) -> int:
        return ranks.rank(metric, start + query, place) or 0

    # Scores that this query may get, by which a piece may come nearer than what is found.
    lengths = [float(np.linalg.norm(one.queries[0]) * np.linalg.norm(vector)) for vector in one.vectors[0]]
    scale = {"cosine": 1.0, "dot": max(lengths, default=1.0), "l2": 2 * max(lengths, default=1.0)}[metric]
    last = case.above[means.k - 1].score if len(case.above) >= means.k else np.inf

    def answers(number: int) -> bool:
        if means.words is None:
            return True
        share = means.words.share(case.query, set(words_of(one.pieces[number].text)))
        return share >= ANSWERS or float(ranks.scores[metric][start, number]) >= last + NEARER * scale

    # Of pieces that would be found, one that answers; of equals, the longest.
    known = [(rank(0, number), number) for number in range(len(one.pieces))]
    best = min(known, key=lambda it: (not (it[0] <= means.k and answers(it[1])), it), default=None)
    return replace(
        case,
        read=read_of(function, case.row.text) if case.row is not None and case.row.text else None,
        query_read=read_of(function, case.query, "query"),
        piece=None if best is None else one.pieces[best[1]],
        piece_rank=None if best is None else best[0],
        piece_answers=best is not None and answers(best[1]),
        field=None
        if one.field is None
        else replace(one.field, rank=rank(0, len(one.pieces)), alone=rank(0, len(one.pieces) + 1)),
        readings=tuple((said, rank(number)) for number, said in enumerate(one.said, 1)),
        sticky=one.sticky,
        sticky_rank=rank(len(one.queries) - 1) if one.sticky else None,
    )
