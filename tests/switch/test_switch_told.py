"""Every state that the report of a switch can have is told in every form, and what is said is true in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_rows import mostly_slow
from told_in_full import assert_told

from embaudit.measures.quality.golden import GoldenChange, GoldenChanges
from embaudit.questions.switch import findings as say
from embaudit.questions.switch.encode import Cost
from embaudit.questions.switch.material import OldAndNew, search_of_vectors
from embaudit.questions.switch.switch import SwitchReport, switch_vectors

sys.path.append(str(Path(__file__).resolve().parent))
from test_switch_verdicts import ASKED, CASES, KNOWN, NEAR, RELEVANT, TURN, pairs_of, reported, unlike

from embaudit.words.estimate import Estimate


def searched(change, documents: int, queries: int, relevant: tuple[dict[int, float], ...] = ()) -> SwitchReport:  # type: ignore[no-untyped-def]
    """A search alone, without pairs."""
    known, asked = KNOWN[:documents], ASKED[:queries]
    search = search_of_vectors(OldAndNew(known, change(known)), OldAndNew(asked, change(asked)), relevant)
    return switch_vectors([], [search])


def away(rows: np.ndarray) -> np.ndarray:
    """Of documents as they are; of queries, the other way: what is relevant comes last."""
    return rows if len(rows) == len(KNOWN) else -rows


FAR = tuple({place + 150: 1.0} for place in range(20))
REAL: dict[str, Callable[[], SwitchReport]] = {
    **{
        f"{verdict}, {'judged' if judged else 'not judged'}": (
            lambda change=change, judged=judged: reported(change, judged=judged)
        )
        for verdict, change in CASES.items()
        for judged in (True, False)
    },
    "other dimensions": lambda: reported(lambda rows: np.pad(rows @ TURN, [(0, 0), (0, 4)])),
    "another length": lambda: reported(lambda rows: 1.5 * rows),
    "one query": lambda: reported(unlike, queries=1),
    "two cut-offs": lambda: reported(CASES["new threshold only"], thresholds=(0.2, 0.99)),
    "a cut-off that nothing passes": lambda: reported(unlike, thresholds=(2.0,)),
    "pairs alone": lambda: switch_vectors([pairs_of(KNOWN, NEAR, unlike(KNOWN), unlike(NEAR))]),
    "a search alone": lambda: searched(unlike, 300, 40),
    "few documents": lambda: searched(unlike, 30, 12),
    "one query of few documents": lambda: searched(unlike, 30, 1),
    "twenty documents": lambda: searched(unlike, 20, 10, RELEVANT[:10]),
    "NEW finds nothing that is relevant": lambda: searched(away, 300, 20, RELEVANT[:20]),
    "neither finds what is relevant": lambda: searched(lambda rows: rows @ TURN, 300, 20, FAR),
}


QUICK = (
    *("rebuild, judged", "same index, not judged", "two cut-offs", "pairs alone", "a search alone"),
    *("one query of few documents", "neither finds what is relevant"),
)


@pytest.mark.parametrize("name", mostly_slow(REAL, QUICK))
def test_a_real_report_is_told(name: str) -> None:
    assert_told(REAL[name]())


@pytest.fixture(scope="module")
def rebuild() -> SwitchReport:
    return reported(unlike)


COST = Cost(1_000_000, Estimate(5.0, 4.0, 6.0), 1_000.0, 12.0, "cpu", (10, 10_000), 100)
RANKS = tuple(
    GoldenChange(f"query {place}", f"answer {place}", old, new)
    for place, (old, new) in enumerate([(1, 40), (40, 1), (1, 1)])
)
NONE = Estimate(None)


def but(**changes: Any) -> Callable[[SwitchReport], SwitchReport]:
    return lambda one: replace(one, **changes)


STATES: dict[str, Callable[[SwitchReport], SwitchReport]] = {
    "no searches": but(searches=()),
    "no cut-offs": but(cut_offs=(), scales=()),
    "no scores": but(quality=()),
    "nothing but a verdict": but(searches=(), cut_offs=(), scales=(), quality=(), same_text=None),
    "nothing to read": lambda one: replace(
        one, searches=tuple(replace(some, read=(), read_texts=()) for some in one.searches)
    ),
    "scores without an interval": lambda one: replace(
        one, quality=tuple(replace(some, change=Estimate(0.0)) for some in one.quality)
    ),
    "ids": but(old_id="abc", new_id="def"),
    "two golden files": but(golden=(GoldenChanges("one", RANKS), GoldenChanges("two", RANKS))),
    "a golden file that changes nothing": but(golden=(GoldenChanges("one", RANKS[2:]),)),
    "a golden query lost": but(golden=(GoldenChanges("one", RANKS[:1]),)),
    "no flips": lambda one: replace(
        one,
        cut_offs=tuple(
            replace(some, flips_at_new=NONE, flips_at_old=NONE, same_share=NONE, same_recall=NONE)
            for some in one.cut_offs
        ),
    ),
    "a cost": but(cost=COST),
    "a cost without an interval": but(cost=replace(COST, seconds=Estimate(0.4))),
    "one row of one word": but(cost=replace(COST, rows=1, tokens=1.0, tokens_per_second=1.0, counted_in="words")),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_told(rebuild: SwitchReport, name: str) -> None:
    report = STATES[name](rebuild)
    found = [
        say.mixing_finding(report.same_text, report.searches, report.dimensions, report.holds),
        *say.query_findings(report.searches),
        say.cut_off_finding(report.cut_offs),
        say.quality_finding(report.quality),
        *say.bridge_findings(report.searches, report.holds),
        *(one.finding() for one in report.golden),
        *([say.cost_finding(report.cost)] if report.cost is not None else []),
    ]
    assert_told(replace(report, findings=tuple(found)))


def test_golden_queries_of_several_files_are_told_apart(rebuild: SwitchReport) -> None:
    titles = [section.title for section in STATES["two golden files"](rebuild).page().sections]
    assert {"Golden queries of one", "Golden queries of two"} <= set(titles)
