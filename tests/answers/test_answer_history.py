"""What was accepted of an answer stands as long as nothing else is wrong."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from declared_rows import NOON, rows_of

from embaudit.warehouse.publish import run_write
from embaudit.warehouse.query import run_query
from embaudit.warehouse.write import replace_rows


@pytest.mark.parametrize(
    ("nights", "first"),
    [
        (("a b", "a b"), "n0"),
        (("a b", "a"), "n0"),
        (("a", "a b"), "n1"),
        (("a b", "c"), "n1"),
        (("a b", "a", "a b"), "n2"),
    ],
)
def test_less_is_no_other_problem_and_more_is(
    empty_once: Path, tmp_path: Path, nights: tuple[str, ...], first: str
) -> None:
    warehouse = Path(shutil.copy(empty_once, tmp_path / "warehouse.duckdb"))
    rows = rows_of(
        "answer",
        "answer_id computed_id problems asked",
        *((f"n{night}", f"n{night}", problems, NOON + timedelta(days=night)) for night, problems in enumerate(nights)),
        **{"question_key": "q", "asks": "why", "verdict": "lost", "level": "problem", "exit_code": 1},
    )
    run_write(warehouse, 5.0, lambda connection: replace_rows(connection, "answer", rows))
    found = run_query(warehouse, "SELECT first_answer_id FROM answer_history ORDER BY asked").rows
    assert found[-1] == (first,)
