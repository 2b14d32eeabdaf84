"""Asks for many texts in parts: what fails on some texts is halved until they are found, and stops nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from embaudit.embedders.function import Answers
from embaudit.words.errors import EmbauditError

# So many requests without one vector, from the first on: it is not about the texts.
GONE = 5
# Is asked for then, before a function is given up: the first texts may all be hard ones.
PLAIN = "The museum opens at nine."


class Unanswered(Exception):
    """One request gave nothing that can be used; the message says why."""

    @property
    def may_be_one_text(self) -> bool:
        """Whether fewer texts may get vectors. False of a wrong count: nobody knows which vector is of which text."""
        return True


# (n,) vectors of one request's texts, in their order; raises ``Unanswered``.
Ask = Callable[[list[str]], Sequence[np.ndarray]]


def encode_in_parts(
    ask: Ask,
    texts: Sequence[str],
    most: int,
    at_once: int,
    *,
    by_length: bool = False,
    dimension: int | None,
    gone: Callable[[Unanswered], EmbauditError],
    halved: Callable[[Unanswered, int], None] = lambda failed, count: None,
) -> Answers:
    """Vectors of texts, asked for in requests of at most ``most`` texts, ``at_once`` of them at a time.

    Args:
        by_length: whether texts of about one length are asked for together.
        dimension: of earlier vectors; what has another number is a failure. By default, what most texts have.
        gone: the error if nothing is answered from the first request on.
        halved: is told each request that is asked again in halves, and of how many texts it was.
    """
    places = sorted(range(len(texts)), key=lambda place: len(texts[place])) if by_length else list(range(len(texts)))
    parts = [places[start : start + most] for start in range(0, len(places), most)]
    asking = _Asking(ask, texts, gone, halved)
    rows: dict[int, np.ndarray] = {}
    failures: dict[int, str] = {}
    answered: Iterable[tuple[dict[int, np.ndarray], dict[int, str]]]
    if at_once == 1:
        # In the caller's own thread, which what is asked may insist on.
        answered = [asking.part(part) for part in parts]
    else:
        with ThreadPoolExecutor(at_once) as pool:
            try:
                answered = list(pool.map(asking.part, parts))
            except BaseException:
                # Otherwise all the others would be asked before the error is seen.
                pool.shutdown(cancel_futures=True)
                raise
    for of_part, failed in answered:
        rows |= of_part
        failures |= failed
    widths = {len(row) for row in rows.values()}
    usual = dimension or max(widths, key=lambda width: sum(len(row) == width for row in rows.values()), default=0)
    vectors = np.full((len(texts), usual), np.nan)
    for place, row in rows.items():
        if len(row) == usual:
            vectors[place] = row
        else:
            failures[place] = f"a vector of {len(row)} numbers, where others have {usual}"
    return Answers(vectors, failures)


class _Asking:
    """Asks for parts, and counts how many fail before the first vector."""

    def __init__(
        self,
        ask: Ask,
        texts: Sequence[str],
        gone: Callable[[Unanswered], EmbauditError],
        halved: Callable[[Unanswered, int], None],
    ) -> None:
        self.ask, self.texts, self.gone, self.halved = ask, texts, gone, halved
        self.silent = 0
        self.has_vectors = False

    def part(self, places: list[int]) -> tuple[dict[int, np.ndarray], dict[int, str]]:
        """Rows and failures of one request, or of its halves."""
        try:
            vectors = self.ask([self.texts[place] for place in places])
        except Unanswered as failed:
            if len(places) == 1 or not failed.may_be_one_text:
                self._count(failed)
                return {}, dict.fromkeys(places, str(failed))
            self.halved(failed, len(places))
            middle = len(places) // 2
            first, second = (self.part(half) for half in (places[:middle], places[middle:]))
            return first[0] | second[0], first[1] | second[1]
        self.has_vectors = True
        return dict(zip(places, vectors, strict=True)), {}

    def _count(self, failed: Unanswered) -> None:
        self.silent += 1
        if self.has_vectors or self.silent < GONE:
            return
        try:
            self.ask([PLAIN])
        except Unanswered:
            raise self.gone(failed) from failed
        self.has_vectors = True
