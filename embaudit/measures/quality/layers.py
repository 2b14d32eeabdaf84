"""Finding: does a layer lose what the layers before it had found?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embaudit.declared.rule import Finding, Level, Rule
from embaudit.measures.quality.measured import Measured
from embaudit.measures.quality.scores import ResampledScore
from embaudit.words.estimate import Estimate, shown, with_interval

RULE = Rule(
    "lost_in_layer",
    "the same scores if the network stopped after each layer",
    look=0.03,
    problem=0.1,
    look_if="the last is more than {look} below an earlier one, interval below 0",
    problem_if="more than {problem}",
    reason="healthy last layers lose up to .03; a dip that the end makes up for counts for nothing. `not measured` if "
    "the model does not return its states",
)


@dataclass(frozen=True)
class Layers:
    """The scores of one data set if the network stopped after its embeddings, its first layer, …, its last."""

    name: str
    metric: str
    scores: tuple[ResampledScore, ...]

    @property
    def best(self) -> int:
        """The best place to stop before the end; 0 is after the embeddings."""
        return max(range(len(self.scores) - 1), key=lambda place: self.scores[place].value)

    @property
    def lost(self) -> Estimate:
        """The last score − the best earlier one."""
        return self.scores[-1].minus(self.scores[self.best]).estimate()

    @property
    def worst_step(self) -> int:
        """The layer behind the best place with the largest step down."""
        places = range(self.best + 1, len(self.scores))
        return min(places, key=lambda place: self.scores[place].minus(self.scores[place - 1]).value)

    @property
    def level(self) -> Level:
        """A dip that the end of the network makes up for is none: healthy decoders have them."""
        lost = self.lost
        if lost.value is None or lost.high is None or lost.high >= 0:
            return "ok"
        return "problem" if -lost.value > RULE.problem else "look" if -lost.value > RULE.look else "ok"


def measure_layers(measured: Measured) -> Layers | None:
    """None if the model does not return its states."""
    scores = tuple(measured.score(similarities) for similarities in measured.by_layer)
    return Layers(measured.name, measured.metric, scores) if len(scores) > 1 else None


def layer_findings(measured: Sequence[Layers]) -> list[Finding]:
    """The data set that loses most; one is enough, since both orders come from the same layers."""
    if not measured:
        sentence = "What each layer adds was not measured: the model does not return the states between its layers."
        return [RULE.finding("not measured", sentence)]
    worst = min(measured, key=lambda one: (one.level == "ok", one.lost.value or 0.0))
    lost, last = worst.lost, len(worst.scores) - 1
    numbers = lost.value, lost.low, lost.high
    if worst.level == "ok":
        path = ", ".join(shown(score.value) for score in worst.scores)
        sentence = (
            f"No layer loses what those before it found: if the network stopped after its embeddings and each of its "
            f"{last} layers, {worst.metric} on {worst.name} would be {path}."
        )
        return [RULE.finding("ok", sentence, "", "", *numbers)]
    at, best = worst.worst_step, worst.best
    step = worst.scores[at].minus(worst.scores[at - 1]).estimate()
    sentence = (
        f"The network would do better if it stopped after {f'layer {best} of {last}' if best else 'its embeddings'}: "
        f"{worst.metric} on {worst.name} is {shown(worst.scores[best].value)} there and "
        f"{shown(worst.scores[-1].value)} at its end, {with_interval(lost, signed=True)}. Layer {at} loses most: "
        f"{with_interval(step, signed=True)}."
    )
    meaning = (
        "Layers of an embedding checkpoint are trained towards its last one. One that makes the vectors worse was not "
        "trained with the others, was not loaded, or stands in another place."
    )
    advice = f"Compare the tensors of layer {at} (number {at - 1} in the file) with those of the run that trained it."
    return [RULE.finding(worst.level, sentence, meaning, advice, *numbers)]
