"""How far a function was tried: requests of many texts, and texts up to the limit that the checkpoint declares.

A text of thousands of tokens takes a processor minutes, so that it is not encoded here. Whether the other reads it to
its end needs no vector of ours: its last part is exchanged, and what is read moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.parity.asking import BatchingCheck, held_to_alone
from embaudit.questions.parity.compare import HALF, LONGEST_TRIED, apart, text_of
from embaudit.words.errors import EmbauditError
from embaudit.words.sentences import quoted

# Texts in one request, the most first: the largest that is taken whole is tried. Servers split at 32, and at 128.
SIZES = (256, 128, 64, 33)
# Of the texts after the n-th of a request, so many have other vectors.
MOST = 0.75
# Nobody waits for 256 long ones.
SHORT = 80
# The last part of a long text that is exchanged: enough to move a vector in half precision.
TAIL = 8
# 1 − cosine: what does not move a vector leaves it the same but for the last bits, and by how many times its noise.
UNMOVED, NOISE = 1e-10, 3
# A limit is closed in on to this share of itself.
CLOSE = 0.02
# Words of another text.
OTHER = ("paper", "green", "seven", "Dinner", "cloud", "glass", "Oslo", "engine", "quiet", "salt")
# The rules of what is said of long texts.
CUT = Rule(
    "declared_limit",
    look_if="more is read of a text than the checkpoint declares",
    problem_if="less is read",
    reason="what is not read is in no vector; what a model was not trained to read may spoil one",
)
REFUSED = Rule(
    "declared_limit_refused",
    problem_if="texts within the declared limit get no vector",
    reason="documents of that length cannot be stored",
)


def ask_many_at_once(
    function: EmbeddingFunction, texts: Sequence[str], alone: np.ndarray, rounding: float
) -> BatchingCheck | None:
    """Ask for as many texts in one request as are taken; None if no more than a batch is.

    Args:
        texts: that were asked alone.
        alone: (n, D) their vectors.
    """
    places = [place for place, text in enumerate(texts) if text.strip() and len(text) <= SHORT]
    # Rows of other texts are found wherever servers split if the number of texts is odd.
    places = places[: len(places) - 1 + len(places) % 2]
    if len(places) < 3:
        return None
    for size in SIZES:
        asked = [places[place % len(places)] for place in range(size)]
        most, before = getattr(function, "most_texts", None), function.requests
        answers = function.encode([texts[place] for place in asked], most=size)
        is_whole = function.requests == before + 1
        if most is not None:
            # What is refused so says nothing of the requests that others make.
            function.most_texts = most  # type: ignore[attr-defined]
        if not is_whole:
            continue
        difference = held_to_alone([texts[place] for place in asked], alone[asked], answers)
        off = np.array([place in difference.failures for place in range(size)])
        off |= np.nan_to_num(difference.distances, nan=0.0) > max(rounding, HALF)
        cause = ""
        right = int(off.argmax())
        # Some texts may share a vector.
        if right and off[right:].mean() >= MOST:
            cause = f"gives the first {right:,} texts of a request their vectors, and those after them others"
        return BatchingCheck(f"with {size - 1} others in a request", difference, cause, rounding)
    return None


@dataclass(frozen=True)
class Reach:
    """How long the texts were that a function was tried on.

    Attributes:
        compared: tokens of the longest that was compared; None if that is all that is declared.
        read: tokens of the longest that is read to its end; None if that was not tried.
        declared: the declared limit; None for all.
    """

    compared: int | None = None
    read: int | None = None
    declared: int | None = None

    @property
    def said(self) -> str:
        """As the end of "the same function"; empty if all was tried."""
        if self.compared is None:
            return ""
        if self.read is None:
            return f" for texts of up to {self.compared:,} tokens, which were tried"
        declared = "" if self.declared is None or self.read < self.declared else ", the declared limit"
        return (
            f" for texts of up to {self.compared:,} tokens; longer ones are read to their end, up to {self.read:,} "
            f"tokens{declared}"
        )


def try_long_texts(
    checkpoint: Checkpoint, function: EmbeddingFunction, *, is_asked: bool = True
) -> tuple[Reach, list[Finding]]:
    """Whether texts that are too long to be encoded here are read to their end, and what is wrong if they are not.

    Args:
        is_asked: whether the function is asked for them.
    """
    declared = checkpoint.max_length
    if declared <= LONGEST_TRIED:
        return Reach(), []
    limit = None if declared >= NO_LIMIT else declared
    if limit is None or not is_asked:
        return Reach(LONGEST_TRIED, None, limit), []
    moves = _Moves(checkpoint, function)
    read = LONGEST_TRIED
    for length in _lengths(limit):
        is_moved = moves(length)
        if is_moved is None:
            return Reach(LONGEST_TRIED, read if read > LONGEST_TRIED else None, limit), [_refused(length, limit, moves)]
        if not is_moved:
            cut = _closed_in(read, length, moves)
            return Reach(LONGEST_TRIED, cut, limit), [_cut(cut, limit)]
        read = length
    return Reach(LONGEST_TRIED, limit, limit), list(_beyond(checkpoint, function, limit, moves))


def _lengths(limit: int) -> Iterator[int]:
    length = 2 * LONGEST_TRIED
    while length < limit:
        yield length
        length *= 2
    yield limit


class _Moves:
    """Whether the last part of a text of so many tokens moves its vector; None if the text has none."""

    def __init__(self, checkpoint: Checkpoint, function: EmbeddingFunction) -> None:
        self.checkpoint, self.function = checkpoint, function
        self.refusal = ""
        self._known: dict[int, int] = {}

    def __call__(self, tokens: int) -> bool | None:
        words = text_of(self.checkpoint, tokens, known=self._known).split(" ")
        return self.of_tail(words, max(1, len(words) // TAIL))

    def of_tail(self, words: Sequence[str], tail: int) -> bool | None:
        """The same of a text's last words."""
        text = " ".join(words)
        other = " ".join([*words[:-tail], *(OTHER[place % len(OTHER)] for place in range(tail))])
        try:
            answers = self.function.encode([text, other, text], most=1)
        except EmbauditError as error:
            self.refusal = error.happened.rstrip(".")
            return None
        if answers.failures or not np.isfinite(answers.vectors).all():
            self.refusal = next(iter(answers.failures.values()), "NaN in its vector")
            return None
        moved, noise = apart(answers.vectors[:1].repeat(2, axis=0), answers.vectors[1:])
        return bool(moved > max(UNMOVED, NOISE * float(np.nan_to_num(noise, nan=1.0))))


