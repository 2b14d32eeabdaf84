"""Rows that crowd: which stand among the first results of many queries that have nothing to do with each other?

Whoever puts a row into a store can optimise its text, by the gradients of the function itself, until it is near the
middle of many queries (HotFlip, Ebrahimi et al. 2018; Zhong et al. 2023, arXiv 2310.19156). Navigation and placeholders
may stand there by themselves. What is measured is the same for both, and nothing is said of what somebody meant.

Sentinels q are a few words each out of S rows with different texts, asked as queries. Of n rows with different vectors,

    N(x) = number of sentinels that have row x among their k nearest,  k = n/100, but 1 at least and 10 at most
    m(x) = mean cosine of x to the sentinels;  z(x) = (m(x) − median m) / (1.4826 · median |m − median m|)

leaving out each sentinel's own row. N is the k-occurrence of Radovanović et al. 2010 (JMLR 11), asked by sentinels as
in Pathak and Sharma 2026 (arXiv 2606.19692); z is HubScan's robust score (arXiv 2602.22427), of m and not of N, whose
median absolute deviation is 0 in any store of many rows. Row x is worth a look if N/S ≥ c = max(3 %, 3k/n) and z ≥ 3,
and a problem if the lower end of the 95 % interval of N/S is above c and z ≥ 4.

A row that is near its own subject stands in many lists of that subject, and m tells it from one that is near all.
Made-up questions on other subjects would not do: a row near the middle of what a store is asked is not near them
(benchmarks/README.md). It costs S short texts, and S·n·D multiplications while rows are read anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

import numpy as np

from embaudit.declared.rule import Finding, Level, Rule, interval
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.kept import cost_line
from embaudit.questions.vectors.forms import unit_float32
from embaudit.questions.vectors.neighbours import NEAREST, NearestRows
from embaudit.questions.vectors.profile import Profile, SomeRows, joined, profile_of, rows_of
from embaudit.statistics import exact_share
from embaudit.stores.store import Store
from embaudit.words.errors import EmbauditError
from embaudit.words.sentences import cut, visible

SENTINELS, FEWEST_SENTINELS = 300, 50
# Words of a sentinel, and characters where a text has no spaces.
WORDS, CHARACTERS = (4, 10), (8, 20)
# Rows for each place among the first.
ROWS_A_PLACE = 100
CROWDED, TIMES_CHANCE = 0.03, 3
# Robust standard deviations nearer to all sentinels than the median row: worth a look, and a problem.
NEAR, NEARER = 3.0, 4.0
# Standard deviations of a normal distribution in its median absolute deviation.
DEVIATION = 1.4826
# Rows that a sentence names, and characters of a text.
NAMED, SHOWN = 3, 80
CROWDING = Rule(
    "crowding_rows",
    "share of unrelated queries that have one row among their first ten",
    look=CROWDED,
    problem=CROWDED,
    is_share=True,
    look_if=f"from {{look}} on, and the row is {NEAR:g} robust deviations nearer to all of them than the median row",
    problem_if=f"interval above {{problem}}, and {NEARER:g} deviations",
    reason="it takes an answer's place whatever is asked; a row that stands in many lists of its own subject is not "
    f"near to all. Below 1 000 rows, among the first n/{ROWS_A_PLACE} of n, and from {TIMES_CHANCE} times chance on; "
    f"told from {FEWEST_SENTINELS} different texts on. `ok` says what the row has that comes up most",
)


class Sentinels(NearestRows):
    """Queries that have nothing to do with each other, and what they find while the rows of an index come by.

    Args:
        queries: (S, D) float32 at unit length.
        own: (S,) number of the row that each one's words are of.
        rows: (n,) ascending numbers of the rows that are looked at: of those with one vector, the first.
    """

    def __init__(self, queries: np.ndarray, own: np.ndarray, rows: np.ndarray) -> None:
        self.first = int(np.clip(len(rows) // ROWS_A_PLACE, 1, NEAREST))
        # One more: what would stand there instead.
        super().__init__(queries, own, self.first + 1)
        self.rows = rows
        self.means = np.full(len(rows), np.nan, dtype=np.float32)

    def add(self, numbers: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The same, without rows that are not looked at."""
        inside = np.isin(numbers, self.rows, assume_unique=True)
        cosines = super().add(numbers[inside], units[inside]) if inside.any() else np.empty((len(self), 0))
        is_asked = np.isfinite(cosines)
        places = np.searchsorted(self.rows, numbers[inside])
        self.means[places] = np.where(is_asked, cosines, 0).sum(axis=0) / is_asked.sum(axis=0).clip(1)
        return cosines


@dataclass(frozen=True)
class Hub:
    """A row that crowds.

    Attributes:
        number: of the row, from 0; of several with its vector, the first.
        met: sentinels that have it among their first.
        deviations: z, how far it is nearer to all of them than the median row.
        displaced: different rows that would stand among these sentinels' first without it.
        copies: rows with its vector.
        level: look or problem.
        text, id: as stored; None where there is none, or they were not fetched.
    """

    number: int
    met: int
    deviations: float
    displaced: int
    copies: int
    level: Level
    text: str | None = None
    id: object = None

    @property
    def label(self) -> str:
        return f"row {self.number + 1:,}" if self.id is None else visible(self.id)

    @property
    def excerpt(self) -> str:
        return "" if self.text is None else cut(" ".join(self.text.split()), SHOWN)


