"""Severe tokens across vocabularies, by what they write, and beside the models' sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from asking import ask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audits

from embaudit.warehouse.connect import open_reader, open_writer

# Of the plausible vocabulary 4 (龸), 5 (ন) and 6 ([MASK]) are candidates, with losses of .62, .49 and .30.
SEVERE = {"龸", "ন", "[MASK]"}
Rows = dict[str, list[dict[str, Any]]]


def model(
    name: str, marks: dict[int, tuple[str, str]] | None = None, parameters: int = 12_345, weights: str = ""
) -> Rows:
    """An audited model; ``marks`` gives entries of its vocabulary other tokens and texts."""
    rows = plausible_rows(name, f"model/{name}")
    rows = {
        table: part for table, part in rows.items() if table in ("checkpoint", "token") or table.startswith("sticky")
    }
    rows["checkpoint"][0] |= {"parameters": parameters} | ({"weights_sha256": weights} if weights else {})
    for token_id, (token, text) in (marks or {}).items():
        rows["token"][token_id] |= {"token": token, "text": text}
    return rows


def audited(warehouse: Path, *models: Rows) -> Path:
    ids = [rows["checkpoint"][0]["checkpoint_id"] for rows in models]
    put_audits(
        warehouse,
        [(audit_record(f"a{place}", ids[place], minutes=place), rows) for place, rows in enumerate(models)],
    )
    return warehouse


def test_what_writes_the_same_is_one_token_whatever_its_marks(empty_warehouse: Path) -> None:
    """SentencePiece's marks, ids and order are others; 龸 is 龹 there, so that two severe ones are left."""
    other = model("s", {1: ("▁river", " river"), 4: ("▁龹", " 龹"), 5: ("▁ন", " ন"), 2: ("ed", "ed")})
    audited(empty_warehouse, model("b"), other)
    rows = ask(empty_warehouse, "sticky-texts-across-checkpoints")
    assert [(row["written"], row["severe_in"], row["checkpoints"]) for row in rows] == [("ন", 2, 2), ("[MASK]", 2, 2)]
    assert rows[0]["sources"] == ["model/b", "model/s"]
    assert ask(empty_warehouse, "sticky-across-checkpoints") == []
    (row,) = ask(empty_warehouse, "sticky-overlap")
    # 龸 and 龹 are in one vocabulary each; of seven that both have, two are severe in both.
    counts = [row[name] for name in ("shared", "severe", "other_severe", "severe_in_both")]
    assert counts == [7 - unreachable_without_special(), 2, 2, 2]
    assert row["jaccard"] == 1
    assert row["expected_by_chance"] == round(4 / counts[0], 2)
    assert row["times_chance"] == round(counts[0] / 2, 1)


def unreachable_without_special() -> int:
    """Entries of the plausible vocabulary, 龸 left aside, that no text can hold."""
    rows = plausible_rows("c", "c")["token"]
    return sum(not row["is_reachable"] and row["category"] != "special" for row in rows if row["token_id"] != 4)


def test_a_piece_that_goes_on_with_a_word_is_another_token(empty_warehouse: Path) -> None:
    word = model("w")
    word["token"][4] |= {"origin": "word"}
    piece = model("p")
    piece["token"][4] |= {"token": "##龸", "text": "##龸", "origin": "subword"}
    audited(empty_warehouse, word, piece)
    assert {row["written"] for row in ask(empty_warehouse, "sticky-texts-across-checkpoints")} == SEVERE - {"龸"}


def test_the_worst_of_several_entries_that_write_the_same_counts_once(empty_warehouse: Path) -> None:
    twice = model("t", {5: ("龸", "龸")})
    audited(empty_warehouse, twice)
    with open_reader(empty_warehouse) as connection:
        found = connection.execute("SELECT is_severe, loss FROM sticky_text WHERE written = '龸'").fetchall()
    losses = [
        row["loss"]
        for row in twice["sticky_validation"]
        if row["token_id"] in (4, 5) and row["protocol"] == "retention"
    ]
    assert found == [(True, max(losses))]


