"""What else would find a row that exact search loses: a piece, another field, another way to ask, no sticky tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field

import numpy as np

from embaudit.checkpoint import Encoder, TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.measured import words_of
from embaudit.questions.search.exact import scores_of, slack_of
from embaudit.questions.vectors.forms import encode_rows, role_of_rows
from embaudit.questions.why import mends
from embaudit.questions.why.built import TextPiece, pieces_of, read_of
from embaudit.questions.why.case import Case, InAField, ShownResults
from embaudit.questions.why.mends import Mend, OtherQuery, encoded, other_queries
from embaudit.questions.why.ranked import WordWeights, in_a_field, ranked
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


# Of what was asked for, by weight of its words: so much in a piece is no chance.
ANSWERS = 0.4
# A piece without these words answers if its cosine is so much above that of the k-th result.
NEARER = 0.05
# Or if so many pieces of any other text would come so near at most so often: of m pieces among N rows, the nearest is
# among the first r by chance with m r/N.
BY_CHANCE = 0.05
# Where a field is put.
BEFORE, ALONE = "before the text", "alone"


@dataclass(frozen=True)
class OtherMeans:
    """By what rows are sought.

    Attributes:
        cut_off: what of the results is shown; who is among them needs no other way.
        vocabulary: words of the store.
        severe: ids of tokens that an audit found to be sticky.
        words: what words weigh in the store; None if it has no texts.
        fields: by row number, what else the rows hold that are lost: by name, as text.
        embedded: by row number, what is embedded of it.
        as_kept: what the store keeps of (n, D) vectors of the function.
    """

    cut_off: ShownResults
    vocabulary: Set[str]
    severe: Collection[int]
    words: WordWeights | None
    fields: Mapping[int, Mapping[str, str]]
    embedded: Mapping[int, str]
    as_kept: Callable[[np.ndarray], np.ndarray]


@dataclass
class OtherWays:
    """What is tried for one case: queries with the vectors that are ranked for each in place of the row's own.

    Attributes:
        place: of the case.
        text, pieces: of its row.
        field: one that has what was asked for; None if none does.
        again: what is embedded of the row, if that is to be encoded again; empty if not.
        asked: other queries that its own vector is ranked for.
        named: what each vector is, by query and place.
    """

    place: int
    text: str
    pieces: list[TextPiece]
    field: InAField | None
    again: str
    asked: list[OtherQuery]
    sticky: tuple[str, ...] = ()
    queries: list[np.ndarray] = dataclass_field(default_factory=list)
    vectors: list[list[np.ndarray]] = dataclass_field(default_factory=list)
    named: list[list[object]] = dataclass_field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """That are ranked for the query, in place of the row's."""
        of_field = [] if self.field is None else [f"{self.field.value}\n{self.text}", self.field.value]
        return [*(piece.text for piece in self.pieces), *of_field, *([self.again] if self.again else [])]

    @property
    def named_texts(self) -> list[object]:
        """What each of them is."""
        of_field = [] if self.field is None else [BEFORE, ALONE]
        return [*self.pieces, *of_field, *([mends.AGAIN] if self.again else [])]

    def add(self, query: np.ndarray, vectors: Mapping[object, np.ndarray], stored: np.ndarray) -> None:
        """A query, and what is ranked for it: first the row as it is stored."""
        self.queries.append(query)
        self.vectors.append([stored, *vectors.values()])
        self.named.append([None, *vectors])


@dataclass(frozen=True)
class Attempt:
    """What came of a vector in place of a row's.

    Attributes:
        score: by the store's metric.
    """

    rank: int
    score: float
    cosine: float


def with_other_ways(
    store: Store,
    function: EmbeddingFunction,
    cases: Sequence[Case],
    queries: np.ndarray,
    metric: Metric,
    means: OtherMeans,
    progress: Callable[[str, int, int | None], None],
) -> tuple[list[Case], int]:
    """The cases with what would find those that are lost: all texts are encoded at once, and ranked in one more pass.

    Who is exactly among the first k, and is the function's, needs none: its vector is not why it is lost.

    Returns:
        The cases, and how many texts were encoded for them.
    """
    found = list(cases)
    k = means.cut_off.k
    plans = [
        _planned(place, case, function, means)
        for place, case in enumerate(cases)
        if case.is_lost(k) and (case.rank is None or case.rank > k or case.is_own is False)
    ]
    if not plans:
        return found, 0
    D = queries.shape[1]
    texts = list(dict.fromkeys(text for one in plans for text in one.texts))
    own = encode_rows(function, texts, lambda some: progress("pieces and rows encoded again", some, len(texts)))
    rows = dict(zip(texts, means.as_kept(own[:, :D]) if len(texts) else own, strict=True))
    others = [query for one in plans for query in one.asked]
    ways = iter(encoded(function, others)[:, :D] if others else ())
    for one in plans:
        case, query = cases[one.place], queries[one.place]
        # What has no vector is nowhere.
        stored = np.zeros(D, np.float32) if case.rank is None or case.row is None else case.row.vector
        stored = np.asarray(stored, np.float32)
        tried = zip(one.named_texts, (rows[text] for text in one.texts), strict=True)
        one.add(query, {name: vector for name, vector in tried if has_vector(vector)}, stored)
        for asked, vector in zip(one.asked, ways, strict=False):
            if has_vector(vector):
                one.add(vector, {asked.said: stored}, stored)
        if means.severe:
            add_without_sticky(one, function, case, query, stored, means)
    said = "exact search of pieces and other queries: rows"
    outcomes = ranked_in_place(
        store, plans, dict(enumerate(cases)), metric, lambda done: progress(said, done, store.rows)
    )
    for one, (attempts, rows_ranked) in zip(plans, outcomes, strict=True):
        found[one.place] = _told(found[one.place], function, one, attempts, metric, rows_ranked, means)
    return found, len(texts) + len(others)