@dataclass(frozen=True)
class Crowding:
    """What sentinels find.

    Attributes:
        sentinels, first: how many asked, and for how many rows each.
        rows: with different vectors.
        most: the row that most have among their first.
        crowding: those that crowd: problems first, and of these the most frequent.
        numbers: of all rows with the vector of one that is a problem, ascending.
    """

    sentinels: int
    first: int
    rows: int
    most: Hub
    crowding: tuple[Hub, ...]
    numbers: np.ndarray

    @property
    def problems(self) -> list[Hub]:
        return [hub for hub in self.crowding if hub.level == "problem"]

    @property
    def chance(self) -> float:
        """The share of sentinels that would have a row among their first by chance."""
        return self.first / self.rows

    def share(self, row: Hub) -> tuple[float, float, float]:
        return (row.met / self.sentinels, *exact_share(row.met, self.sentinels))

    def counted(self, hub: Hub) -> str:
        share, low, high = self.share(hub)
        of = f"{hub.met:,} of {self.sentinels:,}, {share:.0%}{interval(low, high, '.0%')} (95 % interval)"
        return f"{of} where chance gives {self.chance:.1%}"

    @property
    def where(self) -> str:
        """As in "is among the first 10 for"."""
        return "first" if self.first == 1 else f"among the first {self.first}"

    def named(self, index: Store, sample: SomeRows) -> Crowding:
        """The same with the ids and texts of rows: those of a sample, or read again if any that crowds is not in it."""
        wanted = np.array([hub.number for hub in self.crowding], dtype=np.int64)
        rows = sample
        if not np.isin(wanted, sample.numbers).all():
            D = sample.vectors.shape[1]
            rows = joined([sample, *(rows_of(batch, wanted, D) for batch in index.batches())], D)
        place = {int(number): one for one, number in enumerate(rows.numbers)}

        def named(hub: Hub) -> Hub:
            at = place.get(hub.number)
            return hub if at is None else replace(hub, text=rows.texts[at], id=rows.ids[at])

        return replace(self, most=named(self.most), crowding=tuple(map(named, self.crowding)))

    def findings(self) -> Iterator[Finding]:
        if not self.crowding:
            share, low, high = self.share(self.most)
            yield CROWDING.finding(
                "ok",
                f"No row crowds: the one that comes up most is {self.where} for {self.most.met:,} of "
                f"{self.sentinels:,} queries on what other rows say, {share:.1%}{interval(low, high, '.1%')} (95 % "
                "interval).",
                value=share,
                low=low,
                high=high,
            )
            return
        one, *others = self.problems or self.crowding
        share, low, high = self.share(one)
        text = f" (“{one.excerpt}”)" if one.excerpt else ""
        more = "".join(f", {hub.label} for {hub.met:,}" for hub in others[: NAMED - 1])
        left = len(others) - (NAMED - 1)
        many = "1 row is" if not others else f"{1 + len(others):,} rows are"
        typed = "ID" if one.id is None else quote(visible(one.id))
        yield CROWDING.finding(
            one.level,
            f"{many} {self.where} for many unrelated queries: {one.label}{text} for {self.counted(one)}{more}"
            f"{f' and {left:,} more' if left > 0 else ''}.",
            "What is near to whatever is asked takes the places of answers: navigation and placeholders do so, and so "
            "does a text that was made to.",
            f"Read it and find out who added it; embaudit why STORE FUNCTION --query QUERY --unexpected {typed} says "
            "why it comes up in a search. Delete what should not be there.",
            share,
            low,
            high,
        )

    def most_often(self, chosen: np.ndarray) -> str:
        """A sentence on the one of (n,) chosen rows that comes up most; empty if it only has the vector of another."""
        hub = next((hub for hub in self.problems if chosen[hub.number]), None)
        if hub is None:
            return ""
        return f" Most often {hub.label}: {self.where} for {self.counted(hub)}."

    def rows_of_table(self) -> Iterator[dict[str, Any]]:
        """Rows of ``CrowdingRow``: those that crowd."""
        for row in self.crowding:
            share, low, high = self.share(row)
            yield {
                "row": row.label,
                "met": row.met,
                "sentinels": self.sentinels,
                "share": share,
                "share_low": low,
                "share_high": high,
                "first": self.first,
                "chance": self.chance,
                "deviations": row.deviations,
                "displaced": row.displaced,
                "copies": row.copies,
                "level": row.level,
                "text": row.excerpt,
            }

    def as_json(self) -> dict[str, Any]:
        return {
            "sentinels": self.sentinels,
            "first": self.first,
            "different_rows": self.rows,
            "most": {"row": self.most.label, "met": self.most.met},
            "rows": list(self.rows_of_table()),
        }