def _closed_in(read: int, cut: int, moves: Callable[[int], bool | None]) -> int:
    """About how many tokens are read, of a text of which one length is read to its end and another is not."""
    while cut - read > CLOSE * read:
        middle = (read + cut) // 2
        read, cut = (middle, cut) if moves(middle) else (read, middle)
    # Of the shortest text whose last part does not count, what comes before that part is read.
    return round(cut * (1 - 1 / TAIL))


def _cut(read: int, limit: int) -> Finding:
    return CUT.finding(
        "problem",
        f"It reads about {read:,} tokens of a text, where the checkpoint declares {limit:,}: what comes after them "
        "moves no vector.",
        "The ends of long documents are in no vector, and no search finds them.",
        f"Raise the server's own limit to {limit:,} tokens (max-model-len, max-batch-tokens, num_ctx), or split "
        f"documents at {read:,} tokens.",
        float(read),
    )


def _refused(length: int, limit: int, moves: _Moves) -> Finding:
    return REFUSED.finding(
        "problem",
        f"A text of {length:,} tokens gets no vector, where the checkpoint declares {limit:,}: {moves.refusal}.",
        "Documents of that length cannot be stored.",
        "Raise the server's own limit, or split documents before they are sent.",
        float(length),
    )


def _beyond(checkpoint: Checkpoint, function: EmbeddingFunction, limit: int, moves: _Moves) -> Iterator[Finding]:
    """What is beyond the declared limit should count for nothing; what is refused there is said by many servers."""
    words = text_of(checkpoint, limit, known={}).split(" ")
    tail = max(8, len(words) // 64)
    # As many words again as are exchanged, so that none of these is within the limit.
    longer = [*words, *(OTHER[(place + 3) % len(OTHER)] for place in range(2 * tail))]
    if checkpoint.tokenizer.truncation_side == "left" or not moves.of_tail(longer, tail):
        return
    yield CUT.finding(
        "look",
        f"It reads more of a text than the {limit:,} tokens that the checkpoint declares (as of "
        f"{quoted(' '.join(longer[:6]))}).",
        "What a model was not trained to read may spoil a vector.",
        f"Set the server's limit to {limit:,} tokens, or split documents before they are sent.",
        float(limit),
    )
