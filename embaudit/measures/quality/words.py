"""Finding: is the checkpoint better than what needs no network?

Finding: have all texts come to lie in one place?

The mean cosine alone says nothing: healthy checkpoints have a mean cosine of unrelated texts of .75 and more, with all
differences in what is left. Two figures together do:

    participation ratio   (Σ_i λ_i)² / Σ_i λ_i²   of the eigenvalues of the covariance of unit vectors: how many
                          directions the texts differ in
    separation            d' = (m_matching − m_unrelated) / s_unrelated   from the means of the cosine of matching and
                          of unrelated pairs, and the spread of the latter
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.downstream import unit_rows
from embaudit.declared.rule import Finding, Level, Rule, number
from embaudit.measures.quality.material import MORE, MORE_PAIRS, SAMPLE
from embaudit.measures.quality.measured import INPUT_EMBEDDINGS, Measured, MeasuredPairs
from embaudit.measures.quality.scores import ResampledScore
from embaudit.words.estimate import shown, with_interval

# A score of less than this share of what words alone reach, and so far below for certain, is no weakness on a kind of
# text: one task has collapsed, whatever another one gained.
SHARE, FAR = 1 / 3, 0.25
WORDS = Rule(
    "no_better_than_words",
    "Spearman's ρ and nDCG@10, minus those of the best of TF-IDF, BM25 and the mean of the checkpoint's own input "
    "embeddings",
    look_if="no gain on some data sets, or on the only one",
    problem_if="no gain on any of several data sets; on the only one, a clear loss; on any, less than "
    f"{number(round(SHARE, 2))} of what words alone reach, with an interval below {number(-FAR)}",
    reason="what needs no network; a trained one gains about .2 on the sample. Some data sets are made of questions "
    "that words answer, so one alone convicts nobody. `not measured` with too few pairs and queries",
)


def best_baseline(measured: Measured) -> tuple[str, ResampledScore] | None:
    """The baseline with the highest score on a data set; None without any."""
    scores = {name: measured.score(similarities) for name, similarities in measured.baselines.items()}
    return max(scores.items(), key=lambda one: one[1].value) if scores else None


def beats_words(measured: Sequence[Measured], gains: Mapping[str, ResampledScore]) -> bool:
    """Whether a gain over the declared reading makes the checkpoint better than its words, on all data sets."""
    for one in measured:
        baseline = best_baseline(one)
        if baseline is not None:
            excess = one.score(one.similarities()).minus(baseline[1])
            if one.name not in gains or (excess.plus(gains[one.name]).estimate().low or 0.0) <= 0:
                return False
    return True


def words_findings(measured: Sequence[Measured]) -> list[Finding]:
    """``problem`` if no data set shows a gain over its better baseline, or one collapses; ``look`` if only some do.

    With one data set, ``problem`` takes a clear loss: some data sets are made of questions that words answer.
    """
    gains: list[tuple[Measured, ResampledScore, str, ResampledScore]] = []
    for one in measured:
        baseline = best_baseline(one)
        if baseline is not None:
            served = one.score(one.similarities())
            gain = served.minus(baseline[1])
            if gain.deviation is not None:
                gains.append((one, served, baseline[0], gain))
    if not gains:
        sentence = "Whether it does better than word overlap was not measured: too few scored pairs and judged queries."
        return [WORDS.finding("not measured", sentence, advice=MORE)]
    estimates = [gain.estimate() for *_, gain in gains]
    beats = [(estimate.low or 0.0) > 0 for estimate in estimates]
    is_worse = [(estimate.high or 0.0) < 0 for estimate in estimates]
    level: Level = "ok" if all(beats) else "look"
    if not any(beats) and (len(gains) > 1 or all(is_worse)):
        level = "problem"
    collapsed = [
        one.name
        for (one, served, _, gain), estimate in zip(gains, estimates, strict=True)
        if (estimate.high or 0.0) < -FAR and served.value < SHARE * (served.value - gain.value)
    ]
    has_collapsed = bool(collapsed) and level != "problem"
    level = "problem" if collapsed else level
    parts = [
        f"{one.metric} is {with_interval(served.estimate())} on {one.name}, "
        f"{with_interval(gain.estimate(), signed=True)} compared with {SAID.get(baseline, baseline)}"
        for one, served, baseline, gain in gains
    ]
    verdict = {
        "ok": "It does better than its words alone",
        "look": "It does no better than its words alone on some texts",
        "problem": "It does no better than its words alone",
    }[level]
    if has_collapsed:
        verdict = f"It finds less than a third of what words alone find on {' and '.join(collapsed)}"
    worst = min(zip(gains, estimates, strict=True), key=lambda one: one[1].value or 0.0)[1]
    return [
        WORDS.finding(
            level,
            f"{verdict}: {'; '.join(parts)}.",
            *(COLLAPSE if has_collapsed else (_meaning(level), _advice(level))),
            worst.value,
            worst.low,
            worst.high,
        )
    ]


# What nobody knows by its name.
SAID = {INPUT_EMBEDDINGS: "the average of its own input embeddings (its words, without the network)"}
# What a collapse on one task means where another one is as it should be, and what to do.
COLLAPSE = (
    "A search of that kind returns almost anything, though other scores are as they should be.",
    "See what is done to queries or to documents alone: a prompt on the wrong side, a role, a limit, another model.",
)


def _meaning(level: Level) -> str:
    if level == "problem":
        return (
            "A trained network finds more in a text than its words. This one does not: its weights were not trained, "
            "were not loaded, or belong to another tokenizer."
        )
    return "For texts of that kind, search by words would do as well."


def _advice(level: Level) -> str:
    if level == "problem":
        return (
            "Compare the names of the tensors in the weight file with those of the model, and the tokenizer with the "
            "one it was trained with."
        )
    return "Check more of your own texts: --corpus sts=FILE, --corpus retrieval=FOLDER."


# On the sample, the packaged checkpoint has 126 directions and a separation of 2.5, and 112 and 2.2 with the wrong
# pooling; copies of it with random layers have 30 to 53 and 1.2. Other data may be about one thing only.
PROBLEM, LOOK = (60.0, 1.4), (60.0, 1.8)
PROBLEM_ELSEWHERE = (20.0, 0.8)
HIGH_COSINE = 0.5
# The sentences of the whole sample, on which those limits are: of fewer, fewer directions are seen.
SENTENCES = 1_200
# Below this, neither mean nor spread can be trusted.
MIN_PAIRS = 10
COLLAPSED = Rule(
    "collapsed",
    "participation ratio of the sentences' vectors, and d′ of matching against unrelated pairs",
    look_if=f"unrelated pairs have a mean cosine of {number(HIGH_COSINE)} or more; on the sample, below {LOOK[0]:g} "
    f"and {number(LOOK[1])}",
    problem_if=f"both low: below {PROBLEM[0]:g} and {number(PROBLEM[1])} on the sample, {PROBLEM_ELSEWHERE[0]:g} and "
    f"{number(PROBLEM_ELSEWHERE[1])} elsewhere",
    reason="the mean cosine alone says nothing (healthy checkpoints have .75), and texts about one thing have few "
    "directions",
)


@dataclass(frozen=True)
class Collapse:
    """The participation ratio of the sentences' vectors, d', and the mean cosine of unrelated and matching pairs.

    Attributes:
        directions: as they are on the whole sample, if a part of it was read.
    """

    directions: float
    separation: float
    unrelated: float
    matching: float

    def is_below(self, limits: tuple[float, float]) -> bool:
        """Whether both directions and separation are below theirs."""
        return self.directions < limits[0] and self.separation < limits[1]


def measure_collapse(measured: MeasuredPairs) -> Collapse | None:
    """None if there are too few matching or unrelated pairs."""
    pairs = measured.pairs
    if min(int(pairs.is_matching.sum()), int(pairs.is_unrelated.sum())) < MIN_PAIRS:
        return None
    cosines = measured.similarities(similarity="cosine")
    matching, unrelated = cosines[pairs.is_matching], cosines[pairs.is_unrelated]
    apart = float(matching.mean() - unrelated.mean())
    vectors = np.concatenate([measured.firsts.served, measured.seconds.served])
    directions = participation_ratio(vectors)
    return Collapse(
        of_more(directions, len(vectors), SENTENCES) if pairs.name == SAMPLE else directions,
        apart / max(float(unrelated.std(ddof=1)), 1e-9),
        float(unrelated.mean()),
        float(matching.mean()),
    )


def participation_ratio(vectors: np.ndarray) -> float:
    """(Σ λ)² / Σ λ² of the covariance of (n, d) vectors as unit vectors; 0 if all are equal."""
    rows = unit_rows(vectors)
    rows -= rows.mean(axis=0)
    # The smaller of XXᵀ and XᵀX, which have the same eigenvalues.
    products = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    total, squares = float(np.trace(products)), float(np.square(products).sum())
    # Differences at the level of float32's rounding are none.
    return total**2 / squares if total > 1e-9 * len(rows) else 0.0


def of_more(directions: float, texts: int, more: int) -> float:
    """The participation ratio that more texts like these would have.

    Of n texts whose distribution has D directions it is about n D / (n + D), so that 1/R − 1/n does not depend on n.
    """
    return directions and 1 / (1 / directions - 1 / texts + 1 / more)


def collapse_findings(measured: MeasuredPairs, found: Collapse | None) -> list[Finding]:
    """``problem`` only if texts differ in few directions and matching pairs hardly stand out."""
    if found is None:
        sentence = f"Whether texts collapse into one place was not measured: {measured.name} are too few to tell."
        return [COLLAPSED.finding("not measured", sentence, advice=MORE_PAIRS)]
    figures = (
        f"sentences differ in about {found.directions:.0f} directions, and matching pairs (mean cosine "
        f"{shown(found.matching)}) are {found.separation:.1f} standard deviations above unrelated ones (mean cosine "
        f"{shown(found.unrelated)}), on {measured.name}"
    )
    is_sample = measured.pairs.name == SAMPLE
    if found.is_below(PROBLEM if is_sample else PROBLEM_ELSEWHERE):
        return [
            COLLAPSED.finding(
                "problem",
                f"Its vectors hardly tell texts apart: {figures}.",
                "They differ in few directions and matching ones hardly stand out: a search returns almost anything.",
                "Training diverged or the weights were not loaded: check the loss of its last steps and the load.",
                found.separation,
            )
        ]
    if is_sample and found.is_below(LOOK):
        return [
            COLLAPSED.finding(
                "look",
                f"The vectors of different texts are close to each other: {figures}.",
                "A search returns many texts that do not match among those that do.",
                "Compare with the checkpoint that it was trained from.",
                found.separation,
            )
        ]
    if found.unrelated >= HIGH_COSINE:
        return [
            COLLAPSED.finding(
                "look",
                f"Unrelated texts have a high cosine, but the vectors have not collapsed: {figures}.",
                "A high cosine alone changes no order of results: the scores say whether it is right. A threshold from "
                "another checkpoint is affected.",
                "Take thresholds from the scale of this checkpoint's scores (score_scale).",
                found.separation,
            )
        ]
    return [COLLAPSED.finding("ok", f"Texts have not collapsed: {figures}.", value=found.separation)]
