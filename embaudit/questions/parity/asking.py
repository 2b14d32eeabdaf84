"""Does a function's vector depend on how it is asked: beside other texts, again, in parallel, in another encoding?

Each text's vector alone is what the others are held against. What padding does is told apart by ``padding``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.embedders.function import LISTS, Answers, EmbeddingFunction
from embaudit.questions.parity.compare import HALF, LEFT, KindDifference, apart, compare_kind, spread
from embaudit.questions.parity.networks import MASK_ADVICE, SO_FAR, padding_cause
from embaudit.questions.parity.without_vector import Request, SteadyControl, numbered

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

# A batch that a server may split by itself is no batch any more.
BATCH = 24
# Of a role, beside what is asked for as nothing in particular.
AGAIN_IN_A_ROLE = 8
PARALLEL = 8
COPIES = 4
AGAIN = "a second time, after other texts"
PARALLEL_ENDS = "others are"
ENCODED = 6
# Texts around an empty one.
BESIDE_NOTHING = 6
# What servers encode in base64 in place of float32 in little-endian order.
OTHER_NUMBERS = {
    "<f8": "float64",
    ">f4": "big-endian float32",
    "<f2": "float16",
    ">f8": "big-endian float64",
}
# What batches are sorted by before they are encoded, and not sorted back.
ORDERS: Mapping[str, Callable[[str], Any]] = {
    "the shortest texts' first": len,
    "the longest texts' first": lambda text: -len(text),
    "in that of the alphabet": str,
}


@dataclass(frozen=True)
class BatchingCheck:
    """The same texts asked in one way and alone.

    Attributes:
        how: as the end of "a text asked …".
        difference: to each text's vector alone.
        cause: what explains a difference, as the end of "it …"; of a text asked again, when it has another vector;
            empty if nothing does.
        rounding: up to where a difference is no more than its precision rounds.
    """

    how: str
    difference: KindDifference
    cause: str = ""
    rounding: float = HALF

    @property
    def is_off(self) -> bool:
        """Whether some text has another vector so than alone, or none."""
        return bool(self.difference.failures) or bool(self.difference.worst > max(self.rounding, HALF))

    @property
    def is_repeatable(self) -> bool:
        """False if this is a text asked again, and its vector is another one."""
        return not self.how.endswith(AGAIN) or not self.difference.worst > HALF

    @property
    def advice(self) -> str:
        """What to do if it gets another vector than alone."""
        if SO_FAR in self.cause:
            return MASK_ADVICE
        if self.how.endswith(AGAIN) and self.cause not in ("", "each time"):
            return (
                "Have every request answered by one model: look for a gateway that changes or falls back to another, "
                "and for servers behind one address that differ. Then run the same command again."
            )
        if self.how.endswith(AGAIN):
            return "Look for dropout, or for servers behind one address that differ."
        if self.how.endswith("base64"):
            return "Have clients ask for floats: encoding_format=float."
        return "Until that is mended, encode each text alone."

    def as_json(self) -> dict[str, object]:
        return {**self.difference.as_json(), "how": self.how, "cause": self.cause}


def ask_otherwise(
    function: EmbeddingFunction,
    checkpoint: Checkpoint | None,
    texts: Sequence[str],
    alone: np.ndarray,
    rounding: float = HALF,
    log: Sequence[Request] = (),
) -> Iterator[BatchingCheck]:
    """Ask for the same texts in other ways; each that makes a difference is tried again, with alone beside it.

    If it is the function that has changed meanwhile, that is said, and no more is asked.

    Args:
        checkpoint: that it serves; None if it is not known: then nothing explains what padding does.
        texts: distinct texts of different lengths that it answered alone.
        alone: (n, D) its vectors of them.
        rounding: up to where two of its vectors of one text differ by rounding (``compare.rounding_of``).
        log: what it was asked alone until now; by default, these texts.
    """
    texts, alone = list(texts[:BATCH]), alone[:BATCH]
    lengths = [len(ids) for ids in checkpoint.tokenize(texts)] if checkpoint else [len(text) for text in texts]

    def held(how: str, places: Sequence[int], answers: Answers) -> BatchingCheck:
        difference = held_to_alone([texts[place] for place in places], alone[list(places)], answers)
        return BatchingCheck(how, difference, rounding=rounding)

    control = SteadyControl(function, log or list(numbered(texts, alone)), rounding)
    back = list(range(len(texts)))[::-1]
    again = held(AGAIN, back, control.ask_all_again([texts[place] for place in back]))
    if not again.is_repeatable:
        yield replace(again, cause=control.when())
        return
    yield again
    groups: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        groups.setdefault(length, []).append(place)
    equal = max(groups.values(), key=len)
    # Copies of one text are a batch of equal length whatever the tokenizer does.
    batch = [*equal, *[equal[0]] * COPIES]
    copies = [texts[place] for place in batch]

    def in_a_batch_of_one_length() -> BatchingCheck:
        found = held("in a batch of equal length", batch, function.encode(copies, most=len(batch)))
        return replace(found, cause=_copies_cause(function, found.difference, [texts[place] for place in equal]))

    # Servers make batches of requests that come together: of texts of mixed length, and of one length.
    together = [*range(len(texts)), *batch]

    def in_parallel() -> BatchingCheck:
        parallel = function.encode([texts[place] for place in together], most=1, at_once=PARALLEL)
        return held(f"while {PARALLEL - 1} others are", together, parallel)

    def beside_nothing() -> BatchingCheck | None:
        return ask_beside_an_empty_text(function, texts, alone, rounding)

    ways: list[Callable[[], BatchingCheck | None]] = [
        lambda: ask_in_a_batch(function, texts, alone, checkpoint, rounding),
        in_a_batch_of_one_length,
        beside_nothing,
        *([in_parallel] if function.takes_many_at_once else []),
        lambda: next(ask_for_base64(function, texts[:ENCODED], alone[:ENCODED], rounding), None),
    ]
    for way in ways:
        found = confirmed(way, control)
        if found is not None:
            yield found
            if not found.is_repeatable:
                return


def confirmed(way: Callable[[], BatchingCheck | None], control: SteadyControl) -> BatchingCheck | None:
    """What comes of asking in some way; if that is a difference, whether it comes again, and not of asking alone.

    What is asked at the same time as others may go wrong once in a while.
    """
    first = way()
    if first is None or not first.is_off:
        return first
    second = way()
    is_there_again = second is not None and second.is_off
    moved = control.moved(first.difference.texts)
    if moved is None and (is_there_again or PARALLEL_ENDS in first.how):
        return first
    difference = first.difference
    if moved is not None:
        difference = replace(difference, distances=np.array([moved[0]]), texts=(moved[1],), failures={})
    return BatchingCheck(AGAIN, difference, control.when(), first.rounding) if difference.worst > HALF else second


def still_the_same(function: EmbeddingFunction, log: Sequence[Request], rounding: float = HALF) -> BatchingCheck | None:
    """Some texts asked alone once more, after all else; None if they have the vectors that they had."""
    if not log:
        return None
    control = SteadyControl(function, log, rounding)
    moved = control.moved()
    if moved is None:
        return None
    nothing = np.full(1, np.nan)
    difference = KindDifference("asking", (moved[1],), np.array([moved[0]]), nothing, np.array([True]), {})
    return BatchingCheck(AGAIN, difference, control.when(), rounding)


def ask_as(
    function: EmbeddingFunction, role: TextKind, texts: Sequence[str], alone: np.ndarray, rounding: float = HALF
) -> Iterator[BatchingCheck]:
    """Ask for texts as queries, or as documents, together and again: many functions have a way of their own for these.

    Args:
        texts: that were asked for so before, each alone.
        alone: (n, D) the vectors of them.
    """
    places = spread(np.flatnonzero(np.isfinite(alone).all(axis=1)), AGAIN_IN_A_ROLE)
    if not len(places):
        return
    some, own = [texts[place] for place in places], alone[places]
    for how, most in (("in a batch", len(some)), (AGAIN, 1)):
        answers = function.encode(some[::-1], role, most=most)
        held = held_to_alone(some[::-1], own[::-1], answers)
        yield BatchingCheck(f"as a {role} {how}", held, rounding=rounding)


def ask_in_a_batch(
    function: EmbeddingFunction,
    texts: Sequence[str],
    alone: np.ndarray,
    checkpoint: Checkpoint | None = None,
    rounding: float = HALF,
) -> BatchingCheck:
    """Ask for texts of mixed length at once.

    Args:
        checkpoint: by which is told what padding does, if it is known.
    """
    mixed = function.encode(texts, most=len(texts))
    held = held_to_alone(texts, alone, mixed)
    cause = _batch_cause(held, checkpoint, mixed.vectors, alone, rounding)
    return BatchingCheck("in a batch of mixed length", held, cause, rounding)


def ask_beside_an_empty_text(
    function: EmbeddingFunction, texts: Sequence[str], alone: np.ndarray, rounding: float = HALF
) -> BatchingCheck | None:
    """Ask for texts with an empty one among them: some leave that out, and all others move up."""
    places = [place for place, text in enumerate(texts) if text.strip()][:BESIDE_NOTHING]
    if len(places) < BESIDE_NOTHING:
        return None
    some, own, middle = [texts[place] for place in places], alone[places], BESIDE_NOTHING // 2
    answers = function.encode([*some[:middle], "", *some[middle:]], most=len(some) + 1)
    kept = [place for place in range(len(answers.vectors)) if place != middle]
    failures = {place - (place > middle): why for place, why in answers.failures.items() if place != middle}
    held = held_to_alone(some, own, Answers(answers.vectors[kept], failures))
    cause = ""
    if held.worst > max(rounding, HALF) and answers.vectors.shape[1] == own.shape[1]:
        moved_up = apart(answers.vectors[middle:-1], own[middle:])
        if np.nan_to_num(moved_up, nan=2.0).max() <= max(rounding, LEFT):
            cause = "leaves out a text with nothing in it, and gives those after it each other's vectors"
    return BatchingCheck("beside an empty text", held, cause, rounding)


def ask_for_base64(
    function: EmbeddingFunction, texts: Sequence[str], alone: np.ndarray, rounding: float = HALF
) -> Iterator[BatchingCheck]:
    """Ask for base64, which OpenAI's client does, if the function knows such a thing."""
    encoded = function.encode_base64(texts)
    if encoded is None:
        return
    # Some servers have no base64, and say so.
    if encoded.failures and set(encoded.failures.values()) == {LISTS}:
        nothing = replace(held_to_alone(texts, alone, encoded), failures={})
        yield BatchingCheck("for base64", nothing, LISTS, rounding)
    elif not all("status 4" in reason for reason in encoded.failures.values()) or not encoded.failures:
        held = held_to_alone(texts, alone, encoded)
        yield BatchingCheck("for base64", held, _encoding_cause(encoded.vectors, alone), rounding)


