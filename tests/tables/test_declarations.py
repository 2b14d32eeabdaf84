"""The declarations are what a warehouse contains, and what the measures mean."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import FrozenInstanceError, asdict
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb
import pytest

from embaudit.declared.figure import Summary, SummaryFigure, Worse, cell_view, figure_view, interval_view
from embaudit.declared.table import COSINE, Interval, Row, Series, column, computed, rule
from embaudit.measures import MEASURES
from embaudit.measures.length.curve import CONDITIONS
from embaudit.measures.measure import parts_of
from embaudit.measures.sticky.moments import PROTOCOLS
from embaudit.measures.sticky.tables import Severity
from embaudit.measures.tempscale.compare import ArmName, Recommendation
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.lake import WRITER_TABLE
from embaudit.warehouse.markdown import schema_page, tables_page
from embaudit.warehouse.migrate import known_views
from embaudit.warehouse.tables import SUMMARIES, TABLES
from embaudit.warehouse.write import meaning_of_view, meanings_of_columns, written


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Any], list[list[str]]]]:
    """The columns and primary keys that DuckDB has of each table of a new warehouse."""
    path = tmp_path_factory.mktemp("declared") / "warehouse.duckdb"
    with open_writer(path, 0) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns()"
        ).fetchall()
        keys = connection.execute(
            "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
        ).fetchall()
    return {
        name: ([found for table, *found in columns if table == name], [key for table, key in keys if table == name])
        for name in TABLES
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_warehouse_is_as_declared(
    name: str, created: dict[str, tuple[list[Any], list[list[str]]]]
) -> None:
    table = TABLES[name]
    columns, keys = created[name]
    own = [] if table.scope == "content" else [["audit_id", "VARCHAR", False]]
    assert columns == [*own, *([one.name, one.sql_type, one.is_nullable] for one in table.columns.values())]
    assert keys == ([] if table.is_bulk else [list(table.primary_key)])


@pytest.mark.parametrize("name", TABLES)
def test_everything_is_explained(name: str) -> None:
    table = TABLES[name]
    assert table.meaning
    for said in (table.meaning, *(one.meaning for one in (*table.columns.values(), *table.rules))):
        assert said.endswith((".", "…")), said
    assert set(table.keys) <= set(table.columns)
    assert bool(table.summary) == bool(table.item)


def members(table: str, column: str) -> set[str]:
    return set(TABLES[table].columns[column].members)


def test_members_are_those_of_the_measures() -> None:
    assert members("sticky_validation", "protocol") == members("sticky_summary", "protocol") == set(PROTOCOLS)
    assert members("sticky_validation", "severity") == set(get_args(Severity))
    assert members("length_bin", "condition") == members("length_rise", "condition") == set(CONDITIONS)
    assert members("tempscale", "arm") == set(get_args(ArmName))
    assert members("tempscale_choice", "recommendation") == set(get_args(Recommendation))


def test_a_folder_that_an_older_checkout_left_is_no_part_of_a_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "measure_of_one_file"
    # Git removes files alone.
    (package / "steps" / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "work.py").write_text("measure = findings = len\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert parts_of(package.name)().measure is len


def test_declarations_need_no_pandas_and_no_database() -> None:
    heavy = "{'pandas', 'numpy', 'duckdb', 'pyarrow', 'great_expectations', 'prefect', 'torch'}"
    code = f"import sys, embaudit.warehouse.tables; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---- what a declaration becomes ----


class Shared(Row):
    """Lends its columns."""

    corpus: str = column("Name.")
    share: float | None = column("A share.", ge=0, interval=Interval("made up"), figure=Worse("higher", absolute=0.1))

    @computed(required=True, at_least="share")
    def share_and_more(share: Series) -> Series:
        """A little more."""
        return share + 1


class Example(Shared, table="example", key=("corpus", "place"), item="{corpus}"):
    """An example."""

    place: int = column("Where.", unit="tokens", ge=0)
    kind: Literal["a", "b"] | None = column("What.")

    @rule
    def share_is_small(share_and_more: Series, place: Series) -> Series:
        """Small."""
        return share_and_more < place


def test_columns_are_keys_first_then_in_order_with_intervals() -> None:
    table = Example.table
    assert list(table.columns) == ["corpus", "place", "share", "share_low", "share_high", "kind"]
    assert table.schema["place"] == "int32"
    assert (table.columns["kind"].members, table.columns["kind"].is_nullable) == (("a", "b"), True)
    assert table.columns["share"].at_least == ("share_low",)
    assert table.columns["share_high"].at_least == ("share",)
    assert table.columns["place"].comment == "Where [tokens]."
    assert table.primary_key == ("audit_id", "corpus", "place")
    assert table.summary
    (figure,) = table.summary.figures
    assert (figure.name, figure.low, figure.high) == ("share", "share_low", "share_high")
    assert [one.name for one in table.rules] == ["share_and_more", "share_is_small"]


class Measured(Row):
    """What is computed, whichever corpus it is about."""

    count: int = column("How many.")
    share: float = column("A share.", interval=Interval("made up"))
    share_low: float | None
    share_high: float | None
    last: str = column("The last.")


class Published(Measured, Shared, table="published", key=("corpus",), item="{corpus}"):
    """Its table."""

    share: float = column("A share.", interval=Interval("made up"), figure=True)
    between: int = column("In between.", after="count")
    at_the_end: int = column("At the end.")


def test_a_result_is_an_instance_of_what_its_table_inherits_from() -> None:
    names = ["corpus", "share", "share_low", "share_high", "count", "between", "last", "at_the_end"]
    assert list(Published.table.columns) == names
    result = Measured(count=1, share=0.5, share_low=0.4, share_high=None, last="")
    assert result == Measured(count=1, share=0.5, share_low=0.4, share_high=None, last="")
    assert (
        vars(result) == asdict(result) == {"count": 1, "share": 0.5, "share_low": 0.4, "share_high": None, "last": ""}
    )
    row = Published(corpus="a", between=2, at_the_end=3, **vars(result))
    assert vars(row).keys() == set(names)
    with pytest.raises(FrozenInstanceError):
        result.count = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"missing.*last"):
        Measured(count=1, share=0.5, share_low=0.4, share_high=0.6)  # type: ignore[call-arg]


def test_rules_read_the_columns_that_they_name() -> None:
    import pandas as pd

    frame = pd.DataFrame({"place": [0, 9], "share": [0.5, 0.5]})
    assert Example.table.derive(frame)["share_is_small"].tolist() == [False, True]
    assert list(Example.table.derive(frame.drop(columns="place"))) == ["share", "share_and_more"]
    assert list(Example.table.derive(frame.drop(columns="share"))) == ["place"]
    assert list(frame) == ["place", "share"]


def test_a_declaration_that_cannot_be_is_refused() -> None:
    with pytest.raises(TypeError, match=r"reads \['nothing'\]"):

        class Misread(Row, table="misread", key=("a",)):
            """Reads what it does not have."""

            a: int = column("A.")

            @rule
            def is_right(nothing: Series) -> Series:
                return nothing

    with pytest.raises(TypeError, match=r"compared with 'nothing'"):

        class Miscompared(Row, table="miscompared", key=("a",)):
            """Is compared with what it does not have."""

            a: int = column("A.", at_least="nothing")

    with pytest.raises(TypeError, match=r"not \['a'\] and ''"):

        class OfNothing(Row, table="of_nothing", key=("a",)):
            """Has a figure, and does not say of what: its view would be no SQL."""

            a: float = column("A.", figure=True)

    with pytest.raises(TypeError, match=r"a is annotated"):

        class Undeclared(Row, table="undeclared", key=("a",)):
            """Says a type and no meaning."""

            a: int


def test_ranges_of_cosines_allow_for_rounding() -> None:
    assert TABLES["sticky_pair"].columns["similarity"].within == COSINE
    assert COSINE[1] == 1 + 1e-6


# ---- what the declarations say stands in the warehouse and in the documentation ----


ROOT = Path(__file__).parents[2]
PAGES = {"docs/tables.md": tables_page, "sql/schema.sql": schema_page}


Comments = dict[tuple[str, str], str]


def comments(path: Path) -> Comments:
    """By table or view, and column."""
    with open_reader(path) as connection:
        return comments_of(connection)


def comments_of(connection: duckdb.DuckDBPyConnection) -> Comments:
    found = connection.execute(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    return {(table, column): comment for table, column, comment in found}


def comments_of_tables(path: Path) -> dict[str, str]:
    """Of views, too."""
    with open_reader(path) as connection:
        return dict(
            connection.execute(
                "SELECT table_name, comment FROM duckdb_tables() "
                "UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        )


def astray(said: dict[str, Any], columns: set[tuple[str, str]]) -> list[str]:
    """What ``meanings.toml`` says of what is not there, or says again of what a row class declares."""
    declared = {(name, column) for name, table in TABLES.items() for column in table.columns}
    named = {(table, column) for table, found in said["columns"].items() for column in found}
    tables = {table for table, _ in columns} - set(TABLES) - set(known_views())
    return sorted([*(said["tables"].keys() - tables), *map(".".join, (named - columns) | (named & declared))])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_make_docs_writes(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == PAGES[page](), "make docs"


def test_every_table_view_and_column_is_on_the_page_and_no_row_is_broken_by_what_it_says(empty_once: Path) -> None:
    page, found = tables_page(), comments(empty_once)
    rows = [line.replace("\\|", "") for line in page.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row.count("|") not in (4, 5)] == []
    headings = sorted(line.removeprefix("### ").strip("`") for line in page.splitlines() if line.startswith("### "))
    assert headings == sorted({table for table, _ in found})
    # A table's audit_id is said in the introduction; a view's is listed, since it may be another's.
    implied = [name for name, table in TABLES.items() if table.scope == "audit"]
    assert len(rows) == len(found) + len(headings) - len(implied)


def test_every_table_view_and_column_of_a_warehouse_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with open_writer(path, 0):
        pass
    found, of_tables = comments(path), comments_of_tables(path)
    assert set(of_tables) == {table for table, _ in found} > {*TABLES, *known_views()}
    explained = {**found, **of_tables}
    assert [of for of, text in explained.items() if not text or not text.split("(embaudit ")[0].strip()] == []
    declared = {
        (name, column.name): column.comment for name, table in TABLES.items() for column in table.columns.values()
    }
    assert {of: found[of] for of in declared} == declared
    assert {name: of_tables[name] for name in TABLES} == {name: table.meaning for name, table in TABLES.items()}
    assert of_tables["leaderboard"].startswith("One row per checkpoint: the figures to compare checkpoints by")
    # Read, read through another view, computed, and read in another sense.
    assert found["latest_audit", "hidden_size"] == found["checkpoint", "hidden_size"]
    assert found["leaderboard", "u"] == found["sticky_summary", "u"]
    assert found["backbone_change", "delta"] == found["backbone_delta", "delta"] == "value − backbone_value."
    assert found["watched_source", "reason"] == found["watched_revision", "reason"] != found["found_item", "reason"]


def test_audit_id_means_the_same_in_every_table_of_an_audit(empty_once: Path) -> None:
    found = comments(empty_once)
    assert {found[name, "audit_id"] for name, table in TABLES.items() if table.scope == "audit"} == {
        found["audit", "audit_id"]
    }


def test_nothing_is_said_of_what_is_not_there_or_is_declared(empty_once: Path) -> None:
    said = tomllib.loads(written())
    columns = {*comments(empty_once), (WRITER_TABLE, "writes")}
    assert astray(said, columns) == []
    for gone in (("leaderboard", "audits"), ("pruning", "rows"), (WRITER_TABLE, "writes")):
        assert ".".join(gone) in astray(said, columns - {gone})
    again = {"tables": {"token": "A token."}, "columns": {"token": {"script": "Its script."}}}
    assert astray(again, columns) == ["token", "token.script"]


def test_a_column_of_a_view_that_nothing_explains_has_no_meaning() -> None:
    view = "-- Two of them,\n-- counted.\nCREATE VIEW mine AS SELECT source, 1 AS new\nFROM checkpoint -- now"
    stored = {"checkpoint": ["source"], "mine": ["source", "new"], "somebodys": ["audit_id"]}
    assert meanings_of_columns({"mine": view}, stored)["mine"] == {
        "source": TABLES["checkpoint"].columns["source"].comment
    }
    assert "somebodys" not in meanings_of_columns({}, stored)
    assert meaning_of_view(view) == "Two of them, counted."


@pytest.mark.slow
def test_words_are_written_again_only_where_they_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "warehouse.duckdb"
    with open_writer(path, 0) as connection:
        connection.execute("COMMENT ON COLUMN token.script IS 'mine'")
    with open_writer(path, 0):
        pass
    assert comments(path)["token", "script"] == "mine"
    before = written()
    with monkeypatch.context() as patch:
        patch.setattr("embaudit.warehouse.write.written", lambda: before.replace("The paper.", "Theirs."))
        with open_writer(path, 0):
            pass
        assert comments(path)["published_figure", "source"] == comments(path)["published_beside_own", "published_in"]
        assert comments(path)["published_figure", "source"] == "Theirs."
        assert comments(path)["token", "script"] == TABLES["token"].columns["script"].comment
    with open_writer(path, 0) as connection:
        assert comments_of(connection)["published_figure", "source"] == "The paper."
        connection.execute("DROP VIEW leaderboard")
    # A view that comes back is explained again.
    with open_writer(path, 0):
        pass
    assert comments(path)["leaderboard", "u"] == TABLES["sticky_summary"].columns["u"].comment


def test_opening_writes_nothing_where_nothing_has_changed(empty_warehouse: Path) -> None:
    path = empty_warehouse
    before = path.read_bytes()
    with open_writer(path, 0) as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() is not None
    with duckdb.connect(str(path), read_only=True):
        pass
    assert path.read_bytes() == before


# ---- figures: how their items are called, and the views that gather them ----


LAYERS = Summary(
    "stat", "{corpus}, layer {layer}", (SummaryFigure("r", "r", Worse("lower"), "r_low", "r_high", dtype="own"),)
)
WORST = Summary("token", "it's worst", (SummaryFigure("loss", "max(loss)"),), is_aggregate=True)


def test_an_item_and_its_parts() -> None:
    assert LAYERS.item_sql == "corpus || ', layer ' || layer"
    assert LAYERS.parts_of("a, layer b, layer 12") == {"corpus": "a, layer b", "layer": "12"}
    assert WORST.item_sql == "'it''s worst'"
    assert WORST.parts_of("it's worst") == {}
    with pytest.raises(ValueError, match="not an item of stat"):
        LAYERS.parts_of("wikipedia")


def test_views_gather_cells_figures_and_intervals() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE audit AS SELECT unnest(['a', 'b']) AS audit_id, 'published' AS status, 'float32' AS dtype"
        )
        connection.execute("INSERT INTO audit VALUES ('c', 'checked', 'float32')")
        connection.execute(
            "CREATE TABLE stat (audit_id VARCHAR, corpus VARCHAR, layer INTEGER, r DOUBLE, r_low DOUBLE, "
            "r_high DOUBLE, own VARCHAR)"
        )
        connection.execute(
            "INSERT INTO stat VALUES ('a', 'w', 0, 2, 1, 3, 'bfloat16'), ('a', 'w', 1, NULL, NULL, NULL, NULL), "
            "('c', 'w', 0, 1, 1, 1, NULL)"
        )
        connection.execute("CREATE TABLE token (audit_id VARCHAR, loss DOUBLE)")
        connection.execute("INSERT INTO token VALUES ('b', 0.1), ('b', 0.3)")
        for sql in (cell_view((LAYERS, WORST)), figure_view(), interval_view((LAYERS, WORST))):
            connection.execute(sql)
        cells = connection.execute("FROM summary_cell ORDER BY ALL").fetchall()
        # In the figure's own precision, or else the audit's.
        empty = ("a", "stat", "w, layer 1", "r", None, "float32")
        assert cells == [
            ("a", "stat", "w, layer 0", "r", 2.0, "bfloat16"),
            empty,
            ("b", "token", "it's worst", "loss", 0.3, "float32"),
        ]
        assert connection.execute("FROM summary_figure ORDER BY ALL").fetchall() == [
            one for one in cells if one != empty
        ]
        intervals = connection.execute("FROM summary_interval WHERE low IS NOT NULL ORDER BY ALL").fetchall()
        assert intervals == [("a", "stat", "w, layer 0", "r", 1.0, 3.0), ("c", "stat", "w, layer 0", "r", 1.0, 1.0)]


def test_every_summary_is_a_view_or_a_table_with_its_own_name() -> None:
    assert set(SUMMARIES) == {
        *("sticky_summary", "sticky_token", "sticky_reference_summary", "socm_summary", "layer_stat", "length_rise"),
        *("sticky_severity", "geometry", "pooled_stat", "socm_cut", "socm_length", "socm_contrast", "socm_pooling"),
        *(
            "length_ranking",
            "quality",
            "surface",
            "meaning",
            "meaning_search",
            "position",
            "attractor",
            "attractor_summary",
        ),
        *("chunk", "chunk_length", "compression", "language"),
        *("occurrence_corpus", "sticky_shape", "impact", "mitigation", "mitigation_loss", "placement"),
    }


def test_what_a_reader_asks_for_first_is_a_figure() -> None:
    named = [
        (table, name)
        for measure in MEASURES.values()
        for table, names in measure.headline_figures.items()
        for name in names
    ]
    assert named
    for table, name in named:
        assert name in {figure.name for figure in SUMMARIES[table].figures}, (table, name)
