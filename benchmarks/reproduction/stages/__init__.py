"""The stages: each measures one of the papers' tables, and compares its figures with the published ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.reproduction.bench import Bench
from benchmarks.reproduction.compared import Comparison
from benchmarks.reproduction.stages import definition, layers, length, seeds, shifts, socm, sticky, temperature, u

Figures = dict[str, Any]


@dataclass(frozen=True)
class ReproducedTable:
    """One stage.

    Attributes:
        title: on the page.
        measure: gives figures as JSON values.
        compare: the rows of the page.
        said: in words, what is common and why the rest differs; from the same figures.
    """

    title: str
    measure: Callable[[Bench], Figures]
    compare: Callable[[Figures], Iterator[Comparison]]
    said: Callable[[Figures], str]


STAGES = {
    "u": ReproducedTable("u, the mean similarity of the vocabulary", u.measure, u.compare, u.said),
    "sticky": ReproducedTable("Sticky tokens by the published protocol", sticky.measure, sticky.compare, sticky.said),
    "seeds": ReproducedTable("The protocol's random third", seeds.measure, seeds.compare, seeds.said),
    "definition": ReproducedTable(
        "The paper's definition on the published pairs", definition.measure, definition.compare, definition.said
    ),
    "shifts": ReproducedTable(
        "Similarity shifts of sticky and ordinary tokens", shifts.measure, shifts.compare, shifts.said
    ),
    "socm": ReproducedTable("Second-order collapse (SOCM)", socm.measure, socm.compare, socm.said),
    "layers": ReproducedTable("Layer by layer", layers.measure, layers.compare, layers.said),
    "length": ReproducedTable("Length collapse, and σ_a", length.measure, length.compare, length.said),
    "temperature": ReproducedTable(
        "Attention temperature τ", temperature.measure, temperature.compare, temperature.said
    ),
}
