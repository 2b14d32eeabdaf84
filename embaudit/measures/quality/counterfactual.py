"""Finding: would another reading of the checkpoint do better than the declared one?

Data sets are tests of one question, so an alternative is judged by its mean gain over them, with Holm's correction over
all alternatives; and it must win on each of at least two data sets to be a problem. Neighbours are close (the first
token of a mean-trained model is almost as good as its mean), so being almost as good is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from embaudit.declared.rule import Finding, Level, Rule, number
from embaudit.measures.quality.alternatives import Alternative
from embaudit.measures.quality.material import MORE
from embaudit.measures.quality.scores import ResampledScore
from embaudit.words.estimate import Estimate, shown, with_interval

LEVEL = 0.05
# What an alternative must gain on average, and on each data set.
WIN, SMALLEST = 0.03, 0.01
# Differences between poolings are of this size; without the power to see it, nothing can be said.
POWERLESS = 0.1
BETTER = Rule(
    "better_{group}",
    "gain of another reading (pooling, similarity, dimensions, case, special tokens, prompts, length) over the "
    "declared one",
    look=WIN,
    look_if="at least {look} on average or on one data set, interval above 0 after Holm's correction",
    problem_if=f"the same on average, and a clear gain of at least {number(SMALLEST)} on each of at least two data "
    "sets",
    reason="neighbours are close: being almost as good is no evidence. Names the likely file",
)
AS_DECLARED = Rule(
    "as_declared",
    "the same, if none wins",
    reason=f"`ok`: says which difference would have been found; `not measured` if only one above {number(POWERLESS)}, "
    "if the tokenizer is broken, or if no reading is better than the words",
)


@dataclass(frozen=True)
class Tested:
    """An alternative with Holm's verdicts.

    Attributes:
        mean: the mean gain over data sets, with its interval at the level at which Holm tests it.
        wins_on_average: whether that interval is above 0.
        wins_on: the data set on which the gain is clear by itself, after Holm's correction over alternatives and data
            sets; None if there is none.
    """

    alternative: Alternative
    mean: Estimate
    wins_on_average: bool
    wins_on: str | None

    @property
    def level(self) -> Level:
        gains = [gain.estimate() for gain in self.alternative.gains.values()]
        wins = self.wins_on_average and (self.mean.value or 0.0) >= WIN
        each = all((gain.low or 0.0) > 0 and (gain.value or 0.0) >= SMALLEST for gain in gains)
        if wins and len(gains) > 1 and each:
            return "problem"
        if wins:
            return "look"
        # Winning here and losing more there is what data sets do, not what a wrong declaration does.
        alone = self.wins_on is not None and self.alternative.gains[self.wins_on].value >= WIN
        return "look" if alone and (self.mean.value or 0.0) > 0 else "ok"


def tests(alternatives: Sequence[Alternative]) -> list[Tested]:
    """Which alternatives win on the average of their data sets, or on one."""
    means = [mean_gain(list(one.gains.values())) for one in alternatives]
    of_means = holm([_p_of_winning(mean) for mean in means])
    clearest = [min(one.gains, key=lambda name: _p_of_winning(one.gains[name])) for one in alternatives]
    of_any = holm(
        [
            min(_p_of_winning(one.gains[name]) * len(one.gains), 1.0)
            for one, name in zip(alternatives, clearest, strict=True)
        ]
    )
    return [
        Tested(one, mean.estimate(-float(ndtri(level / 2))), wins, name if wins_on_one else None)
        for one, mean, (wins, level), name, (wins_on_one, _) in zip(
            alternatives, means, of_means, clearest, of_any, strict=True
        )
    ]


def mean_gain(gains: Sequence[ResampledScore]) -> ResampledScore:
    """The mean over data sets, which are resampled independently."""
    # Data sets of one size have the same draws: reversing every second one keeps them apart.
    return ResampledScore(
        float(np.mean([gain.value for gain in gains])),
        np.mean([gain.resampled[:: 1 if place % 2 else -1] for place, gain in enumerate(gains)], axis=0)
        if all(len(gain.resampled) for gain in gains)
        else np.empty(0),
    )


def holm(p_values: Sequence[float]) -> list[tuple[bool, float]]:
    """Holm's step-down test (1979): whether each hypothesis is rejected, and the level it was compared with.

    The k-th smallest p of m is compared with .05 / (m − k + 1), until one is larger.
    """
    found = [(False, LEVEL)] * len(p_values)
    is_rejecting = True
    for done, place in enumerate(np.argsort(p_values, kind="stable")):
        level = LEVEL / (len(p_values) - done)
        is_rejecting = is_rejecting and p_values[place] <= level
        found[place] = is_rejecting, level
    return found


def _p_of_winning(gain: ResampledScore) -> float:
    """Two-sided, so that p ≤ .05 if and only if a gain's 95 % interval is above 0; 1 for a loss."""
    return gain.p_value if gain.value > 0 else 1.0


