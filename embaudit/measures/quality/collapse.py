"""Finding: have all texts come to lie in one place?

The mean cosine alone says nothing: healthy checkpoints have a mean cosine of unrelated texts of .75 and more, with all
differences in what is left. Two figures together do:

    participation ratio   (Σ_i λ_i)² / Σ_i λ_i²   of the eigenvalues of the covariance of unit vectors: how many
                          directions the texts differ in
    separation            d' = (m_matching − m_unrelated) / s_unrelated   from the means of the cosine of matching and
                          of unrelated pairs, and the spread of the latter
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.corpora.downstream.task import unit_rows
from embaudit.declared.rule import Finding, Rule, number
from embaudit.measures.quality.material import MORE_PAIRS, SAMPLE
from embaudit.measures.quality.measured import MeasuredPairs
from embaudit.words.estimate import shown

# On the sample, the packaged checkpoint has 126 directions and a separation of 2.5, and 112 and 2.2 with the wrong
# pooling; copies of it with random layers have 30 to 53 and 1.2. Other data may be about one thing only.
PROBLEM, LOOK = (60.0, 1.4), (60.0, 1.8)
PROBLEM_ELSEWHERE = (20.0, 0.8)
HIGH_COSINE = 0.5
# The sentences of the whole sample, on which those limits are: of fewer, fewer directions are seen.
SENTENCES = 1_200
# Below this, neither mean nor spread can be trusted.
MIN_PAIRS = 10
RULE = Rule(
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
        return [RULE.finding("not measured", sentence, advice=MORE_PAIRS)]
    figures = (
        f"sentences differ in about {found.directions:.0f} directions, and matching pairs (mean cosine "
        f"{shown(found.matching)}) are {found.separation:.1f} standard deviations above unrelated ones (mean cosine "
        f"{shown(found.unrelated)}), on {measured.name}"
    )
    is_sample = measured.pairs.name == SAMPLE
    if found.is_below(PROBLEM if is_sample else PROBLEM_ELSEWHERE):
        return [
            RULE.finding(
                "problem",
                f"Its vectors hardly tell texts apart: {figures}.",
                "They differ in few directions and matching ones hardly stand out: a search returns almost anything.",
                "Training diverged or the weights were not loaded: check the loss of its last steps and the load.",
                found.separation,
            )
        ]
    if is_sample and found.is_below(LOOK):
        return [
            RULE.finding(
                "look",
                f"The vectors of different texts are close to each other: {figures}.",
                "A search returns many texts that do not match among those that do.",
                "Compare with the checkpoint that it was trained from.",
                found.separation,
            )
        ]
    if found.unrelated >= HIGH_COSINE:
        return [
            RULE.finding(
                "look",
                f"Unrelated texts have a high cosine, but the vectors have not collapsed: {figures}.",
                "A high cosine alone changes no order of results: the scores say whether it is right. A threshold from "
                "another checkpoint is affected.",
                "Take thresholds from the scale of this checkpoint's scores (score_scale).",
                found.separation,
            )
        ]
    return [RULE.finding("ok", f"Texts have not collapsed: {figures}.", value=found.separation)]