def ranked_in_place(
    store: Store, plans: Sequence[OtherWays], cases: Mapping[int, Case], metric: Metric, progress: Callable[[int], None]
) -> Iterator[tuple[dict[object, Attempt], int]]:
    """By plan, what came of each of its vectors in place of its case's row, and how many rows were ranked: one pass."""
    queries = np.stack([query for one in plans for query in one.queries])
    ranks = ranked(store, queries, [own for one in plans for own in one.vectors], [metric], progress)
    start = 0
    for one in plans:
        found: dict[object, Attempt] = {}
        for number, (query, vectors, named) in enumerate(zip(one.queries, one.vectors, one.named, strict=True), start):
            own = ranks.scores[metric][number]
            longest = float(max(map(np.linalg.norm, vectors)))
            slack = slack_of(metric, np.array([np.linalg.norm(query)]), longest)[0]
            for place, name in enumerate(named[1:], 1):
                if (rank := ranks.rank(metric, number, place)) is not None:
                    # The row as it is stored is above no longer, which the filter may leave out.
                    is_above = cases[one.place].passes is not False and own[0] > own[place] + slack
                    cosine = float(scores_of("cosine", query[None], vectors[place][None])[0, 0])
                    found[name] = Attempt(rank - int(is_above), float(own[place]), cosine)
        start += len(one.queries)
        yield found, ranks.exact.rows


def has_vector(vector: np.ndarray) -> bool:
    return bool(np.isfinite(vector).all() and vector.any())


def _planned(place: int, case: Case, function: EmbeddingFunction, means: OtherMeans) -> OtherWays:
    assert case.row is not None
    text = case.row.text or ""
    field = means.words and in_a_field(case, means.words, means.fields.get(case.row.number, {}))
    again = "" if case.is_own else means.embedded.get(case.row.number, "")
    asked = [] if case.rank is None else other_queries(function, case.query, means.vocabulary)
    return OtherWays(place, text, pieces_of(function, text), field or None, again, asked)


def add_without_sticky(
    one: OtherWays, function: EmbeddingFunction, case: Case, query: np.ndarray, stored: np.ndarray, means: OtherMeans
) -> None:
    """Query and text without their severe tokens."""
    assert case.row is not None
    of_query = without_severe(function, case.query, "query", means.severe)
    of_text = without_severe(function, case.row.text or "", role_of_rows(function), means.severe)
    both = [clean for clean in (of_query, of_text) if clean is not None]
    if both:
        one.sticky = tuple(dict.fromkeys(token for clean in both for token in clean.tokens))
        vector = stored if of_text is None else means.as_kept(of_text.vector[None, : len(query)])[0]
        asked = query if of_query is None else of_query.vector[: len(query)]
        one.add(asked, {mends.WITHOUT_STICKY: vector}, stored)


def _told(
    case: Case,
    function: EmbeddingFunction,
    one: OtherWays,
    found: Mapping[object, Attempt],
    metric: Metric,
    rows: int,
    means: OtherMeans,
) -> Case:
    """A case with what came of it."""
    assert case.row is not None
    k = means.cut_off.k
    below = {name for name, attempt in found.items() if not means.cut_off.shows(attempt.cosine, attempt.score, metric)}
    # Scores that this query may get, by which a piece may come nearer than what is found.
    lengths = [float(np.linalg.norm(one.queries[0]) * np.linalg.norm(vector)) for vector in one.vectors[0]]
    scale = {"cosine": 1.0, "dot": max(lengths), "l2": 2 * max(lengths)}[metric]
    last = case.above[k - 1].score if len(case.above) >= k else np.inf
    pieces = [piece for piece in one.pieces if piece in found]

    def rank(name: object) -> int | None:
        return found[name].rank if name in found else None

    def answers(piece: TextPiece) -> bool:
        if means.words is None or means.words.share(case.query, set(words_of(piece.text))) >= ANSWERS:
            return True
        by_chance = len(pieces) * found[piece].rank / max(rows, 1)
        return by_chance <= BY_CHANCE or found[piece].score >= last + NEARER * scale

    serves = {piece: found[piece].rank <= k and answers(piece) for piece in pieces}
    best = min(pieces, key=lambda piece: (not serves[piece], found[piece].rank, -found[piece].score), default=None)
    names = {named.name for named in below if isinstance(named, Mend)}
    names |= {mends.IN_PIECES.name} if best in below else set()
    names |= {mends.asked(query.said).name for query in one.asked if query.said in below}
    if one.field is not None:
        names |= {mends.field(one.field.name, way is BEFORE).name for way in (BEFORE, ALONE) if way in below}
    return replace(
        case,
        read=read_of(function, case.row.text) if case.row.text else None,
        query_read=read_of(function, case.query, "query"),
        piece=best,
        piece_rank=rank(best),
        piece_words=max((piece.end - piece.start for piece in pieces if serves[piece]), default=0),
        piece_answers=best is not None and answers(best),
        field=None
        if one.field is None or BEFORE not in found or ALONE not in found
        else replace(one.field, rank=found[BEFORE].rank, alone=found[ALONE].rank),
        readings=tuple((query.said, found[query.said].rank) for query in one.asked if query.said in found),
        sticky=one.sticky,
        sticky_rank=rank(mends.WITHOUT_STICKY),
        again=rank(mends.AGAIN),
        below=frozenset(names),
    )
