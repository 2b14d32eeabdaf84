"""The questions in ``sql/queries`` and the views under them, on a small warehouse with numbers worked out by hand."""

from __future__ import annotations

from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from asking import ask
from plausible import audit_record, plausible_rows
from plausible_socm import TRACES, socm_pairs
from plausible_sticky import CONTROL_SLOPE, SLOPES
from ready_warehouses import put_audit
from some_rows import mostly_slow

from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.query import named_queries

SQL = files("embaudit_sql")
VIEWS = sorted(
    [
        *(
            "latest_audit",
            "latest_result",
            "latest_verdict",
            "named_checkpoint",
            "layer_curve",
            "leaderboard",
            "length_curve",
            "sigma_by_length",
            "socm_margin",
            "socm_scatter",
            "socm_value",
        ),
        *("sticky_across_checkpoints", "sticky_shift_by_token", "sticky_token"),
        *("sticky_text", "sticky_text_across_checkpoints", "sticky_overlap", "sticky_size"),
        *(
            "summary_cell",
            "summary_figure",
            "backbone_change",
            "backbone_delta",
            "backbone_socm_change",
            "tempscale_answer",
            "tempscale_curve",
        ),
        *("checkpoint_match", "published_beside_audit", "published_beside_own", "score_beside_measure"),
        *("gate_finding", "gate_outcome"),
        *("audit_question", "audit_predecessor", "summary_interval", "sticky_change", "watched_source", "found_item"),
        *("socm_change", "weight_change", "audit_named"),
        *("figure_history", "index_history", "endpoint_history", "golden_history"),
        *("latest_answer", "answer_history", "recall_history"),
    ]
)
SOCM_MEAN = sum(row["socm"] for row in socm_pairs("wikipedia", TRACES)) / 6


@pytest.mark.parametrize("folder", ["migrations", "views", "queries"])
def test_every_file_says_in_its_first_line_what_it_is(folder: str) -> None:
    found = [file for file in SQL.joinpath(folder).iterdir() if file.name.endswith(".sql")]
    assert found
    for file in found:
        head = file.read_text(encoding="utf-8").split("\n", 1)[0]
        assert head.startswith("-- "), file.name
        assert head.rstrip()[-1] in (".?" if folder != "queries" else "?"), file.name


@pytest.mark.parametrize("has_rows", mostly_slow([True, False], 1))
def test_every_query_and_view_answers_with_and_without_audits(filled: Path, empty_once: Path, has_rows: bool) -> None:
    with open_reader(filled if has_rows else empty_once) as connection:
        for name, query in named_queries().items():
            assert len(connection.extract_statements(query.sql)) == 1, name
            cursor = connection.execute(query.sql)
            columns = [column[0] for column in cursor.description]
            assert len(set(columns)) == len(columns), name
            assert bool(cursor.fetchall()) == has_rows, name
        for view in VIEWS:
            assert bool(connection.execute(f"SELECT * FROM {view}").fetchall()) == has_rows, view
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1").fetchall()
    assert [name for (name,) in views] == VIEWS


def test_latest_audit_is_the_newest_published_one(filled: Path) -> None:
    with open_reader(filled) as connection:
        found = connection.execute("SELECT source, audit_id FROM latest_audit ORDER BY ALL").fetchall()
    assert found == [("packaged:tiny", "a2"), ("packaged:tiny", "a3")], "by the name that was asked for"


