"""How the benchmark judges what the check says of a copy, with what the check may say written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.defects.command import misses, totals
from benchmarks.defects.copies import Copy
from benchmarks.defects.harm import Harm
from benchmarks.defects.verdicts import BROKEN, LOOK, Outcome, Said
from embaudit.declared.rule import Finding


def nothing(folder: Path) -> None:
    """Changes nothing."""


DEFECT, VARIANT = Copy("rounded", "weights", nothing, r"quantis|quantizer"), Copy("shards", "harmless", nothing)
COSTLY, FREE = Harm({"sample": 0.2}, {"plain": 0.3}), Harm({"sample": 0.0}, {"plain": 0.0})
RIGHT = Finding("problem", "The weights were quantised to 4 bits.", name="rounded_weights")
OTHER = Finding("look", "Capitals become [UNK].", name="capitals")
NAMES_A_TENSOR = Finding("problem", "encoder.quantizer.weight holds NaN.", name="not_finite")
CLEAN = Said("nothing found wrong", None, 9.0)


@pytest.mark.parametrize(
    ("copy", "harm", "said", "judged"),
    [
        (DEFECT, COSTLY, Said(BROKEN, RIGHT, 9.0), "right"),
        (DEFECT, COSTLY, Said(LOOK, RIGHT, 9.0), "right"),
        (DEFECT, COSTLY, Said(BROKEN, OTHER, 9.0), "found, misnamed"),
        (DEFECT, COSTLY, Said(BROKEN, None, 9.0), "found, misnamed"),
        (DEFECT, COSTLY, Said(BROKEN, NAMES_A_TENSOR, 9.0), "found, misnamed"),
        # To be looked at, but by no rule that the good checkpoint does not also have.
        (DEFECT, COSTLY, Said(LOOK, None, 9.0), "missed"),
        (DEFECT, COSTLY, CLEAN, "missed"),
        (DEFECT, FREE, CLEAN, "no harm, not found"),
        (DEFECT, FREE, Said(BROKEN, RIGHT, 9.0), "right"),
        (VARIANT, FREE, CLEAN, "right"),
        (VARIANT, FREE, Said(LOOK, OTHER, 9.0), "right"),
        (VARIANT, FREE, Said(BROKEN, OTHER, 9.0), "false alarm"),
        (DEFECT, COSTLY, None, ""),
    ],
)
def test_a_verdict_is_judged(copy: Copy, harm: Harm, said: Said | None, judged: str) -> None:
    assert Outcome(copy, harm, said).judged == judged


def test_totals_count_only_what_costs_and_every_miss_is_told() -> None:
    found = [
        Outcome(DEFECT, COSTLY, Said(BROKEN, RIGHT, 8.0)),
        Outcome(DEFECT, COSTLY, Said(LOOK, OTHER, 9.0)),
        Outcome(DEFECT, Harm(refused="no weights"), CLEAN),
        Outcome(DEFECT, FREE, CLEAN),
        Outcome(VARIANT, FREE, Said(BROKEN, OTHER, 10.0)),
        Outcome(VARIANT, FREE, Said(LOOK, OTHER, 10.0)),
    ]
    assert [line.found for line in totals(found)] == [
        "2 of 3 (67%)",
        "1 of 3 (33%)",
        "1 of 3 (33%)",
        "0 of 1 (0%)",
        "1 of 2 (50%)",
        "1 of 2 (50%)",
        "9.0, 10.0",
    ]
    assert list(misses(found)) == [
        "**rounded** is found, but called something else: “Capitals become [UNK].”",
        "**rounded** costs all (it cannot be loaded) and is not found.",
        "**shards** does no harm and is called a problem: “Capitals become [UNK].”",
    ]
