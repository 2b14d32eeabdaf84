"""Scores every arm in every length bin, and answers whether the τ chosen on one half does better on the other.

Arms beside temperatures are their alternatives: averaging over chunks of a document, whitening, subtracting the mean.

A τ per layer or per head, too, is searched on the choose half and evaluated on the report half. The paper divides all
logits by one τ (arXiv 2410.24200, §5). To find out whether parts of a model prefer different values, coordinate descent
starts from the best single τ: for each part, the next lower and higher τ of the grid are tried, and kept if the score
on the choose half improves. Each trial encodes all texts, so the descent is greedy and short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from embaudit.corpora.downstream import Task, Vectors
from embaudit.measures.tempscale import ArmName, ArmScore, Choice, Part, Recommendation, SearchedTask, Split
from embaudit.measures.tempscale import Task as TaskName
from embaudit.remedies.mitigation import Centring, Whitening
from embaudit.statistics import MIN_UNITS
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate


def pieces_of(ids: Sequence[int], size: int) -> list[list[int]]:
    """Consecutive chunks of at most ``size`` tokens; a text without tokens is one empty chunk."""
    return [list(ids[start : start + size]) for start in range(0, max(len(ids), 1), size)]


def average_pieces(vectors: np.ndarray, owners: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w v / Σ w over the chunks of each text, (texts, d) float64.

    Args:
        vectors: (pieces, d), as served.
        owners: (pieces,) index of each chunk's text; every text has a chunk.
        weights: (pieces,) number of tokens of each chunk, so that a short last one has little weight.
    """
    sums = np.zeros((int(owners.max()) + 1, vectors.shape[1]))
    np.add.at(sums, owners, vectors.astype(np.float64) * weights[:, None])
    return sums / np.bincount(owners, weights=weights)[:, None]