def counterfactual_findings(alternatives: Sequence[Alternative]) -> list[Finding]:
    """One finding per group of alternatives of which one wins: the best of them; else one for all."""
    tested = tests(alternatives)
    winners: dict[str, Tested] = {}
    for one in tested:
        group = one.alternative.group
        best = winners.get(group)
        if one.level != "ok" and (best is None or _order(one) > _order(best)):
            winners[group] = one
    found = [_of_winner(one) for one in winners.values()]
    return sorted(found, key=lambda one: one.level != "problem") or [_none_wins(tested)]


def not_after_tokenizer() -> list[Finding]:
    """With other ids than in training, every comparison misleads."""
    sentence = "Other poolings, prompts, cases and limits were not compared, because the tokenizer is broken."
    meaning = "With wrong ids, every reading is wrong."
    return [AS_DECLARED.finding("not measured", sentence, meaning, "Repair it first.")]


def not_without_a_network() -> list[Finding]:
    """With weights that find nothing in a text, which reading comes out best is chance."""
    sentence = "Other poolings, prompts, cases and limits were not compared: none makes the network better than words."
    return [AS_DECLARED.finding("not measured", sentence, advice="Mend the weights first.")]


def _order(tested: Tested) -> tuple[bool, float]:
    return tested.level == "problem", tested.mean.value or 0.0


def _of_winner(tested: Tested) -> Finding:
    one, is_clear = tested.alternative, tested.level == "problem"
    by_data = ", ".join(f"{with_interval(gain.estimate(), signed=True)} on {name}" for name, gain in one.gains.items())
    # By the level at which it was tested, which is stricter than that of each data set alone.
    mean = with_interval(tested.mean, signed=len(one.gains) == 1)
    by = f"by {mean} on {next(iter(one.gains))}" if len(one.gains) == 1 else f"by {mean} on average ({by_data})"
    name = one.name[0].upper() + one.name[1:]
    return BETTER.finding(
        tested.level,
        f"{name} beats the declared {one.declared} {by}: {'probably' if is_clear else 'possibly'} {one.file}.",
        "A checkpoint does best when it is read as it was trained. Read otherwise, it loses what this shows."
        if is_clear
        else "It may be read otherwise than it was trained, or these texts prefer another reading by their nature.",
        f"Compare {one.file} with what it was trained with"
        + ("." if is_clear else ", or check it on your own pairs and queries."),
        *(tested.mean.value, tested.mean.low, tested.mean.high),
        group=one.group,
    )


def _none_wins(tested: Sequence[Tested]) -> Finding:
    powers: dict[str, float] = {}
    for name in dict.fromkeys(name for one in tested for name in one.alternative.gains):
        gains = [one.alternative.gains[name] for one in tested if name in one.alternative.gains]
        sizes = [gain.detectable(LEVEL / len(tested)) for gain in gains]
        known = [size for size in sizes if size is not None]
        if known:
            powers[name] = float(np.median(known))
    within = ", ".join(f"{shown(size)} on {name}" for name, size in powers.items())
    if not powers or min(powers.values()) > POWERLESS:
        return AS_DECLARED.finding(
            "not measured",
            "Cannot tell whether another pooling, similarity, case, prompt or limit would do better: with so few "
            f"pairs and queries, {f'only a difference of {within}' if within else 'no difference'} would be found.",
            advice=MORE,
        )
    names = ", ".join(one.alternative.name for one in tested)
    return AS_DECLARED.finding(
        "ok",
        f"No other reading is clearly better than the declared one ({names}). A difference of {within} would have been "
        "found in four of five cases.",
    )
