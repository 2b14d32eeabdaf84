"""Was the vector of a row built by the function, from the row's text?

Pieces of a text, half and a quarter of what the function reads, and its sentences, and where they stand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.against import Progress, SampleComparison, measure_sample
from embaudit.questions.vectors.embedded import read_as_embedded
from embaudit.questions.vectors.forms import StoredForm, encode_rows, other_roles, unit_float32
from embaudit.questions.vectors.profile import Profile, SomeRows, joined
from embaudit.questions.vectors.reasons import of_other
from embaudit.questions.why.mends import SENTENCE_END
from embaudit.questions.why.rows import ExpectedRow
from embaudit.stores.store import Rounded, Store
from embaudit.stores.template import Template

# Rows by which it is told how the store keeps vectors: so many, and if most are not the function's, so many more.
FEW, SAMPLED = 20, 64
# Rows before and behind one, whose texts may have got its place.
SHIFTED = 2
# Lengths of vectors of unit length are so near to 1.
UNIT = 1e-3


@dataclass(frozen=True)
class IndexOrigin:
    """How a store's vectors come about.

    Attributes:
        form: how they are kept; None if they are longer than the function's.
        template: what was embedded, if that is not the text column and was found.
        own: share of sampled rows that are the function's.
        apart: by row number, 1 − cosine of an expected row to the function's vector of its text; NaN for none.
        tolerance: up to where that is rounding.
        of_others: by row number, the number of a row near it whose text its vector is of.
        as_role: what rows were encoded as, if that is not what they should be and was found: queries, say.
        texts: by row number, what is embedded of an expected row.
    """

    form: StoredForm | None
    template: Template | None
    own: float
    apart: Mapping[int, float]
    tolerance: float
    of_others: Mapping[int, int]
    as_role: TextKind | None = None
    texts: Mapping[int, str] = field(default_factory=dict)

    def is_own(self, row: ExpectedRow) -> bool | None:
        """Whether a row's vector is the function's; None if that cannot be told."""
        apart = self.apart.get(row.number, np.nan)
        return None if not np.isfinite(apart) else bool(apart <= self.tolerance)


def how_built(
    store: Store,
    function: EmbeddingFunction,
    profile: Profile,
    rows: Sequence[ExpectedRow],
    texts: Sequence[str] | None,
    progress: Progress,
) -> IndexOrigin | None:
    """Encode the expected rows again, and a few others; None if there are no texts.

    What was embedded besides the text is searched for if most rows are not the function's.
    """
    D = profile.dimension
    usable = [row for row in rows if row.text is not None and row.vector is not None and len(row.vector) == D]
    sample = profile.sample.with_text
    some = sample.at(np.arange(min(FEW, len(sample))))
    own = SomeRows(
        np.array([row.number for row in usable], np.int64),
        np.array([row.vector for row in usable]).reshape(len(usable), D),
        tuple(row.text for row in usable),
        tuple(row.id for row in usable),
    )
    if not len(some) and not len(own):
        return None
    # Most rows say how vectors are kept; the expected ones may be the odd ones.
    found, ours = measure_sample(function, some if len(some) else own, profile.comparable, progress, store.rounded)
    template = None
    if len(some) == FEW and _is_foreign(found):
        some = sample.at(np.arange(min(SAMPLED, len(sample))))
        found, ours = measure_sample(function, some, profile.comparable, progress, store.rounded)
    if _is_foreign(found):
        told = read_as_embedded(store, function, found, ours, profile, progress)
        if told is not None and told.read.template is not None:
            template, found = told.read.template, told.against
    if found.form is None:
        return IndexOrigin(None, None, 0.0, {}, 0.0, {})
    share = float((found.compared & ~found.differs).sum() / max(int(found.compared.sum()), 1))
    embedded = _texts_of(store, rows, template)
    # Without one, a row of the template's fields cannot be made again.
    ours = encode_rows(function, [embedded.get(row.number, "") for row in usable]) if usable else np.empty((0, D))
    apart = np.where([row.number in embedded for row in usable], found.form.distance(ours, own.vectors), np.nan)
    known = {int(number): float(one) for number, one in zip(own.numbers, apart, strict=True)}
    foreign = [row for row in usable if known[row.number] > found.tolerance]
    others = {} if template is not None else _whose(function, found, foreign, texts)
    as_role = None if share >= 0.5 or template is not None else _role(function, some)
    return IndexOrigin(found.form, template, share, known, found.tolerance, others, as_role, embedded)


def _role(function: EmbeddingFunction, some: SomeRows) -> TextKind | None:
    """What most of these rows were encoded as by a function that has other ways to be asked."""
    places = np.arange(len(some))
    found = {role: len(of_other(function, some, places, role)) for role in other_roles(function)}
    best = max(found, key=lambda role: found[role], default=None)
    return best if best is not None and 2 * found[best] > len(some) else None


def _is_foreign(found: SampleComparison) -> bool:
    """Whether most rows are not the function's."""
    return bool(found.compared.any() and found.differs[found.compared].mean() > 0.5)


def _texts_of(store: Store, rows: Sequence[ExpectedRow], template: Template | None) -> dict[int, str]:
    """What is embedded of some rows, by number."""
    if template is None:
        return {row.number: row.text for row in rows if row.text}
    numbers, made = [row.number for row in rows], {}
    for batch in store.batches([name for name in template.fields if name in store.fields]):
        for place in np.flatnonzero(np.isin(batch.start + np.arange(batch.rows), numbers)).tolist():
            fields = {name: values[place] for name, values in batch.fields.items()}
            for what, values in (("text", batch.texts), ("id", batch.ids)):
                if values is not None and what in store.columns:
                    fields[store.columns[what]] = values[place]
            made[batch.start + place] = template.texts({name: [one] for name, one in fields.items()}, 1)[0]
    return {number: text for number, text in made.items() if text}


