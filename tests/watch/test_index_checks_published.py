"""What a watch publishes of indexes: the flow, the table, the commands, a warehouse from before there was one."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from commands import run_here
from index_library import Library, named

from embaudit.cli.main import cli
from embaudit.warehouse.migrate import known_views
from embaudit.warehouse.query import run_query
from embaudit.watch.open_items import read_accepted_in_indexes
from embaudit.words.errors import WarehouseError
from embaudit_flows.watch import watch


@pytest.mark.slow
def test_by_the_flow_the_tables_and_the_commands(
    library: Library, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library.write(named(0, 20))
    assert watch(str(library.list)).summary == "1 index wholly the function's"
    library.write(named(20, 24), revision=1)
    state = watch(str(library.list), return_state=True)
    assert (state.name, state.type.value) == ("Index got worse", "FAILED")
    night = state.result(raise_on_failure=False)
    assert (night.outcome.summary, night.exit_code) == (f"1 problem: Index got worse: {library.path}", 1)
    assert "20, doc-21" in state.message
    warehouse = home / "warehouse.duckdb"
    found = run_query(warehouse, "index-checks")
    row = dict(zip(found.columns, found.rows[0], strict=True))
    assert (row["verdict"], row["new_foreign"], row["rows"]) == ("not wholly its own", 4, 24)
    (ids,) = run_query(warehouse, "SELECT passport_id, checkpoint_id FROM index_check ORDER BY asked DESC LIMIT 1").rows
    assert ids[0] is None
    assert ids[1] is not None
    history = run_query(warehouse, "index-history").rows
    assert [row[2:5] for row in history] == [("not wholly its own", 24, 4), ("wholly its own", 20, None)]
    open_now = run_query(warehouse, "open-items").rows
    assert [(source, what, item) for source, _, what, _, item, *_ in open_now] == [
        (str(library.path), "index", "other_vectors")
    ]
    here = {**os.environ, "EMBAUDIT_HOME": str(home)}
    done = run_here(("accept", library.path.name, "--reason", "known", "--by", "me"), here, tmp_path)
    assert "in the index: other_vectors" in done.stdout
    assert run_query(warehouse, "open-items").rows == []
    shown = run_here(("watch", str(library.list)), here, tmp_path)
    assert shown.returncode == 0
    assert "1 index wholly the function's, but for what was accepted" in shown.stdout
    assert "Accepted: 4 of the 4 rows" in shown.stdout
    assert "embaudit query index-checks" in shown.stdout
    seen = run_here(("watch", str(library.list), "--dry-run"), here, tmp_path)
    assert f"look for rows that are not those of {library.folder / 'model'}" in seen.stdout


def test_a_warehouse_from_before_there_were_indexes_is_upgraded(published_warehouse: Path) -> None:
    older = known_views()["found_item"].partition("UNION ALL\nSELECT looked_at")[0] + ";"
    with duckdb.connect(published_warehouse) as connection:
        connection.execute(older)
        connection.execute("DROP TABLE index_check")
        open_before = connection.execute("SELECT * FROM found_item ORDER BY ALL").fetchall()
    assert read_accepted_in_indexes(published_warehouse, 0) == set()
    words = ["--warehouse", str(published_warehouse)]
    refused = CliRunner().invoke(cli, ["accept", "owner/x", "--reason", "r", "--by", "me", *words]).exception
    assert isinstance(refused, WarehouseError)
    assert "embaudit upgrade" in refused.next_step
    assert CliRunner().invoke(cli, ["upgrade", *words]).exception is None
    with duckdb.connect(published_warehouse, read_only=True) as connection:
        of_audits = "SELECT * FROM found_item WHERE what IN ('gate', 'worse', 'verdict') ORDER BY ALL"
        assert connection.execute(of_audits).fetchall() == open_before
    assert run_query(published_warehouse, "index-checks").rows == []