def crowding_in(index: Store, function: EmbeddingFunction) -> Crowding | None:
    """What sentinels find in an index that is read twice for that; None as in ``sentinels_for``."""
    profile = profile_of(index, 0)
    sentinels = sentinels_for(function, profile) if profile.dimensions else None
    if sentinels is None:
        return None
    for batch in index.batches():
        if profile.dimension in batch.vectors:
            places, vectors = batch.vectors[profile.dimension]
            with np.errstate(all="ignore"):
                sentinels.add(batch.start + places, unit_float32(vectors))
    return crowding_of(sentinels, profile).named(index, profile.sample)


def sentinels_for(
    function: EmbeddingFunction, profile: Profile, say: Callable[[str], None] = lambda line: None
) -> Sentinels | None:
    """Queries on what the rows of an index say, a few words out of each.

    None if there are too few rows with texts, their vectors are codes or longer than the function's, or it has none of
    queries.
    """
    sample = profile.sample.with_text
    if profile.sample.vectors.dtype == np.uint8 or len(sample) < FEWEST_SENTINELS:
        return None
    rows = first_of_each(profile)
    texts, places = fragments(sample)
    if min(len(texts), len(rows)) < FEWEST_SENTINELS:
        return None
    if function.checkpoint is None:
        say(cost_line(function, texts, role="query"))
    try:
        vectors = function.encode(texts, "query").vectors[:, : profile.dimension]
    except EmbauditError:
        # What has no vectors of queries has no search that a row could crowd; what gives none at all is said of rows.
        return None
    is_told = np.isfinite(vectors).all(axis=1) & (vectors != 0).any(axis=1)
    if vectors.shape[1] < profile.dimension or is_told.sum() < FEWEST_SENTINELS:
        return None
    # Of a text that is stored several times, the first stands for all.
    hashes = profile.hashes[np.searchsorted(profile.numbers, sample.numbers[places])]
    first = dict(zip(profile.hashes[np.searchsorted(profile.numbers, rows)].tolist(), rows.tolist(), strict=True))
    own = np.array([first.get(one, -1) for one in hashes.tolist()])
    return Sentinels(unit_float32(vectors[is_told]), own[is_told], rows)


def first_of_each(profile: Profile) -> np.ndarray:
    """(n,) ascending numbers of the rows that point somewhere: of those with one vector, the first."""
    usable = np.flatnonzero(profile.usable)
    _, first = np.unique(profile.hashes[usable], return_index=True)
    return np.sort(profile.numbers[usable[first]])


def fragments(sample: SomeRows) -> tuple[list[str], list[int]]:
    """A few words from anywhere in each of the first rows that have different texts, and the rows' places."""
    generator = np.random.default_rng(0)
    found: dict[str, int] = {}
    seen: set[str] = set()
    for place, text in enumerate(sample.texts):
        plain = " ".join((text or "").split())
        if not plain or plain in seen:
            continue
        seen.add(plain)
        words = plain.split(" ")
        has_words = len(words) >= WORDS[0]
        parts, (least, most), joint = (words, WORDS, " ") if has_words else (list(plain), CHARACTERS, "")
        length = int(generator.integers(least, most + 1))
        start = int(generator.integers(0, max(1, len(parts) - length + 1)))
        found.setdefault(joint.join(parts[start : start + length]), place)
        if len(found) == SENTINELS:
            break
    return list(found), list(found.values())


def crowding_of(sentinels: Sentinels, profile: Profile) -> Crowding:
    """What sentinels found once all rows of an index came by."""
    S, n = len(sentinels), len(sentinels.rows)
    met = sentinels.counts(sentinels.rows, sentinels.first)
    means = sentinels.means.astype(np.float64)
    middle = np.nanmedian(means)
    spread = DEVIATION * float(np.nanmedian(np.abs(means - middle)))
    deviations = (means - middle) / spread if spread > 0 else np.zeros(n)
    least = max(CROWDED, TIMES_CHANCE * sentinels.first / n)
    order = np.argsort(-met, kind="stable")
    chosen = [int(one) for one in order[met[order] >= least * S] if deviations[one] >= NEAR]

    def level(place: int) -> Level:
        is_problem = deviations[place] >= NEARER and exact_share(int(met[place]), S)[0] > least
        return "problem" if is_problem else "look"

    hashes = profile.hashes[np.searchsorted(profile.numbers, sentinels.rows)]

    def row(place: int) -> Hub:
        found = sentinels.numbers
        is_met = (found[:, : sentinels.first] == sentinels.rows[place]).any(axis=1)
        instead = found[is_met, sentinels.first]
        return Hub(
            number=int(sentinels.rows[place]),
            met=int(met[place]),
            deviations=float(deviations[place]),
            displaced=len(np.unique(instead[instead >= 0])),
            copies=int((profile.hashes == hashes[place]).sum()),
            level=level(place),
        )

    # Problems first; in each, those that come up most.
    hubs = sorted(map(row, chosen), key=lambda hub: hub.level != "problem")
    wrong = [place for place in chosen if level(place) == "problem"]
    numbers = profile.numbers[np.isin(profile.hashes, hashes[wrong])]
    return Crowding(S, sentinels.first, n, row(int(order[0])), tuple(hubs), numbers)
