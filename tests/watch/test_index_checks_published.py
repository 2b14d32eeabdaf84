"""What a watch publishes of indexes: the flow, the table, the commands, a warehouse from before there was one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import run_here
from index_library import Library, named

from embaudit.warehouse.query import run_query
from embaudit_flows.watch import watch


@pytest.mark.slow
def test_by_the_flow_the_tables_and_the_commands(
    library: Library, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library.write(named(0, 20))
    assert watch(str(library.list)).summary == "1 question answered well"
    library.write(named(20, 24), revision=1)
    state = watch(str(library.list), return_state=True)
    assert (state.name, state.type.value) == ("Index got worse", "FAILED")
    night = state.result(raise_on_failure=False)
    assert (night.outcome.summary, night.exit_code) == (f"1 problem: Index got worse: {library.path}", 1)
    assert "20, doc-21" in state.message
    warehouse = home / "warehouse.duckdb"
    history = run_query(warehouse, "index-history")
    assert history.columns[2:7] == ["verdict", "rows", "change", "added", "overwritten"]
    assert [row[2:6] for row in history.rows] == [("not wholly its own", 24, 4, 4), ("wholly its own", 20, None, 0)]
    wrong = run_query(warehouse, 'SELECT "row", finding FROM wrong_row ORDER BY place').rows
    assert wrong == [(name, "other_vectors") for name in named(20, 24)]
    open_now = run_query(warehouse, "open-items").rows
    assert [(source, what, item) for source, _, what, _, item, *_ in open_now] == [
        (str(library.path), "answer", "vectors: not wholly its own")
    ]
    here = {**os.environ, "EMBAUDIT_HOME": str(home)}
    done = run_here(("accept", library.path.name, "--reason", "known", "--by", "me"), here, tmp_path)
    assert "vectors: not wholly its own" in done.stdout
    assert run_query(warehouse, "open-items").rows == []
    # What comes before the next look is not accepted with it.
    library.write(named(24, 26), revision=1)
    (problem,) = watch(str(library.list), return_state=True).result(raise_on_failure=False).outcome.problems
    assert "2 of the 2 rows added or overwritten are not the checkpoint's (100.0%): doc-24, doc-25" in problem.said
    library.write(named(24, 26))
    shown = run_here(("watch", str(library.list)), here, tmp_path)
    assert shown.returncode == 0
    assert "1 question answered well" in shown.stdout
    assert "Accepted: 4 of the 4 rows" in shown.stdout
    assert "embaudit query answers" in shown.stdout
    seen = run_here(("watch", str(library.list), "--dry-run"), here, tmp_path)
    assert "ask vectors" in seen.stdout