def held_to_alone(texts: Sequence[str], alone: np.ndarray, answers: Answers) -> KindDifference:
    """The difference to each text's vector alone; a text that has one alone and none so is a failure."""
    given, usual = answers.vectors.shape[1], alone.shape[1]
    failures = dict(answers.failures)
    if given and given != usual:
        failures = dict.fromkeys(range(len(texts)), f"a vector of {given} numbers, where alone it has {usual}")
    elif given:
        without = np.isnan(apart(answers.vectors, alone)) & ~np.isnan(apart(alone, alone))
        failures = dict.fromkeys(np.flatnonzero(without).tolist(), "NaN or a vector of zeros") | failures
    return compare_kind("asking", texts, alone, answers.vectors, failures)


def _encoding_cause(given: np.ndarray, alone: np.ndarray) -> str:
    """Which bytes in base64 would be the vectors that it gives alone, if float32 in little-endian order are not."""
    numbers = given.astype("<f4")
    for kind, name in OTHER_NUMBERS.items():
        if not numbers.size or numbers.nbytes % np.dtype(kind).itemsize:
            continue
        with np.errstate(all="ignore"):
            read = np.frombuffer(numbers.tobytes(), dtype=kind).astype(np.float64).reshape(len(given), -1)
            if read.shape == alone.shape and np.nan_to_num(apart(read, alone), nan=2.0).max() <= LEFT:
                return f"encodes {name} in place of float32"
    return ""


