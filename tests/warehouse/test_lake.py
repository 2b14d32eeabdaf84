"""The warehouse as a DuckLake on a real PostgreSQL: the same tables, rows, views and answers as a DuckDB file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from made_up_migrations import BROKEN, FIRST, SECOND, a_program_with, the_next_program
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all
from postgres_server import USER, Postgres

from embaudit.corpora.scores import Score
from embaudit.steps.staging.stage import write_rows
from embaudit.system.settings import Lake, Warehouse
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.lake import WRITER_TABLE
from embaudit.warehouse.publish import import_scores, publish, publish_content
from embaudit.warehouse.query import named_queries, require_inside, run_query
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable, transaction
from embaudit.words.errors import EmbauditError, StorageError, UsageError, WarehouseError

# Each opening loads two extensions and asks a server: half a second.
pytestmark = pytest.mark.slow

OWN_TIMES = {"schema_migration": "EXCLUDE (applied)", "downstream_score": "EXCLUDE (imported)"}


def tables(place: Warehouse) -> dict[str, list[tuple]]:
    """Every table's rows in an order of their own, but for the lake's row that writers touch."""
    with open_reader(place) as connection:
        names = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() ORDER BY 1"
        ).fetchall()
        return {
            name: connection.execute(f"SELECT * {OWN_TIMES.get(name, '')} FROM {name} ORDER BY ALL").fetchall()
            for (name,) in names
            if name != WRITER_TABLE
        }


def one_score(checkpoint: str, score: float) -> Score:
    return Score(checkpoint, "", "Task", "test", "default", score, None, "file", "row 1")


def live(place: Warehouse, folder: Path) -> None:
    """What happens to a warehouse: audits, reruns with other rows, failures, content, scores."""
    first, again, other = (
        stage_all(folder / name, plausible_rows(checkpoint, source, shift))
        for name, checkpoint, source, shift in (
            ("first", "c1", "packaged:tiny", 0.0),
            ("again", "c1", "a/folder", 0.1),
            ("other", "c2", "owner/other", 0.2),
        )
    )
    checks = [expectation(), expectation(shard=1), expectation("socm_pair", 2, success=False)]
    publish(place, 5, audit_record("a1"), measure_runs(), checks, first)
    publish(place, 5, audit_record("a2", "c2", minutes=5), measure_runs(), checks, other)
    fewer = [table for table in again if not table.table.startswith("length")]
    publish(place, 5, audit_record("a1", minutes=10), measure_runs(), checks[:2], fewer)
    publish(place, 5, audit_record("a2", "c2", "failed", "disk full", minutes=15), [], checks[1:], [])
    publish(place, 5, audit_record("a3", "c1", "failed", "checks", minutes=20), [], checks, [])
    publish_content(place, 5, [table for table in first if table.table in ("corpus", "text", "checkpoint")])
    for score in (0.5, 0.6):
        import_scores(place, 5, [one_score("owner/other", score), one_score("tiny", 0.1)])


@pytest.fixture(scope="module")
def both(lake_database: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Warehouse]:
    folder = tmp_path_factory.mktemp("both")
    places: dict[str, Warehouse] = {
        "file": folder / "warehouse.duckdb",
        "lake": Lake(lake_database, folder / "lake", folder.name),
    }
    for name, place in places.items():
        live(place, folder / name)
    return places


def test_a_lake_holds_what_a_file_holds(both: dict[str, Warehouse]) -> None:
    of_file, of_lake = tables(both["file"]), tables(both["lake"])
    assert of_file.keys() == of_lake.keys() >= set(TABLES)
    assert sum(map(len, of_file.values())) > 500
    for name, rows in of_file.items():
        assert of_lake[name] == rows, name


def test_columns_and_their_types_are_the_same(both: dict[str, Warehouse]) -> None:
    def columns(place: Warehouse) -> list[tuple]:
        with open_reader(place) as connection:
            return connection.execute(
                "SELECT table_name, column_index, column_name, data_type, is_nullable FROM duckdb_columns() "
                f"WHERE database_name = current_database() AND table_name <> '{WRITER_TABLE}' AND NOT internal "
                "AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()) "
                "ORDER BY ALL"
            ).fetchall()

    assert len(columns(both["file"])) > 400
    assert columns(both["lake"]) == columns(both["file"])


def test_comments_are_the_same(both: dict[str, Warehouse]) -> None:
    """Of tables, views, and columns of tables: DuckLake takes none on a view's."""
    asked = """
    WITH of AS (
        SELECT table_name, column_name, comment, database_name FROM duckdb_columns()
        WHERE table_name IN (SELECT table_name FROM duckdb_tables())
        UNION ALL SELECT table_name, '', comment, database_name FROM duckdb_tables()
        UNION ALL SELECT view_name, '', comment, database_name FROM duckdb_views() WHERE NOT internal
    )
    SELECT table_name, column_name, comment FROM of WHERE database_name = current_database()
    """
    said = {}
    for kind, place in both.items():
        with open_reader(place) as connection:
            said[kind] = set(connection.execute(asked).fetchall())
    assert [one for one in said["lake"] if not one[2]] == []
    assert {one for one in said["lake"] if one[0] != WRITER_TABLE} == said["file"]
    # The row that writers touch is a lake's alone.
    assert {one[1] for one in said["lake"] if one[0] == WRITER_TABLE} == {"", "writes"}


