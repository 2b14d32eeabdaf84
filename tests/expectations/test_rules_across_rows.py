"""Rules that rows keep together: ranks from one to the last, one set of pairs, keys, and how many rows there are."""

from __future__ import annotations

import pandas as pd
import pytest
from broken_rows import check, failing_rows, failures, good
from plausible_socm import socm_pairs
from some_rows import mostly_slow

from embaudit.warehouse.expectations.check import EXAMPLES_KEPT, check_frame
from embaudit.warehouse.tables import TABLES


def test_ranks_are_all_there_and_no_two_alike() -> None:
    frame = good("sticky_score")
    frame.loc[3, "pull_rank"] = 99
    frame.loc[5, "slope_rank"] = frame.loc[0, "slope_rank"]
    found = failing_rows("sticky_score", frame, check("sticky_score", frame))
    assert found == {"in_set ranks_are_complete": {(0,): 1, (3,): 1, (5,): 1}}


def test_ranks_of_the_reference_protocol_too() -> None:
    frame = good("sticky_reference")
    # The second rank is given twice, and the first to nobody.
    frame.loc[frame["score_rank"] == 1, "score_rank"] = 2
    tokens = frame.loc[frame["score_rank"] == 2, "token_id"]
    found = failing_rows("sticky_reference", frame, check("sticky_reference", frame))
    assert found == {"in_set ranks_are_complete": {(token,): 1 for token in tokens}}
    assert len(tokens) == 2


def test_every_token_has_the_same_pairs() -> None:
    assert failures(check("sticky_shift", good("sticky_shift"))) == []
    frame = good("sticky_shift")
    frame.loc[1, "before"] = 0.3  # of position 1, which every token's row then is in doubt of
    frame = frame.drop(index=5)  # the other token's position 2
    found = failing_rows("sticky_shift", frame, check("sticky_shift", frame))
    assert found == {"in_set pairs_are_the_same": {(4, 1): 1, (0, 1): 1, (4, 2): 1}}


@pytest.mark.parametrize("table", mostly_slow(TABLES, ("text", "sticky_shift", "socm_pair")))
def test_an_empty_table_fails_by_its_row_count(table: str) -> None:
    failed = failures(check(table, good(table).iloc[:0]))
    assert [row.expectation for row in failed] == ["expect_table_row_count_to_be_between"]
    assert failed[0].blocks


@pytest.mark.parametrize("table", TABLES)
def test_what_is_derived_of_no_rows_is_there(table: str) -> None:
    empty, full = (TABLES[table].derive(frame, {}) for frame in (good(table).iloc[:0], good(table)))
    assert list(empty) == list(full)
    assert empty.empty


@pytest.mark.parametrize("planned", [0, 1, 99])
def test_another_row_count_than_planned_fails(planned: int) -> None:
    (failed,) = failures(check("socm_text", good("socm_text"), planned))
    assert (failed.expectation, failed.observed) == ("expect_table_row_count_to_equal", "4")
    assert failed.blocks
    assert not failed.raised_exception


def test_tolerance_grows_with_the_traces() -> None:
    """A text whose mean is near zero has tr Σ in the thousands, and rounding in proportion."""
    traces = (4e6, 1e6)
    rows = pd.DataFrame(socm_pairs("wikipedia", traces))
    rows["d_sigma"] = sum(traces) / 4 * (1 + 1e-10)
    rows["socm"] = (1 - rows["d_mu"]) * rows["d_sigma"]
    checked = check_frame("socm_pair", TABLES["socm_pair"].derive(rows, {"wikipedia": pd.Series(traces)}), 1)
    assert failures(checked) == []


def test_many_failing_rows_are_reported_by_a_few() -> None:
    count = 300_000
    frame = pd.DataFrame(
        {
            "corpus": pd.Categorical(["wikipedia"] * count),
            **dict.fromkeys(("first", "second"), range(count)),
            **{"d_mu": 7.0, "d_sigma": 0.5, "socm": 0.5},
        }
    )
    failed = failures(check_frame("socm_pair", TABLES["socm_pair"].derive(frame, {}), count))
    assert {row.unexpected_count for row in failed} == {count}
    assert all(len(row.examples) == EXAMPLES_KEPT for row in failed)
