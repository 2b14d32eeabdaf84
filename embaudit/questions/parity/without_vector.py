"""Texts of which one of two functions gives no vector, or one that cannot be used.

Does a function stay the same while it is asked? Texts are asked again, alone; if they have moved, it is told when.

A gateway that changes to another model after eighty requests, or falls back to one at every twelfth, gives other
vectors for whatever is asked then: batches, base64 and long texts would be blamed for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.declared.rule import Finding, Level, Rule
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.questions.parity.compare import HALF, NAMED, ROLES, KindDifference, apart, compare_kind, spread
from embaudit.words.sentences import first_of, quoted

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind


# A kind, and the places of its texts.
Lacking = tuple[KindDifference, list[int]]
# What to do about numbers that cannot be used. Half precision overflows to infinity and NaN, never to zeros.
NOT_FINITE = "Ask for that text in float32: half precision overflows so."
ZEROS = (
    "Look at the vector before a client changes it: zeros come of whole numbers rounded in another range, of base64 "
    "that is read as something else, and of a static model that knows no word of the text."
)
# Many servers refuse these; nobody stores a vector of a text with nothing in it.
OFTEN_REFUSED = ("empty", "blank", "lengths", "at the limit", "beyond the limit")
LEAVE_OUT = "Leave such texts out before it is asked."
# Whatever is given in place of a vector of these: a status, None, NaN, zeros.
NOTHING_IN_THEM = ("empty", "blank")
UNUSABLE = Rule(
    "not_finite",
    problem_if="NaN or zeros, of a kind of text other than those",
    reason="no search finds them, and some indexes refuse them",
)
NO_VECTOR = Rule(
    "no_vector",
    look_if="none of texts with nothing in them; a refusal (status 4…) of those that are too long",
    problem_if="none of a text that the other function encodes",
    reason="many servers refuse texts that are empty or too long, and say so",
)
NO_VECTOR_OF_FIRST = Rule(
    "no_vector_of_first",
    look_if=NO_VECTOR.look_if,
    problem_if=NO_VECTOR.problem_if,
    reason="the same of the first function, if it is no checkpoint",
)


def not_finite(kinds: Sequence[KindDifference]) -> Iterator[Finding]:
    """Texts whose vector by the other is NaN or zeros, of kinds of which the first function gives vectors."""
    broken = [(kind, places) for kind in kinds if (places := _broken(kind))]
    zeros = [(kind, some) for kind, places in broken if (some := [one for one in places if kind.is_zero(one)])]
    others = [(kind, some) for kind, places in broken if (some := [one for one in places if not kind.is_zero(one)])]
    for found, what, advice in ((others, "NaN", NOT_FINITE), (zeros, "a vector of zeros", ZEROS)):
        lacking = [one for one in found if one[0].kind not in NOTHING_IN_THEM]
        empty = [one for one in found if one[0].kind in NOTHING_IN_THEM]
        if lacking:
            yield UNUSABLE.finding(
                "problem",
                f"{_which(lacking)} get {what}, {_first(lacking)} first.",
                "No search finds them, and some indexes refuse them.",
                advice,
                _count(lacking),
            )
        if empty:
            sentence = f"{_which(empty)} get {what}, {_first(empty)} first."
            yield NO_VECTOR.finding("look", sentence, "There is nothing in them.", LEAVE_OUT, _count(empty))


def no_vector(kinds: Sequence[KindDifference], known: str) -> Iterator[Finding]:
    """Texts that the other refuses or fails on, and the first function does not.

    Many servers refuse texts that are empty or too long, and say so: that is worth a look.

    Args:
        known: what the first one is: a checkpoint, an endpoint …
    """
    # What is refused anyway is refused as a query, too, and said once.
    said = {kind.texts[place] for kind in kinds if kind.kind not in ROLES for place in kind.failures}
    lacking: dict[Level, list[Lacking]] = {"problem": [], "look": []}
    for kind in kinds:
        places = [place for place in kind.failures if kind.is_known[place]]
        if kind.kind in ROLES:
            places = [place for place in places if kind.texts[place] not in said]
        if places:
            is_refusal = kind.kind in OFTEN_REFUSED and "status 4" in kind.failures[places[0]]
            is_refusal |= kind.kind in NOTHING_IN_THEM
            lacking["look" if is_refusal else "problem"].append((kind, places))
    words = {
        "problem": (f"The {known} gives each of them one.", "Ask for that text alone, and see what is answered."),
        "look": ("Many servers refuse such texts.", LEAVE_OUT),
    }
    for level, some in lacking.items():
        if some:
            kind, places = some[0]
            sentence = f"{_which(some)} get no vector, {_first(some)} first: {kind.failures[places[0]]}."
            yield NO_VECTOR.finding(level, sentence, *words[level], _count(some))


def no_vector_of_first(
    kinds: Sequence[KindDifference], ours: Mapping[str, Answers], theirs: Mapping[str, Answers], name: str
) -> Iterator[Finding]:
    """The same of a first function whose inside is not known: texts of which it gives none and the other one.

    Args:
        name: the first one's.
    """
    turned = [
        compare_kind(kind.kind, kind.texts, other.vectors, own.vectors, own.failures)
        for kind in kinds
        for own, other in ((ours[kind.kind], theirs[kind.kind]),)
    ]
    for found in no_vector(turned, "other"):
        yield replace(found, sentence=f"By {name}, {found.sentence}", name=NO_VECTOR_OF_FIRST.name)


def _broken(kind: KindDifference) -> list[int]:
    """Places of texts whose vector is none, without having failed; empty if the first function has none either."""
    places = [int(place) for place in np.flatnonzero(np.isnan(kind.distances)) if place not in kind.failures]
    return places if kind.is_known[places].any() else []


def _which(lacking: Sequence[Lacking]) -> str:
    names = [f"“{kind.kind}”" for kind, _ in lacking]
    kinds = f"{len(names)} kinds ({first_of(names, NAMED)})" if len(names) > 1 else f"the kind {names[0]}"
    return f"{_count(lacking):,.0f} of {sum(len(kind.texts) for kind, _ in lacking):,} texts of {kinds}"


def _first(lacking: Sequence[Lacking]) -> str:
    kind, places = lacking[0]
    return quoted(kind.texts[places[0]])


def _count(lacking: Sequence[Lacking]) -> float:
    return float(sum(len(places) for _, places in lacking))


# Texts that are asked again at the end, and how often one is asked in a row to see how often it moves.
AT_THE_END, IN_A_ROW = 4, 24
# Of vectors in a row, this share of other ones is another one each time.
EACH_TIME = 0.75
# Of texts before the change, and of those after it, this share has moved, or has not.
CLEAR = 0.9


@dataclass(frozen=True)
class Request:
    """A text that was asked alone.

    Attributes:
        number: of the request, counted from the first one; None if nobody knows.
        row: (D,) its vector.
    """

    number: int | None
    text: str
    row: np.ndarray


def requests_of(
    texts: Mapping[str, Sequence[str]], answers: Mapping[str, Answers], first: int, made: int
) -> list[Request]:
    """What was asked alone, in its order: texts that are asked for as nothing in particular, of which it gave a vector.

    Args:
        first: the number of the first request for these.
        made: requests for all of them; more or fewer than one for each text tell no numbers.
    """
    asked = [
        (text, row)
        for kind in texts
        if kind not in ROLES
        for text, row in zip(texts[kind], answers[kind].vectors, strict=True)
    ]
    is_numbered = made == sum(map(len, texts.values()))
    return [
        Request(first + place if is_numbered else None, text, row)
        for place, (text, row) in enumerate(asked)
        if np.isfinite(row).all() and np.linalg.norm(row) > 0
    ]


class SteadyControl:
    """Asks for texts again, alone, that were asked before.

    Args:
        log: what was asked, in its order.
        rounding: up to where two of its vectors of one text differ by rounding.
    """

    def __init__(
        self, function: EmbeddingFunction, log: Sequence[Request], rounding: float = HALF, role: TextKind = "text"
    ) -> None:
        self.function, self.log, self.role = function, list(log), role
        self.rounding = max(rounding, HALF)

    def again(self, places: Sequence[int]) -> np.ndarray:
        """(n,) 1 − cosine of some texts' vectors now and then; NaN where there is none now."""
        if not len(places):
            return np.zeros(0)
        now = self.function.encode([self.log[place].text for place in places], self.role, most=1).vectors
        then = np.array([self.log[place].row for place in places])
        return apart(now, then) if now.shape == then.shape else np.full(len(places), 2.0)

    def moved(self, texts: Sequence[str] | None = None) -> tuple[float, str] | None:
        """How far the farthest of some texts has moved, and which; None if none has.

        Args:
            texts: by default, some from the whole time.
        """
        places = [place for place, one in enumerate(self.log) if texts is None or one.text in set(texts)]
        if texts is None:
            places = spread(np.array(places), AT_THE_END).tolist()
        distances = self.again(places)
        far = [place for place, distance in zip(places, distances, strict=True) if distance > self.rounding]
        if not far:
            return None
        return float(np.nanmax(distances)), self.log[far[0]].text

    def ask_all_again(self, texts: Sequence[str]) -> Answers:
        """Vectors of texts, each alone; they are part of what was asked from now on."""
        first = self.function.requests
        answers = self.function.encode(texts, self.role, most=1)
        is_numbered = self.function.requests - first == len(texts)
        self.log += [
            Request(first + 1 + place if is_numbered else None, text, row)
            for place, (text, row) in enumerate(zip(texts, answers.vectors, strict=True))
            if np.isfinite(row).all() and np.linalg.norm(row) > 0
        ]
        return answers

    def when(self) -> str:
        """When texts get other vectors, as the end of a sentence."""
        known = self.function.requests
        often = self._in_a_row()
        if often:
            return often
        texts = list(dict.fromkeys(one.text for one in self.log))
        now = dict(zip(texts, self.function.encode(texts, self.role, most=1).vectors, strict=True))
        off = np.array([not _is_near(now[one.text], one.row, self.rounding) for one in self.log])
        if not off.any():
            return "now and then"
        last = self.log[-1].number
        if off.all():
            return "some requests later" if last is None else f"between requests {last:,} and {known:,}"
        # Those before the change have moved, and those after it have not.
        change = min(range(len(off)), key=lambda place: int((~off[:place]).sum() + off[place:].sum()))
        is_step = change and off[:change].mean() >= CLEAR and not off[change:].mean() > 1 - CLEAR
        if not is_step:
            return _one_in(2 * len(off) / int(off.sum()))
        before, after = self.log[change - 1].number, self.log[change].number
        if before is None or after is None:
            return "from some request on"
        return f"from request {after:,} on" if after == before + 1 else f"between requests {before:,} and {after:,}"

    def _in_a_row(self) -> str:
        """What many requests for one text tell: each is another, or one of so many; empty if they are alike."""
        text = min((one.text for one in self.log if one.text.strip()), key=len, default=self.log[0].text)
        rows = list(self.function.encode([text] * IN_A_ROW, self.role, most=1).vectors)
        groups, others = self._groups(rows)
        if groups >= EACH_TIME * len(rows):
            return "each time"
        if len(others) < 2:
            return ""
        gaps = set(np.diff(others).tolist())
        (gap,) = gaps if len(gaps) == 1 else (0,)
        if len(others) == 2 and gap > 1:
            # Twice may be by chance: the third is awaited.
            rows += list(self.function.encode([text] * (others[-1] + gap + 1 - len(rows)), self.role, most=1).vectors)
            others = self._groups(rows)[1]
        if gap > 1 and len(others) > 2 and set(np.diff(others).tolist()) == {gap}:
            return "at every second request" if gap == 2 else f"at every {_ordinal(gap)} request"
        return _one_in(len(rows) / len(others))

    def _groups(self, rows: Sequence[np.ndarray]) -> tuple[int, list[int]]:
        """How many different vectors there are, and the places of all but the most frequent one."""
        groups: list[list[int]] = []
        for place, row in enumerate(rows):
            group = next((one for one in groups if _is_near(rows[one[0]], row, self.rounding)), None)
            if group is None:
                groups.append([place])
            else:
                group.append(place)
        return len(groups), sorted(place for group in sorted(groups, key=len)[:-1] for place in group)


def _is_near(one: np.ndarray, other: np.ndarray, rounding: float) -> bool:
    return bool(one.shape == other.shape and apart(one[None], other[None])[0] <= rounding)


def _one_in(often: float) -> str:
    return f"at about one request in {max(2, round(often))}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def numbered(texts: Sequence[str], rows: np.ndarray) -> Iterator[Request]:
    """Texts that were asked alone, nobody knows when."""
    for text, row in zip(texts, rows, strict=True):
        if np.isfinite(row).all() and np.linalg.norm(row) > 0:
            yield Request(None, text, row)