def _whose(
    function: EmbeddingFunction, found: SampleComparison, rows: Sequence[ExpectedRow], texts: Sequence[str] | None
) -> dict[int, int]:
    """Of rows with another text's vector, the row near it whose text that is."""
    pairs = [
        (row, other)
        for row in rows
        for other in range(row.number - SHIFTED, row.number + SHIFTED + 1)
        if texts is not None and other != row.number and 0 <= other < len(texts) and texts[other]
    ]
    if not pairs or texts is None or found.form is None:
        return {}
    ours = encode_rows(function, [texts[other] for _, other in pairs])
    stored = joined(
        [SomeRows(np.array([row.number]), np.asarray(row.vector)[None], (row.text,), (row.id,)) for row, _ in pairs], 0
    ).vectors
    near = found.form.distance(ours, stored) <= found.tolerance
    return {row.number: other for (row, other), one in zip(pairs, near, strict=True) if one}


def kept_form(vectors: np.ndarray, rounded: Rounded | None) -> Callable[[np.ndarray], np.ndarray]:
    """What a store of (N, D) vectors keeps of others: of unit length if its own are so, and as it rounds them."""
    lengths = np.linalg.norm(np.asarray(vectors, np.float64), axis=1)
    is_unit = bool(len(lengths)) and abs(float(np.median(lengths)) - 1) < UNIT

    def as_kept(own: np.ndarray) -> np.ndarray:
        given = np.asarray(unit_float32(own) if is_unit else own, np.float32)
        return given if rounded is None else np.asarray(rounded(given), np.float32)

    return as_kept


# Words of a piece where nobody knows how much is read, and the fewest of a text that is cut.
WORDS, FEWEST = 100, 40
# The shortest windows, in words, and what is no sentence any more.
SHORTEST, LONGEST = 12, 60
# Pieces of a text at most, of the longest windows and of sentences; of a longer text, pieces are longer.
MOST, MOST_SHORT = 60, 120


@dataclass(frozen=True)
class TextPiece:
    """A part of a text.

    Attributes:
        start, end: of its words, from 0.
        token: how many tokens of the text stand before it; None if that is not known.
        is_behind: whether it stands wholly behind what the function reads; None if that is not known.
    """

    text: str
    start: int
    end: int
    token: int | None
    is_behind: bool | None


@dataclass(frozen=True)
class ReadOfText:
    """How much of a text a function reads.

    Attributes:
        tokens: that it has; None if that is not known.
        limit: tokens that are read of it; None if all are, or nobody knows.
    """

    tokens: int | None
    limit: int | None

    @property
    def is_cut(self) -> bool:
        return self.tokens is not None and self.limit is not None and self.tokens > self.limit


def read_of(function: EmbeddingFunction, text: str, role: TextKind | None = None) -> ReadOfText:
    """Of a text as it is, or in a role, whose prompt takes a part of what is read."""
    checkpoint = function.checkpoint
    if checkpoint is None:
        return ReadOfText(None, function.limit)
    checkpoint = checkpoint if role is None else checkpoint.reading(role)
    limit = checkpoint.content_limit if function.limit is not None else None
    return ReadOfText(len(checkpoint.own_ids([text])[0]), limit)


def pieces_of(function: EmbeddingFunction, text: str) -> list[TextPiece]:
    """Windows of half and a quarter of what is read, which overlap by half, and sentences; none of a short text.

    A sentence that answers is a small part of a long piece, and may not be what its vector says.
    """
    words = text.split()
    if len(words) < FEWEST:
        return []
    read = read_of(function, text)
    size = WORDS
    if read.tokens and read.limit:
        size = max(int(len(words) * read.limit / 2 / read.tokens), FEWEST // 2)
    size = max(size, math.ceil(2 * len(words) / MOST))
    if size >= len(words):
        size = math.ceil(len(words) / 2)
    windows = list(_windows(0, len(words), size))
    if size // 2 >= SHORTEST:
        windows += _windows(0, len(words), size // 2)
    windows = list(dict.fromkeys([*windows, *_sentences(text)]))
    tokens = _tokens_before(function, words, [start for start, _ in windows])
    return [
        TextPiece(
            " ".join(words[start:end]),
            start,
            end,
            before,
            None if before is None else read.limit is not None and before >= read.limit,
        )
        for (start, end), before in zip(windows, tokens, strict=True)
    ]


def _windows(start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    starts = list(range(start, max(end - size, start) + 1, max(size // 2, 1)))
    if starts[-1] + size < end:
        starts.append(end - size)
    yield from ((one, min(one + size, end)) for one in starts)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Sentences as ranges of words: short ones with the next, long ones in parts, and of a long text, more together."""
    lengths = [len(one.split()) for one in SENTENCE_END.split(text) if one.strip()]
    least = max(SHORTEST // 2, math.ceil(sum(lengths) / MOST_SHORT))
    start = end = 0
    for length in lengths:
        end += length
        if end - start > LONGEST:
            yield from _windows(start, end, max(LONGEST // 2, least))
        elif end - start < least:
            continue
        else:
            yield start, end
        start = end
    if end > start:
        yield start, end


def _tokens_before(function: EmbeddingFunction, words: list[str], starts: list[int]) -> list[int | None]:
    if function.checkpoint is None:
        return [None] * len(starts)
    distinct = sorted(set(starts))
    prefixes = [" ".join(words[:start]) for start in distinct]
    counts = dict(zip(distinct, map(len, function.checkpoint.own_ids(prefixes)), strict=True))
    return [counts[start] for start in starts]