def test_audits_are_listed_newest_first_with_their_end(filled: Path) -> None:
    rows = ask(filled, "audits")
    assert [(row["audit_id"], row["source"], row["status"], row["reason"]) for row in rows] == [
        ("a4", "packaged:tiny", "failed", "1 of 2 checks"),
        ("a2", "packaged:tiny", "published", None),
        ("a3", "packaged:tiny", "published", None),
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
    assert [(row["retention_outlier"], row["definition_outlier"]) for row in rows] == [
        ("yes", "yes"),
        ("no", "no"),
        ("no", "no"),
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


def test_the_worst_pairs_of_a_list_come_with_its_own_texts(empty_warehouse: Path) -> None:
    """A list's pairs are found by their place in the list, not by the numbers of their texts."""
    rows = plausible_rows()
    listed = {**rows["socm_listed_pair"][0], "corpus": "sts", "first": 2, "second": 0, "position": 1}
    rows["socm_listed_pair"] = [{**listed, "d_sigma": 4.0, "d_mu": 0.25, "socm": 3.0}]
    rows["socm_summary"].append({**rows["socm_summary"][0], "corpus": "sts", "corpus_id": "s1", "pair_kind": "listed"})
    put_audit(empty_warehouse, audit_record(), rows)
    found = ask(empty_warehouse, "socm-worst-pairs")
    assert len(found) == 7
    assert (found[0]["corpus"], found[0]["socm"]) == ("sts", 3.0)
    assert (found[0]["first_text"], found[0]["second_text"]) == ("Cats.", "Taxes.")


def test_the_scatter_is_a_sample_and_its_margins_count_every_pair(empty_warehouse: Path) -> None:
    rows = plausible_rows()
    size = 200
    generator = np.random.default_rng(0)
    rows["socm_pair"] = [
        {"corpus": "wikipedia", "first": i, "second": j, "d_mu": d_mu, "d_sigma": 2 * d_mu, "socm": 0.5}
        for (i, j), d_mu in zip(combinations(range(size), 2), generator.random(size * (size - 1) // 2), strict=True)
    ]
    rows["socm_summary"][0]["pairs"] = len(rows["socm_pair"])
    rows["socm_listed_pair"] = []
    put_audit(empty_warehouse, audit_record(), rows)
    with open_reader(empty_warehouse) as connection:
        shown = connection.execute("SELECT first, second, d_mu FROM socm_scatter ORDER BY ALL").fetchall()
        assert connection.execute("SELECT first, second, d_mu FROM socm_scatter ORDER BY ALL").fetchall() == shown
        margins = connection.execute("SELECT axis, bin, low, high, pairs FROM socm_margin ORDER BY ALL").fetchall()
    assert 1_500 < len(shown) < 3_000  # one in nine of 19 900
    values = np.array([row["d_mu"] for row in rows["socm_pair"]])
    expected, edges = np.histogram(values, bins=50, range=(0, values.max()))
    assert [pairs for axis, *_, pairs in margins if axis == "d_mu"] == expected.tolist()
    assert [low for axis, _, low, *_ in margins if axis == "d_mu"] == pytest.approx(edges[:-1].tolist(), abs=1e-6)
    assert sum(pairs for axis, *_, pairs in margins if axis == "d_sigma") == len(values)


def test_the_surface_of_exponents_has_its_ends(filled: Path) -> None:
    rows = [row for row in ask(filled, "socm-surface") if row["source"] == "packaged:tiny"]
    means = {(row["alpha"], row["beta"]): row["socm_mean"] for row in rows}
    pairs = socm_pairs("wikipedia", TRACES)
    assert means[0, 0] == 1
    assert means[1, 1] == pytest.approx(SOCM_MEAN, abs=5e-5)
    assert means[0, 1] == pytest.approx(sum(row["d_sigma"] for row in pairs) / 6, abs=5e-5)


def test_tightness_is_a_share_of_the_exact_distance(filled: Path) -> None:
    (row,) = [row for row in ask(filled, "socm-tightness") if row["source"] == "packaged:tiny"]
    assert (row["sampled_pairs"], row["gaussian_share_of_w2"], row["smallest_share"]) == (2, 0.5, 0.5)
    assert row["socm_sif"] == pytest.approx(row["socm_plain"] / 2, abs=1e-4)
    assert (row["share_cosine_above_third"], row["share_bounds_agree"]) == (0.75, 1.0)


def test_the_answer_about_temperatures_has_its_interval(filled: Path) -> None:
    answers = [row for row in ask(filled, "tempscale") if row["source"] == "packaged:tiny"]
    assert [(row["recommendation"], row["low"], row["bin_high"]) for row in answers] == [
        ("yes", 0.01, None),
        ("no", -0.01, 100),
    ]
    assert all(row["difference"] == pytest.approx(row["score_after"] - row["score_before"]) for row in answers)
    arms = [
        row for row in ask(filled, "tempscale-arms") if row["source"] == "packaged:tiny" and row["bin_high"] is None
    ]
    assert [row["arm"] for row in arms] == ["none", "temperature", "centring", "chunk_average", "whitening"]


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


def test_the_leaderboard_averages_corpora_and_lives_without_a_measure(empty_warehouse: Path) -> None:
    rows = plausible_rows()
    summary = rows["socm_summary"][0]
    rows["socm_summary"].append({**summary, "corpus": "msmarco", "socm_mean": summary["socm_mean"] + 0.1})
    without_sticky = {name: part for name, part in rows.items() if not name.startswith("sticky")}
    put_audit(empty_warehouse, audit_record(), without_sticky)
    (row,) = ask(empty_warehouse, "leaderboard")
    assert row["socm_mean"] == pytest.approx(SOCM_MEAN + 0.05, abs=1e-4)
    assert row["socm_corpora"] == "msmarco, wikipedia"
    assert (row["worst_loss"], row["strong_or_moderate_tokens"]) == (None, None)

    without_socm = {name: part for name, part in plausible_rows("c2", "b").items() if not name.startswith("socm")}
    put_audit(empty_warehouse, audit_record("a2", "c2"), without_socm)
    rows_now = ask(empty_warehouse, "leaderboard")
    assert [row["socm_mean"] is None for row in rows_now] == [True, False]


def test_two_checkpoints_of_one_name_stay_apart(empty_warehouse: Path) -> None:
    for audit_id, checkpoint in (("a1", "c1"), ("a2", "c2")):
        put_audit(empty_warehouse, audit_record(audit_id, checkpoint), plausible_rows(checkpoint, "folder/model"))
    assert len(ask(empty_warehouse, "leaderboard")) == 2
    assert {row["tokens"] for row in ask(empty_warehouse, "coverage")} == {5, 3}
    assert sum(row["tokens"] for row in ask(empty_warehouse, "vocabulary")) == 16
