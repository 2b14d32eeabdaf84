"""The questions in ``sql/queries`` and the views under them, on a small warehouse with numbers worked out by hand."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from plausible import (
    CONTROL_SLOPE,
    SLOPES,
    TRACES,
    audit_record,
    expectation,
    measure_runs,
    plausible_rows,
    socm_pairs,
    stage_all,
)

from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.publish import publish
from embaudit.warehouse.query import named_queries, run_query

SQL = files("embaudit_sql")
QUERIES = sorted(named_queries())
VIEWS = ["latest_audit", "leaderboard", "sticky_token"]
SOCM_MEAN = sum(row["socm"] for row in socm_pairs("wikipedia", TRACES)) / 6


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints: c1 audited twice (the newer one counts) with a third run failed, c2 once."""
    folder = tmp_path_factory.mktemp("queries")
    warehouse = folder / "warehouse.duckdb"
    older, newer, other = (
        stage_all(folder / name, plausible_rows(checkpoint, source, shift))
        for name, checkpoint, source, shift in (
            ("older", "c1", "packaged:tiny", -0.2),
            ("newer", "c1", "packaged:tiny", 0.0),
            ("other", "c2", "owner/other", 0.1),
        )
    )
    publish(warehouse, 0, audit_record("a1", minutes=0), measure_runs(), [expectation()], older)
    publish(warehouse, 0, audit_record("a2", minutes=10), measure_runs(), [expectation()], newer)
    publish(warehouse, 0, audit_record("a3", "c2", minutes=5), measure_runs(), [expectation()], other)
    failed = [expectation("socm_pair", 2, success=False), expectation("token")]
    publish(warehouse, 0, audit_record("a4", "c1", "failed", "1 of 2 checks", minutes=20), [], failed, [])
    return warehouse


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse without a row."""
    path = tmp_path_factory.mktemp("empty") / "warehouse.duckdb"
    with open_writer(path, 0):
        pass
    return path


def ask(warehouse: Path, name: str) -> list[dict[str, Any]]:
    result = run_query(warehouse, name)
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]


@pytest.mark.parametrize("folder", ["migrations", "views", "queries"])
def test_every_file_says_in_its_first_line_what_it_is(folder: str) -> None:
    found = [file for file in SQL.joinpath(folder).iterdir() if file.name.endswith(".sql")]
    assert found
    for file in found:
        head = file.read_text(encoding="utf-8").split("\n", 1)[0]
        assert head.startswith("-- "), file.name
        assert head.rstrip()[-1] in (".?" if folder != "queries" else "?"), file.name


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_answers_on_a_filled_warehouse(filled: Path, name: str) -> None:
    result = run_query(filled, name)
    assert result.rows
    assert len(set(result.columns)) == len(result.columns)


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_has_no_answer_on_an_empty_warehouse(empty: Path, name: str) -> None:
    assert run_query(empty, name).rows == []


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_reads_on_both(filled: Path, empty: Path, view: str) -> None:
    with open_reader(filled) as connection:
        assert connection.execute(f"SELECT * FROM {view}").fetchall()
    with open_reader(empty) as connection:
        assert connection.execute(f"SELECT * FROM {view}").fetchall() == []
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()
    assert [name for (name,) in views] == VIEWS


def test_latest_audit_is_the_newest_published_one(filled: Path) -> None:
    with open_reader(filled) as connection:
        found = connection.execute("SELECT source, audit_id FROM latest_audit ORDER BY ALL").fetchall()
    assert found == [("owner/other", "a3"), ("packaged:tiny", "a2")]


def test_audits_are_listed_newest_first_with_their_end(filled: Path) -> None:
    rows = ask(filled, "audits")
    assert [(row["audit_id"], row["source"], row["status"], row["reason"]) for row in rows] == [
        ("a4", "packaged:tiny", "failed", "1 of 2 checks"),
        ("a2", "packaged:tiny", "published", None),
        ("a3", "owner/other", "published", None),
        ("a1", "packaged:tiny", "published", None),
    ]


def test_checkpoints_count_their_published_audits(filled: Path) -> None:
    assert [(row["source"], row["audits"], row["last_audit"].minute) for row in ask(filled, "checkpoints")] == [
        ("packaged:tiny", 2, 10),
        ("owner/other", 1, 5),
    ]


def test_corpora_say_what_was_dropped(filled: Path) -> None:
    assert [(r["name"], r["read"], r["kept"], r["duplicate"], r["broken"]) for r in ask(filled, "corpora")] == [
        ("sts", 3, 2, 0, 1),
        ("wikipedia", 5, 4, 1, 0),
    ]


def test_coverage_counts_tokens_and_encodes_by_draws(filled: Path) -> None:
    """Five tokens got 1 draw each, the three candidates 15 each."""
    for source in ("owner/other", "packaged:tiny"):
        rows = [row for row in ask(filled, "coverage") if row["source"] == source]
        assert [(row["draws"], row["tokens"], row["candidates"], row["encodes"]) for row in rows] == [
            (1, 5, 0, 5),
            (15, 3, 3, 45),
        ]


def test_vocabulary_counts_categories_and_what_is_reachable(filled: Path) -> None:
    rows = [row for row in ask(filled, "vocabulary") if row["source"] == "packaged:tiny"]
    assert {row["category"]: (row["tokens"], row["reachable"]) for row in rows} == {
        "ok": (6, 6),
        "special": (1, 0),
        "unreachable_multi": (1, 1),
    }


def test_sticky_by_script_counts_the_lowest_slopes(filled: Path) -> None:
    """All eight tokens are among the hundred lowest; medians of slopes by hand."""
    rows = {
        (row["script"], row["origin"]): (row["tokens"], row["median_slope"], row["among_100_lowest"])
        for row in ask(filled, "sticky-by-script")
        if row["source"] == "packaged:tiny"
    }
    assert rows == {
        ("Latin", "word"): (2, 0.785, 2),  # .80 .77
        ("Latin", "piece"): (2, 0.725, 2),  # .75 .70
        ("Han", "word"): (1, 0.3, 1),
        ("Bengali", "word"): (1, 0.4, 1),
        ("Common", "special"): (1, 0.55, 1),
        ("Common", "digits"): (1, 0.78, 1),
    }


def test_worst_tokens_are_candidates_by_loss(filled: Path) -> None:
    rows = [row for row in ask(filled, "worst-tokens") if row["source"] == "packaged:tiny"]
    assert [(row["token"], row["severity"]) for row in rows] == [
        ("龸", "strong"),  # 1 - .30/.785
        ("ন", "moderate"),  # 1 - .40/.785
        ("[MASK]", "moderate"),  # 1 - .55/.785
    ]
    assert rows[0]["loss"] == pytest.approx(1 - 0.30 / 0.785, abs=6e-4)
    assert [(row["retention_verdict"], row["definition_verdict"]) for row in rows] == [
        ("sticky", "sticky"),
        ("not_sticky", "not_sticky"),
        ("not_sticky", "not_sticky"),
    ]


def test_socm_is_one_row_a_checkpoint_and_corpus(filled: Path) -> None:
    rows = ask(filled, "socm")
    assert [(row["source"], row["corpus"], row["texts"], row["pairs"]) for row in rows] == [
        ("owner/other", "wikipedia", 4, 6),
        ("packaged:tiny", "wikipedia", 4, 6),
    ]
    assert rows[0]["socm_mean"] == pytest.approx(SOCM_MEAN, abs=5e-5)
    assert rows[0]["share_trace_above_2"] == 0.25


def test_the_worst_pairs_come_with_their_texts(filled: Path) -> None:
    rows = ask(filled, "socm-worst-pairs")
    assert len(rows) == 12
    best = max(socm_pairs("wikipedia", TRACES), key=lambda row: row["socm"])
    texts = [row["text"] for row in plausible_rows()["text"]]
    assert (rows[0]["first_text"], rows[0]["second_text"]) == (texts[best["first"]], texts[best["second"]])
    assert rows[0]["socm"] == round(best["socm"], 4)
    assert [row["socm"] for row in rows] == sorted((row["socm"] for row in rows), reverse=True)


def test_failed_checks_name_audit_and_rows(filled: Path) -> None:
    (row,) = ask(filled, "failed-checks")
    assert (row["audit_id"], row["table_name"], row["shard"], row["severity"]) == ("a4", "socm_pair", 2, "critical")
    assert row["unexpected_count"] == 2
    assert row["examples"] == '[{"token_id": 3}]'


def test_the_leaderboard_compares_the_newest_audits(filled: Path) -> None:
    rows = {row["source"]: row for row in ask(filled, "leaderboard")}
    assert list(rows) == ["packaged:tiny", "owner/other"]  # worst loss first
    tiny, other = rows.values()
    assert tiny["worst_loss"] == pytest.approx(1 - SLOPES[4] / CONTROL_SLOPE)
    assert other["worst_loss"] == pytest.approx(1 - (SLOPES[4] + 0.1) / CONTROL_SLOPE)
    # c1: .62 .49 .30; c2: .49 .36 .17
    assert (tiny["strong_or_moderate_tokens"], other["strong_or_moderate_tokens"]) == (3, 2)
    assert tiny["u"] == 0.2
    assert tiny["socm_mean"] == pytest.approx(SOCM_MEAN, abs=5e-5)
    assert (tiny["socm_corpora"], tiny["basis"], tiny["profile"]) == ("wikipedia", "screened", "quick")


def test_the_leaderboard_averages_corpora_and_lives_without_a_measure(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    rows = plausible_rows()
    summary = rows["socm_summary"][0]
    rows["socm_summary"].append({**summary, "corpus": "msmarco", "socm_mean": summary["socm_mean"] + 0.1})
    without_sticky = {name: part for name, part in rows.items() if not name.startswith("sticky")}
    publish(warehouse, 0, audit_record(), [], [], stage_all(tmp_path / "socm", without_sticky))
    (row,) = ask(warehouse, "leaderboard")
    assert row["socm_mean"] == pytest.approx(SOCM_MEAN + 0.05, abs=1e-4)
    assert row["socm_corpora"] == "msmarco, wikipedia"
    assert (row["worst_loss"], row["strong_or_moderate_tokens"]) == (None, None)

    without_socm = {name: part for name, part in plausible_rows("c2", "b").items() if not name.startswith("socm")}
    publish(warehouse, 0, audit_record("a2", "c2"), [], [], stage_all(tmp_path / "sticky", without_socm))
    rows_now = ask(warehouse, "leaderboard")
    assert [row["socm_mean"] is None for row in rows_now] == [True, False]


def test_two_checkpoints_of_one_name_stay_apart(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    for audit_id, checkpoint in (("a1", "c1"), ("a2", "c2")):
        staged = stage_all(tmp_path / audit_id, plausible_rows(checkpoint, "folder/model"))
        publish(warehouse, 0, audit_record(audit_id, checkpoint), [], [], staged)
    assert len(ask(warehouse, "leaderboard")) == 2
    assert {row["tokens"] for row in ask(warehouse, "coverage")} == {5, 3}
    assert sum(row["tokens"] for row in ask(warehouse, "vocabulary")) == 16
