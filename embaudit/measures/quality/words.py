"""Finding: is the checkpoint better than what needs no network?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embaudit.declared.rule import Finding, Level, Rule, number
from embaudit.measures.quality.baselines import INPUT_EMBEDDINGS
from embaudit.measures.quality.material import MORE
from embaudit.measures.quality.measured import Measured
from embaudit.measures.quality.scores import ResampledScore
from embaudit.words.estimate import with_interval

# A score of less than this share of what words alone reach, and so far below for certain, is no weakness on a kind of
# text: one task has collapsed, whatever another one gained.
SHARE, FAR = 1 / 3, 0.25
RULE = Rule(
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
        return [RULE.finding("not measured", sentence, advice=MORE)]
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
        RULE.finding(
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