def test_one_model_under_two_poolings_is_one_and_blank_entries_are_none(empty_warehouse: Path) -> None:
    audited(
        empty_warehouse,
        model("b", {0: ("▁", " ")}, weights="cd" * 32),
        model("c", weights="cd" * 32),
    )
    assert ask(empty_warehouse, "sticky-overlap") == []
    assert len(ask(empty_warehouse, "sticky-size")) == 1
    audited(empty_warehouse, model("d", {0: ("▁", " ")}))
    with open_reader(empty_warehouse) as connection:
        assert connection.execute("SELECT count(*) FROM sticky_text WHERE written = ''").fetchall() == [(0,)]


@given(own=st.lists(st.booleans(), min_size=8, max_size=8), other=st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_overlaps_are_those_of_sets(two_models: duckdb.DuckDBPyConnection, own: list[bool], other: list[bool]) -> None:
    """Any severities of two vocabularies of eight, against Python's sets."""
    two_models.execute("DELETE FROM sticky_validation WHERE protocol = 'retention'")
    two_models.execute(
        "INSERT INTO sticky_validation BY NAME SELECT one.* REPLACE (unnest(?) AS audit_id, unnest(?) AS token_id, "
        "'retention' AS protocol, unnest(?) AS severity) FROM sticky_validation AS one "
        "WHERE audit_id = 'a0' AND token_id = 4 AND protocol = 'definition' AND role = 'candidate'",
        [
            ["a0"] * 8 + ["a1"] * 8,
            [*range(8), *range(8)],
            ["strong" if is_severe else "weak" for is_severe in (*own, *other)],
        ],
    )
    names = ("shared", "severe", "other_severe", "severe_in_both", "expected_by_chance", "times_chance", "jaccard")
    (row,) = two_models.execute(f"SELECT {', '.join(names)} FROM sticky_overlap").fetchall()
    a, b = ({place for place, is_severe in enumerate(severe) if is_severe} for severe in (own, other))
    lift = len(a & b) * 8 / (len(a) * len(b)) if a and b else None
    assert row == pytest.approx(
        (8, len(a), len(b), len(a & b), len(a) * len(b) / 8, lift, len(a & b) / len(a | b) if a | b else None)
    )


@pytest.fixture
def two_models(empty_warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Two models of one vocabulary, whose eight entries can all stand in a text."""
    models = [model(name) for name in ("b", "c")]
    for rows in models:
        for row in rows["token"]:
            row["is_reachable"] = True
    with open_writer(audited(empty_warehouse, *models), 0) as connection:
        yield connection


def test_sizes_are_beside_what_is_sticky_the_smallest_first(empty_warehouse: Path) -> None:
    """ρ of sizes 10, 20, 30, 40 with u .4, .3, .2, .1 is −1, and with a u that is the same everywhere none."""
    models = []
    for size in (40, 10, 30, 20):
        rows = model(f"m{size}", parameters=size)
        for row in rows["sticky_summary"]:
            row["u"] = 0.5 - size / 100
            row["searched"] = 8
        for row in rows["sticky_severity"]:
            row |= {"estimated": 2.0, "estimated_low": 1.0, "estimated_high": 3.0}
        models.append(rows)
    audited(empty_warehouse, *models)
    rows = ask(empty_warehouse, "sticky-size")
    assert [(row["parameters"], row["u"]) for row in rows] == [(10, 0.4), (20, 0.3), (30, 0.2), (40, 0.1)]
    assert {(row["moderate"], row["moderate_share"]) for row in rows} == {(2.0, 0.25)}
    rho = {row["measure"]: (row["checkpoints"], row["rho"]) for row in ask(empty_warehouse, "sticky-size-correlation")}
    assert rho == {"u": (4, -1.0), "moderate_share": (4, None), "worst_loss": (4, None)}