def _batch_cause(
    held: KindDifference, checkpoint: Checkpoint | None, batched: np.ndarray, alone: np.ndarray, rounding: float
) -> str:
    """What explains a difference in a batch: rows of other texts, or padding that is read; empty if neither does.

    What rounding may do needs no other cause, and a text's own vector is its own if rounding may have moved it so far:
    another text's may be as near, or be the same one.
    """
    if not held.worst > rounding:
        return ""
    texts = held.texts
    distances = np.nan_to_num([apart(np.broadcast_to(row, alone.shape), alone) for row in batched], nan=4.0)
    is_near = distances <= max(LEFT, rounding)
    if is_near.any(axis=1).all() and not is_near.diagonal().all():
        if not _is_an_order(is_near):
            return "gives texts of a batch the vectors of others"
        return f"gives the vectors of a batch in another order{_sorted_by(texts, is_near)}"
    return (padding_cause(checkpoint, held, batched, max(LEFT, rounding)) if checkpoint else None) or ""


def _sorted_by(texts: Sequence[str], is_near: np.ndarray) -> str:
    """What the texts must have been sorted by, as the end of a sentence; empty if by nothing that is known."""
    rows = range(len(texts))
    for said, key in ORDERS.items():
        keys = [key(text) for text in texts]
        if is_near[rows, sorted(rows, key=keys.__getitem__)].all():
            return f", {said}"
    return ""


def _copies_cause(function: EmbeddingFunction, held: KindDifference, once: Sequence[str]) -> str:
    """Whether a batch fails since a text is in it several times."""
    if len(held.failures) < len(held.texts) or function.encode(once, most=len(once)).failures:
        return ""
    return "leaves out texts that a batch has had already"


def _is_an_order(is_near: np.ndarray) -> bool:
    """Whether each row of a batch can be given a text whose vector it has, every text once."""
    from scipy.optimize import linear_sum_assignment

    return bool(is_near[linear_sum_assignment(is_near, maximize=True)].all())
