"""Where a served model cuts long texts, in words, without its tokenizer.

A text of n words is asked for twice, the second time with other last words. If both vectors are the same, what is read
ends before them. n is doubled until that happens, and what is read is then closed in on by bisection.

Whether a served model gives every text a vector that can be used, and different texts different ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.checkpoint.agreement import KINDS, WORDS, long_text
from embaudit.declared.rule import Finding, Rule, number
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.measures.integrity.function import distinct_finding, texts_that_differ
from embaudit.questions.parity.compare import apart
from embaudit.questions.parity.without_vector import ZEROS

# In words. Most tokenizers make a token or two of each.
SHORTEST, LONGEST = 8, 2_048
# What is read is told to this share of itself.
CLOSE = 0.04
# The last words that are changed: enough to be seen in a mean over the longest text.
CHANGED = 4
# 1 − cosine: what does not move a vector leaves it the same but for the last bits.
UNMOVED = 1e-10
# Searched passages have about a hundred words.
SHORT = 100
TAIL = Rule(
    "tail",
    look_if=f"less than {SHORT} words are read; the end is read and not the start; longer texts are refused; some of "
    "the documents are longer",
    reason=f"{CHANGED} last words, then as many first ones, are changed; what moves no vector by more than "
    f"{number(UNMOVED)}, or three times what asking again does, is not read. `not measured` if the last of {SHORTEST} "
    "words move nothing",
)
TAIL_OF_QUERIES = Rule(
    "tail_of_queries",
    look_if="less is read of a long query than of a long document, or longer ones are refused",
    reason="as `tail`, asked for as queries",
)


@dataclass(frozen=True)
class ReadLength:
    """What is read of a long text.

    Attributes:
        words: about how many are read; None if all of ``LONGEST`` are.
        tried: the longest text that got a vector.
        refusal: the server's words, if it refuses longer texts in place of cutting them.
        is_left: whether it is the end that is read.
    """

    words: int | None
    tried: int
    refusal: str = ""
    is_left: bool = False


class Moves:
    """Asks whether the words at an end of a text of some length move its vector."""

    def __init__(self, function: EmbeddingFunction, role: TextKind = "text") -> None:
        self.function, self.role = function, role
        self.refusal = ""
        # The largest so far: of servers that are not exact, many answers come out bit for bit all the same.
        self._noise = 0.0
        self._known: dict[tuple[int, bool], bool | None] = {}

    @property
    def is_steady(self) -> bool:
        """Whether the same text has had the same vector again."""
        return self._noise <= UNMOVED

    def __call__(self, words: int, *, first: bool = False) -> bool | None:
        """None if the server gives no vector of so long a text."""
        key = words, first
        if key not in self._known:
            self._known[key] = self._ask(words, first)
        return self._known[key]

    def _ask(self, words: int, first: bool) -> bool | None:
        text = long_text(words).split(" ")[:words]
        other = [f"{WORDS[(place + 3) % len(WORDS)]}ing" for place in range(min(CHANGED, words))]
        changed = [*other, *text[len(other) :]] if first else [*text[: -len(other)], *other]
        # The same text again: servers that are not exact move it by themselves.
        asked = [" ".join(text), " ".join(changed), " ".join(text)]
        answers = self.function.encode(asked, self.role, most=1)
        if answers.failures or not np.isfinite(answers.vectors).all():
            self.refusal = next(iter(answers.failures.values()), "NaN in its vector")
            return None
        moved, noise = apart(answers.vectors[:1].repeat(2, axis=0), answers.vectors[1:])
        self._noise = max(self._noise, float(noise))
        return bool(moved > max(UNMOVED, 3 * self._noise))


def find_cut(function: EmbeddingFunction, role: TextKind = "text") -> ReadLength | None:
    """What is read of a long text; None if texts of ``SHORTEST`` words have no vector, or are not read to their end."""
    moves = Moves(function, role)
    if not moves(SHORTEST):
        return None
    read, cut = SHORTEST, SHORTEST * 2
    while cut <= LONGEST and _is_read(moves, cut):
        read, cut = cut, cut * 2
    if cut > LONGEST:
        return ReadLength(None, read)
    is_refused = moves(cut) is None
    is_left = not is_refused and moves(cut) is True
    while cut - read > max(1, CLOSE * read):
        middle = (read + cut) // 2
        if _is_read(moves, middle):
            read = middle
        else:
            cut = middle
    if is_refused:
        return ReadLength(read, read, moves.refusal)
    # Of the words that were changed, perhaps only the first is read.
    return ReadLength(read - CHANGED + 1, read, is_left=is_left)


def _is_read(moves: Moves, words: int) -> bool:
    """Whether both ends of a text of some length count."""
    return bool(moves(words)) and bool(moves(words, first=True))


def limit_findings(function: EmbeddingFunction, documents: Sequence[str] = ()) -> list[Finding]:
    """What is read of long documents, and how many are longer; and of long queries, if it is less."""
    cut = find_cut(function, "document")
    if cut is None:
        sentence = f"Cannot tell where long texts are cut: the last words of {SHORTEST} do not move a vector."
        advice = "Look first at what else is said: does a text decide on its vector?"
        return [TAIL.finding("not measured", sentence, advice=advice)]
    return [_of_documents(cut, documents), *_of_queries(function, cut)]


def _of_queries(function: EmbeddingFunction, documents: ReadLength) -> list[Finding]:
    """What is read of long queries, where they are asked for in another way and less is read of them."""
    if function.alike("query") == function.alike("document"):
        return []
    cut = find_cut(function, "query")
    if cut is None:
        moves = Moves(function, "query")
        is_cut = moves(SHORTEST) is False and moves.is_steady
        sentence = f"The last words of a query of {SHORTEST} do not move its vector."
        meaning, advice = "A query's end counts for nothing.", "Put first what a long query asks for."
        return [TAIL_OF_QUERIES.finding("look", sentence, meaning, advice)] if is_cut else []
    most = LONGEST if documents.words is None else documents.words
    if cut.words is None or cut.words >= most * (1 - 2 * CLOSE) - CHANGED:
        return []
    what = (
        f"Queries of more than about {cut.words:,} words are refused: {cut.refusal}."
        if cut.refusal
        else f"Of a long query, about {cut.words:,} words at its {'end' if cut.is_left else 'start'} are read, of a "
        f"document {'all' if documents.words is None else f'about {documents.words:,}'}."
    )
    return [
        TAIL_OF_QUERIES.finding(
            "look",
            what,
            "Passages that are asked for as queries are compared by part of themselves.",
            "See what is done to queries before they are encoded.",
            float(cut.words),
        )
    ]


def _of_documents(cut: ReadLength, documents: Sequence[str]) -> Finding:
    if cut.words is None:
        return TAIL.finding("ok", f"All of a text of {cut.tried:,} words is read.", value=float(cut.tried))
    longer = sum(len(text.split()) > cut.words for text in documents)
    of_documents = f" {longer} of {len(documents)} documents here are longer." if documents else ""
    what = (
        f"Texts of more than about {cut.words:,} words are refused: {cut.refusal}."
        if cut.refusal
        else f"Of a long text, about {cut.words:,} words at its {'end' if cut.is_left else 'start'} are read."
    )
    is_short = cut.words < SHORT
    if not (is_short or cut.is_left or cut.refusal or longer):
        return TAIL.finding("ok", what + of_documents, value=float(cut.words))
    return TAIL.finding(
        "look",
        what + of_documents,
        "Callers must split longer texts before they send them." if cut.refusal else "What is cut off is in no vector.",
        "Split documents into pieces of that length"
        + (", or raise the server's limit if the model was trained with a higher one." if is_short else "."),
        float(cut.words),
    )


# Many servers refuse them, and nobody stores a vector of a text with nothing in it.
ZERO = "its vector is zero"
MAY_HAVE_NONE = {*KINDS["empty"], *KINDS["blank"]}
NOT_FINITE = Rule(
    "not_finite",
    problem_if="a hard text other than those gets no vector, NaN, infinity or zeros",
    reason="such texts cannot be stored or asked for",
)
NO_VECTOR = Rule(
    "no_vector", look_if="texts with nothing in them get no vector", reason="many servers refuse them, and say so"
)


def _advice(reason: str, kind: str) -> str:
    """What to do about a text without a usable vector."""
    if reason == ZERO:
        return ZEROS
    return "Look at the server's log for that text." if kind == "endpoint" else "Call it with that text alone."


def hard_texts() -> list[str]:
    """Texts of every kind that something breaks on."""
    return [text for some in KINDS.values() for text in some]


def number_findings(texts: Sequence[str], answers: Answers, kind: str = "endpoint") -> Iterator[Finding]:
    """What is wrong with the vectors of ``hard_texts``, each asked alone.

    Args:
        kind: what gave them: an endpoint has a log, an object of the user's program has none.
    """
    yield from _without_a_vector(texts, answers, kind)
    has_vector = np.isfinite(answers.vectors).all(axis=1) & (np.linalg.norm(answers.vectors, axis=1) > 0)
    if not has_vector.any():
        return
    differ = set(texts_that_differ())
    places = [place for place, text in enumerate(texts) if has_vector[place] and text in differ]
    yield distinct_finding([texts[place] for place in places], answers.vectors[places])


def _without_a_vector(texts: Sequence[str], answers: Answers, kind: str) -> Iterator[Finding]:
    """Texts that are refused, that fail, and whose vector is NaN or zeros."""
    is_finite = np.isfinite(answers.vectors).all(axis=1)
    reasons = dict(answers.failures)
    for place in np.flatnonzero(~is_finite):
        reasons.setdefault(int(place), "its vector has NaN or infinity")
    for place in np.flatnonzero(is_finite):
        if not np.linalg.norm(answers.vectors[place]) > 0:
            reasons[int(place)] = ZERO
    tolerable = [place for place in sorted(reasons) if texts[place] in MAY_HAVE_NONE]
    others = [place for place in sorted(reasons) if texts[place] not in MAY_HAVE_NONE]

    def lacking(places: Sequence[int]) -> str:
        first = places[0]
        return (
            f"{len(places)} of {len(texts)} hard texts get no vector that can be used, {texts[first]!r} first: "
            f"{reasons[first]}."
        )

    if others:
        yield NOT_FINITE.finding(
            "problem",
            lacking(others),
            "Such texts cannot be stored or asked for.",
            _advice(reasons[others[0]], kind),
            float(len(others)),
        )
    if tolerable:
        meaning, advice = "There is nothing in them.", "Leave such texts out before it is asked."
        yield NO_VECTOR.finding("look", lacking(tolerable), meaning, advice, float(len(tolerable)))
