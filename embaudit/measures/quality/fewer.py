"""Fewer texts for large checkpoints: as many as a fixed number of operations allows, and what is then not seen.

The limit is one of work, parameters × tokens, so that what is read depends on the checkpoint alone and not on the
machine: two machines give one answer. Checkpoints of up to 110 million parameters read the whole sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, sqrt
from typing import Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.memory import multiplied
from embaudit.declared.rule import Finding, Rule, number, percent
from embaudit.measures.quality.material import SAMPLE, Material

# Of reading the sample, two for each parameter and token. BERT base takes .8e13, BERT large 2.9e13, a decoder of .49
# billion 3.4e13; two cores do 1.2e13 in one or two minutes.
OPERATIONS = 1.2e13
# Read whatever it costs: with a quarter of the sample, broken copies of the packaged checkpoint are still told from
# sound ones (tests/quality/test_fewer.py).
LEAST = 0.25
# The probability with which a fault of the size that is named would have touched one of the texts.
CERTAINTY = 0.95
RULE = Rule(
    "fewer_texts",
    "the parameters that a token is multiplied with × the sample's tokens",
    reason=f"always `ok`: `check` reads a part of the sample above {number(OPERATIONS)} operations (2 × parameters × "
    f"tokens; BERT base takes .8e13, BERT large 2.9e13), at least {percent(LEAST)} of it. It says the share s of texts "
    f"with (1 − s)ⁿ = {number(round(1 - CERTAINTY, 9))}: a fault that touches fewer may have touched none of the n "
    "that were read. `collapsed` is compared with the directions that the whole sample would have (1/R − 1/n is the "
    "same for any n)",
)


@dataclass(frozen=True)
class Fewer:
    """What is read of the material, and how much the whole of the sample would have taken."""

    whole: Material
    read: Material
    parameters: int
    operations: float

    @property
    def texts(self) -> int:
        """Distinct texts that are read."""
        return len(set(chain.from_iterable(self.read.texts_by_role().values())))

    @property
    def unseen(self) -> float:
        """The share s of texts with (1 − s)^n = .05: a fault that touches fewer may have touched none of n."""
        return float(1 - (1 - CERTAINTY) ** (1 / max(self.texts, 1)))

    @property
    def is_fewer(self) -> bool:
        return self.read is not self.whole

    def findings(self) -> list[Finding]:
        """One if texts were left out."""
        if not self.is_fewer:
            return []
        sizes = list(zip(KINDS, _counts(self.read), _counts(self.whole), strict=True))
        counts = [f"{read} of {whole} {what}" for what, read, whole in sizes if read < whole]
        wider = max(sqrt(whole / read) for _, read, whole in sizes[:2] if read)
        return [
            RULE.finding(
                "ok",
                f"Because of its size ({self.parameters / 1e6:,.0f} million parameters a token), it read "
                f"{', '.join(counts)} of the embedded sample. A fault that touches less than "
                f"{100 * self.unseen:.2g} % of texts may have touched none of these {self.texts:,}, and intervals are "
                f"up to {wider:.1f} times as wide.",
                "",
                "To read more, give your own texts, all of which are read: --pairs FILE, --data FOLDER.",
                self.unseen,
            )
        ]

    def figures(self) -> dict[str, Any]:
        read, whole = (dict(zip(KINDS, _counts(one), strict=True)) for one in (self.read, self.whole))
        return {"read": read, "of": whole, "operations": self.operations, "unseen": self.unseen}


KINDS = ("pairs", "queries", "documents")


def fewer(checkpoint: Checkpoint, material: Material, operations: float = OPERATIONS) -> Fewer:
    """As much of the sample as so many operations allow; what somebody gave is read as it is."""
    sample = Material(
        tuple(one for one in material.pairs if one.name == SAMPLE),
        tuple(one for one in material.collections if one.name == SAMPLE),
    )
    tokens = 0
    for kind, texts in sample.texts_by_role().items():
        tokens += sum(map(len, checkpoint.reading(kind).tokenize(texts)))
    parameters = multiplied(checkpoint.model)
    needed = 2.0 * parameters * tokens
    if needed <= operations:
        return Fewer(material, material, parameters, needed)
    # In hundredths, so that a text more or less in a release of a tokenizer changes nothing.
    part = sample.part(max(LEAST, ceil(100 * operations / needed) / 100))
    named = {one.name: one for one in part.collections}
    read = replace(
        material,
        pairs=tuple(next((less for less in part.pairs if less.name == one.name), one) for one in material.pairs),
        collections=tuple(named.get(one.name, one) for one in material.collections),
    )
    return Fewer(material, read, parameters, needed)


def _counts(material: Material) -> tuple[int, int, int]:
    """Pairs, queries and documents."""
    judged = material.collections
    return (
        sum(len(one.scores) for one in material.pairs),
        sum(len(one.queries) for one in judged),
        sum(len(one.documents) for one in judged),
    )