def test_every_question_and_view_has_the_same_answer(both: dict[str, Warehouse]) -> None:
    answers: dict[str, dict[str, list[str]]] = {}
    for kind, place in both.items():
        with open_reader(place) as connection:
            views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()
            asked = {view: f"FROM {view}" for (view,) in views}
            asked |= {query.name: query.sql for query in named_queries().values()}
            answers[kind] = {}
            for name, sql in asked.items():
                if kind == "lake":
                    require_inside(connection, sql)
                found = connection.execute(sql).fetchall()
                answers[kind][name] = sorted(repr([comparable(value) for value in row]) for row in found)
    assert answers["lake"].keys() == answers["file"].keys() >= {"leaderboard", "worst-tokens", "sticky_token"}
    for name, rows in answers["file"].items():
        assert answers["lake"][name] == rows, name


def comparable(value: Any) -> Any:
    """Sums in another order differ in the last digits; imports of scores in their time."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return "today" if isinstance(value, datetime) and value.date() == datetime.now(UTC).date() else value


def test_publishing_again_adds_no_row_and_rewrites_no_content(lake: Lake, staged: list[StagedTable]) -> None:
    for _ in range(2):
        publish(lake, 5, audit_record(), measure_runs(), [expectation()], staged)
        with open_reader(lake) as connection:
            content = connection.execute("SELECT rowid, * FROM token ORDER BY ALL").fetchall()
            snapshots = connection.execute("SELECT count(*) FROM ducklake_snapshots('warehouse')").fetchall()
    publish(lake, 5, audit_record(), measure_runs(), [expectation()], staged)
    with open_reader(lake) as connection:
        assert connection.execute("SELECT rowid, * FROM token ORDER BY ALL").fetchall() == content
        # One for the log, one for the tables: views and migrations leave none where nothing is new.
        after = connection.execute("SELECT count(*) FROM ducklake_snapshots('warehouse')").fetchall()
    assert after[0][0] - snapshots[0][0] == 2
    counts = {name: len(rows) for name, rows in tables(lake).items()}
    assert {name: counts[name] for name in plausible_rows()} == {
        name: len(rows) for name, rows in plausible_rows().items()
    }


def test_rows_that_a_table_does_not_take_leave_it_as_it_was(
    lake: Lake, tmp_path: Path, staged: list[StagedTable]
) -> None:
    publish(lake, 5, audit_record("a1"), [], [], staged)
    before = {name: rows for name, rows in tables(lake).items() if name in TABLES}
    write_rows(tmp_path / "wrong.parquet", [{"corpus": "wikipedia", "surprise": 1}])
    broken = [table for table in staged if table.table != "socm_summary"]
    broken.append(StagedTable("socm_summary", (str(tmp_path / "wrong.parquet"),)))
    with pytest.raises(WarehouseError, match=r"socm_summary does not accept its staged rows.*surprise"):
        publish(lake, 5, audit_record("a2"), [], [], broken)
    after = tables(lake)
    assert {name: rows for name, rows in after.items() if name in TABLES} == before
    assert [(row[0], row[12]) for row in after["audit"]] == [("a1", "published"), ("a2", "checked")]


def test_the_first_of_two_rows_with_one_key_stays(lake: Lake, tmp_path: Path) -> None:
    record = plausible_rows()["corpus"][0]
    paths = []
    for name in ("wikipedia", "msmarco"):
        paths += stage_all(tmp_path / name, {"corpus": [{**record, "name": name}]})[0].paths
    publish_content(lake, 5, [StagedTable("corpus", tuple(paths))])
    assert [row[1] for row in tables(lake)["corpus"]] == ["wikipedia"]


def test_a_newer_lake_is_refused_and_an_older_one_upgraded(lake: Lake) -> None:
    with a_program_with(views=("made_up_summary",)), open_writer(lake, 5) as connection:
        connection.execute("INSERT INTO audit_corpus VALUES ('a1', 'sts', 's1')")
    with a_program_with(FIRST, BROKEN):
        with pytest.raises(WarehouseError, match="no_such_table"), open_writer(lake, 5):
            pass
        with open_reader(lake) as connection:
            # The one is there, and of the other nothing.
            assert connection.execute("SELECT max(version) FROM schema_migration").fetchall() == [(FIRST.version,)]
            assert connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'made_up'").fetchall() == []
    with the_next_program():
        with pytest.raises(UsageError, match="made_up_rows does not exist") as caught:
            run_query(lake, "SELECT * FROM made_up_rows")
        assert "embaudit upgrade" in caught.value.next_step
        with open_writer(lake, 5) as connection:
            assert connection.execute("SELECT * FROM audit_corpus").fetchall() == [("a1", "sts", "s1")]
            assert connection.execute("SELECT made_up FROM made_up_summary").fetchall() == []
            assert connection.execute("SELECT * FROM made_up_rows").fetchall() == []
    says = f"has schema {SECOND.version}, but this embaudit only knows up to"
    for opened in (open_writer(lake, 5), open_reader(lake)):
        with pytest.raises(WarehouseError, match=says) as refused, opened:
            pass
        assert "Upgrade embaudit" in refused.value.next_step


def test_views_of_a_lake_are_created_where_they_are_not_as_they_should_be(lake: Lake) -> None:
    def snapshots() -> int:
        with open_reader(lake) as connection:
            return len(connection.execute("FROM ducklake_snapshots('warehouse')").fetchall())

    with open_writer(lake, 5) as connection:
        connection.execute("DROP VIEW leaderboard")
    dropped = snapshots()
    for _ in range(2):
        with open_writer(lake, 5) as connection:
            assert connection.execute("SELECT count(*) FROM leaderboard").fetchall() == [(0,)]
    assert snapshots() == dropped + 1


def test_a_transaction_of_two_writers_conflicts(lake: Lake) -> None:
    """The queue aside: whoever slips past it is stopped by the row that all writers touch."""
    from embaudit.warehouse.connect import connect_memory
    from embaudit.warehouse.lake import attach, is_conflict, load_extensions

    with open_writer(lake, 5):
        pass
    one, two = connect_memory("1GB"), connect_memory("1GB")
    for connection in (one, two):
        load_extensions(connection)
        attach(connection, lake, read_only=False)
    with pytest.raises(duckdb.TransactionException) as caught, transaction(one):  # noqa: PT012
        one.execute("INSERT INTO audit_corpus VALUES ('a1', 'sts', 's1')")
        with transaction(two):
            two.execute("INSERT INTO audit_corpus VALUES ('a1', 'sts', 's1')")
    assert is_conflict(caught.value)
    one.close()
    two.close()
    assert len(tables(lake)["audit_corpus"]) == 1


def test_there_is_no_lake_until_somebody_writes(lake: Lake, postgres: Postgres) -> None:
    with pytest.raises(WarehouseError, match="There is no warehouse at ducklake:postgres"), open_reader(lake):
        pass
    assert not lake.data_path.exists()
    assert postgres.ask("lakes", f"SELECT count(*) FROM pg_namespace WHERE nspname = '{lake.schema}'") == "0"


def test_another_data_folder_is_refused(lake: Lake, tmp_path: Path) -> None:
    with open_writer(lake, 5):
        pass
    elsewhere = Lake(lake.connection, tmp_path / "elsewhere", lake.schema)
    with pytest.raises(WarehouseError, match="its data files in another folder"), open_writer(elsewhere, 5):
        pass


def test_a_catalog_that_cannot_be_reached_ends_in_a_paragraph(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    nowhere = Lake("dbname=lakes host=127.0.0.1 port=1 user=embaudit connect_timeout=2", lake.data_path)
    for opened in (open_writer(nowhere, 0.5), open_reader(nowhere, 0.5)):
        with pytest.raises(WarehouseError, match="cannot be reached: Connection refused") as caught, opened:
            pass
        assert "hunter2" not in str(caught.value)
        assert "PGPASSFILE" in caught.value.next_step


def test_a_role_that_may_only_read_reads(lake: Lake, staged: list[StagedTable], postgres: Postgres) -> None:
    publish(lake, 5, audit_record(), measure_runs(), [expectation()], staged)
    role = f"looker_{lake.schema}"
    for sql in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {lake.schema} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {lake.schema} TO {role}",
    ):
        postgres.ask("lakes", sql)
    looker = Lake(lake.connection.replace(f"user={USER}", f"user={role}"), lake.data_path, lake.schema)
    assert len(run_query(looker, "worst-tokens").rows) == 3
    with pytest.raises(StorageError, match="permission denied for") as caught:
        publish(looker, 5, audit_record("a2"), measure_runs(), [expectation()], staged)
    assert "INSERT INTO" not in str(caught.value)
    assert [row[0] for row in tables(lake)["audit"]] == ["a1"]


def test_a_missing_package_is_named(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WarehouseError, match="needs DuckDB's extension") as caught, open_reader(lake):
        pass
    assert "embaudit[ducklake]" in caught.value.next_step


# ---- readers ----


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO audit_corpus VALUES ('a2', 'sts', 's1')",
        "DELETE FROM audit_corpus",
        "DROP TABLE audit_corpus",
        "CREATE TABLE mine (a INTEGER)",
        "CREATE TEMP TABLE mine AS SELECT 1",
        "COPY audit_corpus TO '{folder}/out.csv'",
        "COPY audit_corpus TO '{lake}/out.csv'",
        "SELECT * FROM read_csv('{folder}/secret.csv')",
        "SELECT * FROM '{folder}/secret.csv'",
        "SELECT * FROM glob('{lake}/**')",
        "SELECT * FROM postgres_scan('{connection}', '{schema}', 'ducklake_metadata')",
        "SELECT * FROM postgres_query('__ducklake_metadata_warehouse', 'SELECT 1 AS one')",
        "SELECT * FROM query('SELECT 1')",
        "EXPLAIN ANALYZE SELECT * FROM postgres_scan('{connection}', '{schema}', 'ducklake_metadata')",
        "WITH a AS (SELECT * FROM read_text('{folder}/secret.csv')) SELECT * FROM a",
        "CALL ducklake_expire_snapshots('warehouse', older_than => now())",
        "SELECT * FROM ducklake_cleanup_old_files('warehouse', cleanup_all => true)",
        "ATTACH '{connection}' AS other (TYPE postgres)",
        "ATTACH ':memory:' AS other",
        "SET enable_external_access = true",
        "LOAD httpfs",
        "SELECT 1; COPY audit_corpus TO '{lake}/out.csv'",
    ],
)
def test_a_query_reaches_nothing_but_the_warehouse(both: dict[str, Warehouse], tmp_path: Path, sql: str) -> None:
    lake = both["lake"]
    assert isinstance(lake, Lake)
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    before = sorted(lake.data_path.rglob("*"))
    words = {"folder": tmp_path, "lake": lake.data_path, "connection": lake.connection, "schema": lake.schema}
    with pytest.raises(EmbauditError):
        run_query(lake, sql.format(**words))
    assert sorted(lake.data_path.rglob("*")) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO audit_corpus VALUES ('a2', 'sts', 's1')",
        "CREATE TABLE mine (a INTEGER)",
        "INSERT INTO __ducklake_metadata_warehouse.{schema}.ducklake_metadata VALUES ('a', 'b', NULL, NULL)",
        "SELECT * FROM postgres_execute('__ducklake_metadata_warehouse', 'CREATE TABLE hack (a INTEGER)')",
        "COPY audit_corpus TO '{folder}/out.csv'",
        "SET lock_configuration = false",
    ],
)
def test_the_connection_itself_is_read_only(both: dict[str, Warehouse], tmp_path: Path, sql: str) -> None:
    lake = both["lake"]
    assert isinstance(lake, Lake)
    with open_reader(lake) as connection, pytest.raises(duckdb.Error):
        connection.execute(sql.format(schema=lake.schema, folder=tmp_path))


@pytest.mark.parametrize(
    "sql", ["SHOW ALL TABLES", "SUMMARIZE token", "EXPLAIN SELECT 1", "SELECT * FROM range(3)", "FROM latest_audit"]
)
def test_what_people_ask_passes(both: dict[str, Warehouse], sql: str) -> None:
    assert run_query(both["lake"], sql).rows
