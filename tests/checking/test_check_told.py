"""Every state that a check can end in is told in every form, the card too, and what is said is true in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from some_rows import mostly_slow
from tiny import tiny_bert
from told_in_full import assert_told

from embaudit.checkpoint import LoadOptions
from embaudit.declared.rule import Finding, Level
from embaudit.measures.quality.material import Collection, Material, ScoredPairs
from embaudit.pages.ci import card_of
from embaudit.questions.check.check import STOPPED, CheckReport, check, check_files, not_loadable
from embaudit.questions.check.verdict import FILES_ONLY
from embaudit.words.errors import CheckpointError

OPTIONS = LoadOptions(device="cpu")
WORDS = ("river", "long", "house", "old", "people", "walk", "water")
TEXTS = tuple(f"{one} {two} {n}" for n, (one, two) in enumerate(list(product(WORDS, WORDS))[:30]))


def pairs_of(count: int, score: Callable[[int], float] = float) -> ScoredPairs:
    others = TEXTS[7 : 7 + count] + TEXTS[: max(count - len(TEXTS) + 7, 0)]
    return ScoredPairs("pairs.csv", TEXTS[:count], others, tuple(score(n) for n in range(count)))


def golden_of(queries: int) -> Collection:
    return Collection(
        "golden.csv", TEXTS[:queries], TEXTS, tuple({n: 1.0} for n in range(queries)), ((),) * queries, is_golden=True
    )


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    """A whole check against another seed of it, with golden queries."""
    folder = tmp_path_factory.mktemp("told")
    one, base = tiny_bert(folder / "one"), tiny_bert(folder / "base", seed=3)
    material = Material((pairs_of(30),), (), (golden_of(12),))
    return check(str(one), OPTIONS, material, str(base))


def test_a_check_against_a_base_is_told(checked: CheckReport) -> None:
    assert "change" in checked.figures
    assert_told(checked)


MATERIAL: dict[str, Material] = {
    "nothing": Material(),
    "what was given is missing": Material(missing=("pairs.csv: it has no rows",)),
    "two pairs": Material((pairs_of(2),)),
    "pairs of one score": Material((pairs_of(30, lambda n: 1.0),)),
    "one golden query": Material((), (), (golden_of(1),)),
    "golden queries alone": Material((), (), (golden_of(3),)),
    "two files": Material(
        (pairs_of(30), replace(pairs_of(30), name="more.csv")),
        (),
        (golden_of(3), replace(golden_of(3), name="more.csv")),
    ),
}


@pytest.mark.parametrize("name", mostly_slow(MATERIAL, 2))
def test_a_check_on_other_material_is_told(name: str, tiny_checkpoint: Path) -> None:
    assert_told(check(str(tiny_checkpoint), OPTIONS, MATERIAL[name]))


def test_a_check_of_files_is_told(tiny_checkpoint: Path) -> None:
    assert_told(check_files(str(tiny_checkpoint), OPTIONS))


def test_what_cannot_be_loaded_is_told() -> None:
    error = CheckpointError("m has no weights..", next_step="Save it again.")
    for base in (None, "base"):
        assert_told(not_loadable("m", error, base=base))
    assert_told(not_loadable("m", CheckpointError("m has no weights", next_step="Save it again.")))


LEVELS: tuple[Level, ...] = ("problem", "look", "not measured", "ok")
SCORE = {"value": 0.5, "low": None, "high": None}
DATA = {"metric": "nDCG@10", "name": "a_b", "items": 90, "score": SCORE, "baselines": {}}


def but(**changes: Any) -> Callable[[CheckReport], CheckReport]:
    return lambda one: replace(one, **changes)


STATES: dict[str, Callable[[CheckReport], CheckReport]] = {
    "no findings": but(findings=(), figures={}, base=None),
    **{
        f"{count} of {level}": (
            lambda one, level=level, count=count: replace(
                one,
                findings=tuple(Finding(level, f"It is {n} so.", name="made_up") for n in range(count)),
                figures={},
                base=None,
            )
        )
        for level in LEVELS
        for count in (1, 2)
    },
    "files only, nothing found": but(
        findings=(Finding("not measured", "The network was not run.", name=FILES_ONLY.name),)
    ),
    "files only, one thing": but(
        findings=(Finding("not measured", "The network was not run.", name=FILES_ONLY.name), Finding("look", "So."))
    ),
    "a part could not run": but(
        findings=(Finding("not measured", "Numerics could not be checked: x.", name="numerics_could_not_run"),)
    ),
    "stopped": but(findings=(Finding("not measured", "The check was stopped.", name=STOPPED),)),
    "an endpoint": but(kind="endpoint", interface="OpenAI, 32 dimensions", checkpoint_id=None, base=None),
    "an object of nothing known": but(kind="object", checkpoint_id=None, base=None, figures={}),
    "the base could not be loaded": lambda one: replace(
        one, figures={key: some for key, some in one.figures.items() if key != "change"}
    ),
    "nothing changed": lambda one: replace(one, figures={**one.figures, "change": {}}),
    "the comparison had no data": lambda one: replace(
        one, figures={**one.figures, "change": {**one.figures["change"], "data": [], "vectors": []}}
    ),
    "weights of another shape": lambda one: replace(
        one,
        figures={**one.figures, "change": {"weights": {**one.figures["change"]["weights"], "extent": "incomparable"}}},
    ),
    "a score alone": but(figures={"data": [DATA]}, base=None),
    "no score": but(figures={"data": [{**DATA, "score": {"value": None, "low": None, "high": None}}]}, base=None),
    "no golden query found": but(
        figures={"data": [{**DATA, "ranks": [{"query": "q", "rank": 30, "expected": ""}]}]}, base=None
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_told(name: str, checked: CheckReport) -> None:
    assert_told(STATES[name](checked))


def test_a_card_has_a_line_for_what_needs_a_look_and_none_for_a_score_that_is_none(checked: CheckReport) -> None:
    none = card_of(STATES["no score"](checked), date(2026, 11, 1))
    assert "nDCG" not in none
    assert ": 0.50" in card_of(STATES["a score alone"](checked), date(2026, 11, 1))
