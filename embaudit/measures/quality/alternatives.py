"""Other ways to read the same checkpoint, each against the declared one on the same pairs and queries.

Those here come from the pass that everything else uses; ``reencoded`` has those that cost an encode each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.measures.quality.measured import Measured, MeasuredPairs
from embaudit.measures.quality.passes import SERVED, UNNORMALISED
from embaudit.measures.quality.scores import ResampledScore


@dataclass(frozen=True)
class Alternative:
    """A reading of the checkpoint other than the declared one.

    Attributes:
        group: alternatives of one group contradict each other, such as poolings.
        name: as the subject of "beats the declared …".
        declared: what it would replace.
        file: where the declaration probably is.
        gains: alternative − declared by data set.
    """

    group: str
    name: str
    declared: str
    file: str
    gains: dict[str, ResampledScore]


def from_one_pass(checkpoint: Checkpoint, measured: Sequence[Measured]) -> Iterator[Alternative]:
    """Other poolings, the other similarity, and half the dimensions."""
    recipe = checkpoint.recipe
    served = {one.name: one.score(one.similarities()) for one in measured}

    def gains(similarities: Callable[[Measured], np.ndarray]) -> dict[str, ResampledScore]:
        return {one.name: one.score(similarities(one)).minus(served[one.name]) for one in measured}

    for mode in [name for name in _vectors_of(measured[0]) if name not in (SERVED, UNNORMALISED)]:
        pooling_file = (
            "1_Pooling/config.json" if recipe.has_modules else "a missing modules.json and 1_Pooling/config.json"
        )
        found = gains(lambda one, mode=mode: one.similarities(mode))  # type: ignore[misc]
        yield Alternative("pooling", f"{mode} pooling", f"{'+'.join(recipe.pooling)} pooling", pooling_file, found)
    similarity = measured[0].similarity
    other = "dot product" if similarity == "cosine" else "cosine"
    raw = UNNORMALISED if similarity == "cosine" and UNNORMALISED in _vectors_of(measured[0]) else SERVED
    yield Alternative(
        "similarity",
        f"the {other}" + (" without Normalize" if raw == UNNORMALISED else ""),
        similarity,
        "modules.json (Normalize) or similarity_fn_name in config_sentence_transformers.json",
        gains(lambda one: one.similarities(raw, "dot" if similarity == "cosine" else "cosine")),
    )
    half = checkpoint.dimension // 2
    if half >= 2:
        yield Alternative(
            "dimensions",
            f"the first {half} dimensions",
            f"all {checkpoint.dimension} dimensions",
            "truncate_dim in config_sentence_transformers.json",
            gains(lambda one: one.similarities(dimensions=half)),
        )


def _vectors_of(measured: Measured) -> list[str]:
    side = measured.firsts if isinstance(measured, MeasuredPairs) else measured.queries
    return list(side.vectors)
