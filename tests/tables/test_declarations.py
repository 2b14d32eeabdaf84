"""The declarations are what a warehouse contains, and what the measures mean."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Literal, get_args

import pytest

from embaudit.declared.figure import Worse
from embaudit.declared.table import COSINE, Interval, Row, Series, column, computed, rule
from embaudit.measures.length.curve import CONDITIONS
from embaudit.measures.sticky.moments import PROTOCOLS, Severity
from embaudit.measures.tempscale.compare import ArmName, Recommendation
from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.tables import TABLES


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