def fitted_baselines(vectors: Vectors, fitted_on: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Whitened and centred vectors of every side, fitted on the masked texts only; omitted if they cannot be fitted."""
    fitted = np.concatenate([vectors[side][mask] for side, mask in fitted_on.items()])
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, kind in (("whitening", Whitening), ("centring", Centring)):
        try:
            transform = kind(fitted)
        except NotMeasurable:
            continue
        found[name] = {side: transform(rows) for side, rows in vectors.items()}
    return found


# Lower edges of the length bins in tokens; the last is open. The bins up to 500 are the paper's.
BIN_STARTS = (0, 100, 200, 300, 400, 500, 1_000, 2_000, 4_000, 8_000, 16_000)
ALL_LENGTHS = 0


class Arm(NamedTuple):
    """One way to obtain vectors; ``none`` is the unmodified checkpoint."""

    name: ArmName
    tau: float


NONE = Arm("none", 1.0)


@dataclass(frozen=True)
class Bin:
    """[low, high) tokens; number 0 is unbounded and includes every length."""

    number: int
    low: int | None
    high: int | None
    holds: np.ndarray


def compare(
    task: Task,
    by_tau: Mapping[float, Vectors],
    chunk_average: Vectors | None,
    *,
    resamples: int,
    seed: int,
    unsupported: str | None = None,
) -> tuple[list[ArmScore], list[Choice]]:
    """Score every arm, overall and by length bin, and choose τ for each.

    Args:
        by_tau: vectors at each temperature, including τ = 1, the unmodified checkpoint.
        chunk_average: vectors of documents averaged over chunks.
        unsupported: why this checkpoint does not support a temperature; the baselines are still compared.
    """
    arms: dict[Arm, np.ndarray] = {NONE: task.outcomes(by_tau[1.0])}
    for tau in sorted((tau for tau in by_tau if tau != 1), reverse=True):
        arms[Arm("temperature", tau)] = task.outcomes(by_tau[tau])
    if chunk_average is not None:
        arms[Arm("chunk_average", 1.0)] = task.outcomes(chunk_average)
    for name, vectors in fitted_baselines(by_tau[1.0], task.fitted_on).items():
        arms[Arm(name, 1.0)] = task.outcomes(vectors)  # type: ignore[arg-type]
    rows: list[ArmScore] = []
    choices: list[Choice] = []
    both: tuple[Split, ...] = ("choose", "report")
    for one in bins_of(task.items.lengths):
        found = {
            (arm, split): _row(task, arm, outcomes, arms[NONE], one, split, resamples, seed)
            for arm, outcomes in arms.items()
            # Baselines are fitted on the choose half, so they are not scored there.
            for split in (both if arm.name in ("none", "temperature") else both[1:])
        }
        rows += found.values()
        choices.append(_choice(found, unsupported))
    return rows, choices


def bins_of(lengths: np.ndarray) -> Iterator[Bin]:
    """Bin 0 with all lengths, then every nonempty bin."""
    yield Bin(ALL_LENGTHS, None, None, np.ones(len(lengths), dtype=bool))
    places = np.searchsorted(BIN_STARTS, lengths, side="right")
    for number, low in enumerate(BIN_STARTS, start=1):
        high = BIN_STARTS[number] if number < len(BIN_STARTS) else None
        if (places == number).any():
            yield Bin(number, low, high, places == number)


def _row(
    task: Task, arm: Arm, after: np.ndarray, before: np.ndarray, one: Bin, split: Split, resamples: int, seed: int
) -> ArmScore:
    chosen = one.holds & (task.items.is_report == (split == "report"))
    items = int(chosen.sum())
    score = task.score(after, chosen) if items > 1 else None
    untouched = task.score(before, chosen) if items > 1 else None
    is_compared = arm != NONE and score is not None and untouched is not None
    difference = score - untouched if is_compared and score is not None and untouched is not None else None
    gain = Estimate(difference)
    if is_compared and split == "report":
        gain = Estimate.holding(difference, task.interval(before, after, chosen, resamples, seed))
    return ArmScore(
        task=cast(TaskName, task.name),
        arm=arm.name,
        tau=arm.tau,
        split=split,
        bin=one.number,
        bin_low=one.low,
        bin_high=one.high,
        items=items,
        units=len(np.unique(task.items.units[chosen])),
        score=score,
        difference=difference,
        low=gain.low,
        high=gain.high,
    )


def _choice(found: Mapping[tuple[Arm, Split], ArmScore], unsupported: str | None) -> Choice:
    """Choose the best τ on the choose half (the closest to 1 if tied), and evaluate it on the report half."""
    before = found[NONE, "report"]
    if unsupported is not None:
        return _answer(before, None, "unsupported", unsupported)
    scores = {
        arm: row.score
        for (arm, split), row in found.items()
        if split == "choose" and row.score is not None and arm.name in ("none", "temperature")
    }
    if not scores:
        return _answer(before, None, "no", f"{found[NONE, 'choose'].items} items to choose on are too few for a score")
    best = max(scores, key=lambda arm: (scores[arm], -abs(arm.tau - 1)))
    if best == NONE:
        return _answer(before, before, "no", "no other temperature did better on the half for choosing")
    after = found[best, "report"]
    if after.difference is None:
        return _answer(before, after, "no", f"{after.items} items to report on are too few for a score")
    if after.low is None or after.high is None:
        few = after.units < MIN_UNITS
        why = (
            f"an interval needs {MIN_UNITS} units, but there are {after.units}"
            if few
            else "resamples give no interval: they agree, or miss the difference"
        )
        return _answer(before, after, "no", why)
    if after.low > 0:
        return _answer(before, after, "yes", "the interval of the difference lies above 0")
    below = "lies below 0" if after.high < 0 else "does not lie above 0"
    return _answer(before, after, "no", f"the interval of the difference {below}")


def _answer(before: ArmScore, after: ArmScore | None, recommendation: Recommendation, reason: str) -> Choice:
    return Choice(
        task=before.task,
        bin=before.bin,
        bin_low=before.bin_low,
        bin_high=before.bin_high,
        tau=after.tau if after is not None else None,
        recommendation=recommendation,
        items=before.items,
        units=before.units,
        score_before=before.score,
        score_after=after.score if after is not None else None,
        difference=after.difference if after is not None else None,
        low=after.low if after is not None else None,
        high=after.high if after is not None else None,
        reason=reason,
    )


Taus = tuple[float, ...]
MAX_SWEEPS = 2


class Found(NamedTuple):
    """Result of a descent, with the number of combinations tried."""

    taus: Taus
    trials: int


def descend(start: Taus, grid: Sequence[float], score: Callable[[Taus], float | None]) -> Found:
    """Coordinate descent on a grid, from ``start``; an undefined score is never better.

    Args:
        start: (parts,) values from the grid.
        grid: τ in order.
        score: higher is better.
    """
    asked: dict[Taus, float] = {}

    def worth(taus: Taus) -> float:
        if taus not in asked:
            found = score(taus)
            asked[taus] = float("-inf") if found is None else found
        return asked[taus]

    best = start
    for _ in range(MAX_SWEEPS):
        before = best
        for part in range(len(start)):
            at = grid.index(best[part])
            near = [grid[place] for place in (at - 1, at + 1) if 0 <= place < len(grid)]
            # Ties keep the current value.
            best = max([best, *((*best[:part], tau, *best[part + 1 :]) for tau in near)], key=worth)
        if best == before:
            break
    return Found(best, len(asked))


def report(
    task: Task,
    part: Part,
    tau: float,
    found: Found,
    outcomes: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    resamples: int,
    seed: int,
) -> SearchedTask:
    """Evaluate the result on the held-out half.

    Args:
        tau: the single τ from which the search started.
        outcomes: at τ = 1, at ``tau`` and at ``found.taus``.
    """
    chosen = task.items.is_report
    items = int(chosen.sum())
    before, single, after = (task.score(one, chosen) if items > 1 else None for one in outcomes)

    difference, beyond = (None if after is None or one is None else after - one for one in (before, single))

    def estimate(value: float | None, first: np.ndarray) -> Estimate:
        ends = None if value is None else task.interval(first, outcomes[2], chosen, resamples, seed)
        return Estimate.holding(value, ends)

    gain, excess = estimate(difference, outcomes[0]), estimate(beyond, outcomes[1])
    return SearchedTask(
        task=cast(TaskName, task.name),
        part=part,
        tau=tau,
        taus=",".join(f"{one:g}" for one in found.taus),
        trials=found.trials,
        recommendation="yes" if gain.is_above_zero and excess.is_above_zero else "no",
        items=items,
        units=len(np.unique(task.items.units[chosen])),
        score_before=before,
        score_single=single,
        score_after=after,
        difference=difference,
        low=gain.low,
        high=gain.high,
        **excess.columns("beyond"),
    )
