"""A cause is proved: its mend is tried, and the rank after it is what a slow loop over all rows says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from kept_texts import Kept, named, walked
from planted import PLANTS as SEEN
from planted import Planted
from planted_held_out import PLANTS as HELD_OUT

import embaudit
from embaudit.questions.report import WhyCaseRow
from embaudit.questions.why.case import Case
from embaudit.questions.why.mends import Mend, MendCost, MendOfMany, TriedMend, cheapest_first, told_of_many
from embaudit.questions.why.ranked import fused_scores
from embaudit.questions.why.report import WhyReport
from tests.some_rows import mostly_slow

PLANTS = SEEN | HELD_OUT
pytestmark = pytest.mark.xdist_group("planted searches")


@pytest.fixture(scope="module")
def told(kept: Kept, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Planted, WhyReport]]:
    """A planted search with its report, each once."""
    found: dict[str, tuple[Planted, WhyReport]] = {}

    def of(name: str) -> tuple[Planted, WhyReport]:
        if name not in found:
            one = PLANTS[name](kept, tmp_path_factory.mktemp("planted"))
            found[name] = one, walked(one.store, one.query, one.expect, **one.given)
        return found[name]

    return of


QUICK = ("a filter", "a vector of zeros", "a sentence behind the limit", "a field that is not embedded")


@pytest.mark.parametrize("name", mostly_slow(PLANTS, QUICK))
def test_a_planted_cause_is_named_and_confirmed(name: str, told: Any) -> None:
    planted, report = told(name)
    (lost,) = report.lost
    assert named(report) == planted.wanted
    assert lost.is_confirmed
    assert "Confirmed: " in report.line
    (case,) = report.as_json()["cases"]
    assert case["is_confirmed"]
    assert case["trial"] in case["trials"]
    (row,) = report.rows()[WhyCaseRow]
    assert (row["is_confirmed"], row["mended_rank"]) == (True, case["trial"]["rank_after"])


Rows = dict[str, tuple[str, np.ndarray]]
Changed = Callable[[Kept, Case, Rows], tuple[str, Rows]]


def in_its_place(kept: Kept, case: Case, rows: Rows, text: str) -> tuple[str, Rows]:
    return case.query, {**rows, str(case.expected): (text, kept.of(text)[0])}


def without_copies(kept: Kept, case: Case, rows: Rows) -> tuple[str, Rows]:
    seen: set[str] = set()
    firsts = {one: row for one, row in rows.items() if not (row[0] in seen or seen.add(row[0]))}  # type: ignore[func-returns-value]
    return case.query, firsts


# What is done to the rows, or to the query, by hand.
BY_HAND: dict[str, Changed] = {
    "a filter": lambda kept, case, rows: (case.query, rows),
    "a vector of zeros": lambda kept, case, rows: in_its_place(kept, case, rows, rows[case.expected][0]),
    "a foreign vector": lambda kept, case, rows: in_its_place(kept, case, rows, rows[case.expected][0]),
    "the next texts vector": lambda kept, case, rows: in_its_place(kept, case, rows, rows[case.expected][0]),
    "another functions index": lambda kept, case, rows: (
        case.query,
        {one: (text, vector) for (one, (text, _)), vector in zip(rows.items(), kept.vectors, strict=True)},
    ),
    "a dozen copies": without_copies,
    "ninety copies": without_copies,
    "pages without content": lambda kept, case, rows: (
        case.query,
        {one: row for one, row in rows.items() if not row[0].startswith("page ")},
    ),
    "a sentence behind the limit": lambda kept, case, rows: in_its_place(kept, case, rows, case.piece.text),  # type: ignore[union-attr]
    "a part of a long text": lambda kept, case, rows: in_its_place(kept, case, rows, case.piece.text),  # type: ignore[union-attr]
    "a field that is not embedded": lambda kept, case, rows: in_its_place(
        kept, case, rows, f"q3_report_acme.pdf\n{rows[case.expected][0]}"
    ),
    "sticky tokens in the text": lambda kept, case, rows: in_its_place(
        kept, case, rows, rows[case.expected][0].replace("ⁱ", "")
    ),
    "a history before the question": lambda kept, case, rows: (case.query.splitlines()[-1].strip(), rows),
    "typos in the query": lambda kept, case, rows: ("how to stop a toddler from biting other children", rows),
}


@pytest.mark.parametrize("name", mostly_slow(BY_HAND, ("a vector of zeros", "a sentence behind the limit")))
def test_the_rank_after_a_mend_is_that_of_a_loop_over_all_rows(name: str, kept: Kept, told: Any) -> None:
    planted, report = told(name)
    table = pq.read_table(planted.store).to_pylist()
    rows: Rows = {row["id"]: (row["text"], np.array(row["vector"] or np.zeros(kept.vectors.shape[1]))) for row in table}
    if "where" in planted.given:
        ((field, value),) = planted.given["where"].items()
        rows = {row["id"]: rows[row["id"]] for row in table if row[field] == value or row["id"] == planted.expect}

    query, changed = BY_HAND[name](kept, report.walked.cases[0], rows)

    asked = np.asarray(kept.of(query)[0], np.float64)
    cosines = {}
    for one, (_, vector) in changed.items():
        length = np.linalg.norm(vector)
        cosines[one] = float(asked @ vector / length) if length > 0 else -np.inf
    rank = 1 + sum(cosine > cosines[planted.expect] + 1e-5 for cosine in cosines.values())
    assert report.lost[0].trial is not None
    assert report.lost[0].trial.after == rank


def test_a_golden_file_is_mended_cheapest_first(kept: Kept, told: Any, tmp_path: Path) -> None:
    """Of three lost queries of one store, each by another cause, and one that is found."""
    planted, _ = told("a sentence behind the limit")
    table = pq.read_table(planted.store)
    rows = table.to_pylist()
    (zeroed, gone), found = [one for one in kept.queries if one[1] != planted.expect][4:6], kept.queries[7]
    for row in rows:
        if row["id"] == zeroed[1]:
            row["vector"] = [0.0] * len(row["vector"])
    rows = [row for row in rows if row["id"] != gone[1]]
    store = tmp_path / "rows.parquet"
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), store)
    cases = {planted.query: planted.expect, zeroed[0]: zeroed[1], gone[0]: gone[1], found[0]: found[1]}

    report = embaudit.why(store, "packaged:all-MiniLM-L6-v2", cases, device="cpu")

    assert [(one.lost, one.is_confirmed) for one in report.lost] == [
        ("text", True),
        ("vector", True),
        ("absent", None),
        ("found", None),
    ]
    said = report.told()[0].advice
    assert said == (
        "Of 3 lost queries, 1 would be found encoded again, 1 more with that piece in place of the text, 1 by nothing "
        "that was tried."
    )
    assert [(one["mend"], one["more"]) for one in report.as_json()["mends"]] == [
        ("encoded again", 1),
        ("with that piece in place of the text", 1),
    ]
    kept_figures = [(one.item, one.value, one.of) for one in report.answer_figures() if one.figure == "mended"]
    assert kept_figures == [("encoded again", 1, 3), ("with that piece in place of the text", 1, 3)]
    assert "What would find them" in [section.title for section in report.page().sections]


MENDS = [
    Mend(f"mend {place}", cost, "")
    for place, cost in enumerate([MendCost.QUERY, MendCost.QUERY, MendCost.ROWS, MendCost.ALL])
]


@pytest.mark.parametrize("seed", range(30))
def test_mends_of_many_are_the_cheapest_that_find_any(seed: int) -> None:
    """By counts alone: nothing dearer is named for what something cheaper finds, and each finds what it is said to."""
    random = np.random.default_rng(seed)
    lost = [
        [TriedMend(mend, 50, int(random.integers(1, 20)), 10) for mend in MENDS if random.random() < 0.5]
        for _ in range(12)
    ]
    found = list(cheapest_first(lost))
    sets = {
        mend.name: {
            n for n, trials in enumerate(lost) for one in trials if one.mend == mend and (one.after or 99) <= 10
        }
        for mend in MENDS
    }
    assert sum(one.more for one in found) == len(set().union(*sets.values()))
    done: set[int] = set()
    for one in found:
        own = sets[one.mend.name]
        assert (one.found, one.more) == (len(own), len(own - done))
        # No other of this cost, and none that costs less, finds more of those that are left.
        assert all(len(sets[other.name] - done) <= one.more for other in MENDS if other.cost == one.mend.cost)
        assert not any(sets[other.name] - done for other in MENDS if other.cost < one.mend.cost)
        done |= own


def test_what_is_said_of_many() -> None:
    one, two = MendOfMany(MENDS[0], 7, 7), MendOfMany(MENDS[2], 5, 2)
    assert told_of_many([one, two], 12) == (
        "Of 12 lost queries, 7 would be found mend 0, 2 more mend 2, 3 by nothing that was tried."
    )
    assert told_of_many([replace(one, more=1)], 1) == "Of 1 lost query, 1 would be found mend 0."
    assert not told_of_many([], 3)


@pytest.mark.parametrize("seed", range(10))
def test_ranks_are_fused_as_the_formula_says(seed: int) -> None:
    random = np.random.default_rng(seed)
    lists = [random.permutation(30)[:length].tolist() for length in (20, 12)]
    fused = fused_scores(lists)
    for row in range(30):
        wanted = sum(1 / (60 + one.index(row) + 1) for one in lists if row in one)
        assert fused.get(row, 0.0) == pytest.approx(wanted)


STATES: Sequence[tuple[TriedMend, bool | None, str]] = [
    (TriedMend(MENDS[0], 46, 1, 10), True, "Confirmed: mend 0, it is 1st, and not 46th."),
    (TriedMend(MENDS[0], None, 10, 10), True, "Confirmed: mend 0, it is 10th."),
    (TriedMend(MENDS[0], 46, 11, 10), False, "Not confirmed: mend 0, it is 11th."),
    (TriedMend(MENDS[0], 46, None, 10), False, "Not confirmed: mend 0, it is not ranked."),
    (TriedMend(MENDS[0], 46, 2, 10, is_below=True), False, "Not confirmed: mend 0, it is 2nd, and its score below the"),
    (TriedMend(MENDS[0], 46, None, 10, why_not="there is no text"), None, "Not tried: there is no text."),
]


@pytest.mark.parametrize(("trial", "is_confirmed", "said"), STATES)
def test_a_trial_says_what_came_of_it(trial: TriedMend, is_confirmed: bool | None, said: str) -> None:
    assert trial.is_confirmed is is_confirmed
    assert trial.told.startswith(said)


def test_costs_have_an_order_and_names() -> None:
    assert len({one.shown for one in MendCost}) == len(MendCost)
    assert all(one < other for one, other in itertools.pairwise(MendCost))
