"""The questions in ``sql/queries`` and the views under them, on a small warehouse with numbers worked out by hand."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plausible import (
    CONTROL_SLOPE,
    ENCODES,
    EXHAUSTIVE_ENCODES,
    SHIFTED,
    SIMILARITIES,
    SLOPES,
    audit_record,
    expectation,
    measure_runs,
    plausible_rows,
)
from plausible_socm import TRACES, socm_pairs
from ready_warehouses import put_audit

from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.query import named_queries, run_query

SQL = files("embaudit_sql")
VIEWS = sorted(
    [
        *(
            "latest_audit",
            "layer_curve",
            "leaderboard",
            "length_curve",
            "sigma_by_length",
            "socm_margin",
            "socm_scatter",
            "socm_value",
        ),
        *("sticky_across_checkpoints", "sticky_shift_by_token", "sticky_token"),
        *(
            "summary_cell",
            "summary_figure",
            "backbone_delta",
            "backbone_socm_change",
            "tempscale_answer",
            "tempscale_curve",
        ),
        *("checkpoint_match", "published_beside_audit", "published_beside_own", "score_beside_measure"),
        *("gate_finding", "gate_outcome"),
        *("audit_question", "audit_predecessor", "summary_interval", "sticky_change", "watched_source"),
    ]
)
SOCM_MEAN = sum(row["socm"] for row in socm_pairs("wikipedia", TRACES)) / 6


@pytest.fixture(scope="module")
def filled(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints: c1 audited twice (the newer one counts) with a third run failed, c2 once, under c1's name."""
    warehouse = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("queries")))
    before, now, others = (
        plausible_rows(checkpoint, source, shift)
        for checkpoint, source, shift in (
            ("c1", "packaged:tiny", -0.2),
            ("c1", "packaged:tiny", 0.0),
            ("c2", "owner/other", 0.1),
        )
    )
    # The rows of a1: no token was sticky then.
    before["sticky_validation"] = [
        {**row, "verdict": row["verdict"] and "not_sticky"} for row in before["sticky_validation"]
    ]
    put_audit(warehouse, audit_record("a1", minutes=0), before, measure_runs(), [expectation()])
    put_audit(warehouse, audit_record("a2", minutes=10), now, measure_runs(), [expectation()])
    between = audit_record("a3", "c2", minutes=5)
    between = replace(between, settings={**between.settings, "source": "packaged:tiny"})
    put_audit(warehouse, between, others, measure_runs(), [expectation()])
    failed = [expectation("socm_pair", 2, success=False), expectation("token")]
    put_audit(warehouse, audit_record("a4", "c1", "failed", "1 of 2 checks", minutes=20), {}, [], failed)
    with open_writer(warehouse, 0) as connection:
        connection.execute("INSERT INTO published_figure VALUES ('owner/other', 'u', '', 0.25, 'a paper')")
        connection.execute(
            "INSERT INTO downstream_score SELECT "
            "unnest(['tiny', 'owner/other']), '', 'Task', 'test', 'default', unnest([0.5, 0.6]), NULL, 'file', now()"
        )
    return warehouse


def sticky_part(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """What the questions about sticky tokens look at."""
    return {name: part for name, part in rows.items() if name in ("checkpoint", "token") or name.startswith("sticky")}


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


@pytest.mark.parametrize("has_rows", [True, False])
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


# ---- the search, and the evidence beside the verdicts ----


def of_tiny(warehouse: Path, name: str) -> list[dict[str, Any]]:
    """The rows of the checkpoint c1, which has two audits: only the newer one may answer."""
    rows = ask(warehouse, name)
    assert {(row["source"], row["checkpoint_id"]) for row in rows} == {("packaged:tiny", "c1"), ("owner/other", "c2")}
    return [row for row in rows if row["checkpoint_id"] == "c1"]


def changed(checkpoint_id: str, source: str, /, **changes: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """An audit's rows with other values in every row of some tables."""
    rows = plausible_rows(checkpoint_id, source)
    for table, values in changes.items():
        rows[table] = [{**row, **values} for row in rows[table]]
    return rows


def test_sticky_search_says_what_it_cost_and_missed(filled: Path) -> None:
    rows = of_tiny(filled, "sticky-search")
    assert [(row["protocol"], row["search"], row["scanned"], row["pilot"]) for row in rows] == [
        ("definition", "sequential", 8, 1),
        ("retention", "sequential", 8, 1),
    ]
    assert (rows[0]["encodes"], rows[0]["exhaustive_encodes"]) == (ENCODES, EXHAUSTIVE_ENCODES)
    assert rows[0]["times_fewer"] == 3.2  # 840 / 266
    assert (rows[0]["pilot_missed"], rows[0]["pilot_shortlisted"], rows[0]["miss_rate"]) == (0, 1, 0.0)
    assert (rows[0]["miss_low"], rows[0]["miss_high"]) == (0.0, 0.975)
    assert (rows[0]["scan_dtype"], rows[0]["rank_correlation"]) == ("bfloat16", 0.998)


def test_sticky_enrichment_names_what_is_over_represented(filled: Path) -> None:
    """One sticky token of eight, 龸: one of four words, the only one in Han, one of two that are not Latin."""
    rows = of_tiny(filled, "sticky-enrichment")
    assert [(row["selection"], row["attribute"], row["value"], row["fold"], row["p_value"]) for row in rows] == [
        (selection, *found)
        for selection in ("sticky_definition", "sticky_retention")
        for found in (("non_latin", "yes", 4.0, 0.25), ("origin", "word", 2.0, 1.0), ("script", "Han", 8.0, 0.125))
    ]
    assert (rows[2]["selected_with"], rows[2]["selected"], rows[2]["share_scanned"]) == (1, 1, 0.125)
    assert rows[2]["q_value"] == 0.5
    assert all(row["odds_ratio"] is None for row in rows)


def test_sticky_enrichment_cuts_each_selection_and_not_the_last_ones(empty_warehouse: Path) -> None:
    """A vocabulary of forty scripts must not leave the later selections, or the second checkpoint, without a row."""
    for audit_id, checkpoint in (("a1", "c1"), ("a2", "c2")):
        rows = plausible_rows(checkpoint, checkpoint)
        han = next(row for row in rows["sticky_enrichment"] if row["value"] == "Han")
        rows["sticky_enrichment"] = [
            {**han, "selection": selection, "value": f"script {i:02}", "p_value": 0.1 + i / 100, "q_value": 1.0}
            for selection in ("lowest_100", "sticky_definition", "sticky_retention", "strong_or_moderate")
            for i in range(40)
        ]
        put_audit(empty_warehouse, audit_record(audit_id, checkpoint), sticky_part(rows))
    found = ask(empty_warehouse, "sticky-enrichment")
    assert len(found) == 2 * 4 * 5
    assert {row["value"] for row in found} == {f"script {i:02}" for i in range(5)}
    assert len({(row["source"], row["selection"]) for row in found}) == 8


def test_sticky_dose_grows_with_the_copies(filled: Path) -> None:
    rows = of_tiny(filled, "sticky-dose")
    assert [(row["role"], row["token"], row["copies"], row["slope"]) for row in rows] == [
        *(("candidate", "龸", copies, slope) for copies, slope in zip((1, 2, 4, 8), (0.9, 0.7, 0.5, 0.3), strict=True)),
        *(
            ("control", "the", copies, slope)
            for copies, slope in zip((1, 2, 4, 8), (0.95, 0.9, 0.85, 0.8), strict=True)
        ),
    ]
    assert [row["loss"] for row in rows] == [0.053, 0.222, 0.412, 0.625, 0.0, 0.0, 0.0, 0.0]  # 1 - .90/.95, ...
    assert [row["pull"] for row in rows[:4]] == [0.02, 0.04, 0.08, 0.16]


def test_sticky_shift_compares_sticky_with_ordinary_tokens(filled: Path) -> None:
    rows = of_tiny(filled, "sticky-shift")
    assert [(row["role"], row["token"], row["pairs"]) for row in rows] == [("sticky", "龸", 3), ("ordinary", "the", 3)]
    # (.05 + .01 - .08) / 3 and (.01 + 0 - .02) / 3
    assert [row["delta_mean"] for row in rows] == [-0.007, -0.003]
    assert [row["delta_q50"] for row in rows] == [0.01, 0.0]
    assert [row["slope"] for row in rows] == [0.35, 0.85]  # (.12 - .05) / .2, (.18 - .01) / .2
    assert all(row["slope"] <= row["compression"] for row in rows)


@pytest.mark.parametrize("token", SHIFTED)
def test_the_view_of_shifts_agrees_with_numpy(filled: Path, token: int) -> None:
    before, after = np.array(SIMILARITIES), np.array(SHIFTED[token])
    with open_reader(filled) as connection:
        cursor = connection.execute(
            "SELECT * FROM sticky_shift_by_token WHERE audit_id = 'a2' AND token_id = ?", [token]
        )
        (row,) = [dict(zip([c[0] for c in cursor.description], found, strict=True)) for found in cursor.fetchall()]
    slope, _ = np.polyfit(before, after, 1)
    assert row["slope"] == pytest.approx(slope)
    assert row["compression"] == pytest.approx(np.std(after) / np.std(before))
    assert row["delta_mean"] == pytest.approx(np.mean(after - before))
    quantiles = [row[f"delta_q{level}"] for level in ("05", "25", "50", "75", "95")]
    assert quantiles == pytest.approx(np.quantile(after - before, [0.05, 0.25, 0.5, 0.75, 0.95]))


def test_the_view_of_shifts_lives_with_pairs_that_are_all_alike(empty_warehouse: Path) -> None:
    rows = changed("c1", "tiny", sticky_shift={"before": 0.5})
    put_audit(empty_warehouse, audit_record(), sticky_part(rows))
    with open_reader(empty_warehouse) as connection:
        found = connection.execute("SELECT compression, slope, pairs FROM sticky_shift_by_token").fetchall()
    assert found == [(None, None, 3)] * 2


def test_sticky_attention_is_layer_by_layer_and_first_without_special_tokens(filled: Path) -> None:
    rows = of_tiny(filled, "sticky-attention")
    assert [(row["includes_special"], row["layer"], row["sticky_tokens"], row["wasserstein"]) for row in rows] == [
        (False, 0, 2, 0.02),
        (False, 1, 2, 0.03),
        (True, 0, 3, 0.02),
        (True, 1, 3, 0.03),
    ]
    assert all((row["sticky_median"], row["ordinary_median"], row["p_value"]) == (0.05, 0.03, 0.01) for row in rows)


def test_reference_tokens_are_the_shortlist_by_value(filled: Path) -> None:
    rows = of_tiny(filled, "reference-tokens")
    assert [(row["token"], row["value"], row["score"], row["score_rank"], row["verdict"]) for row in rows] == [
        ("龸", 0.95, 9.0, 1, "sticky"),
        ("ন", 0.6, 4.0, 2, "not_sticky"),
    ]
    assert {row["threshold"] for row in rows} == {0.9}


def test_a_long_shortlist_of_one_checkpoint_leaves_room_for_the_other(empty_warehouse: Path) -> None:
    for audit_id, checkpoint in (("a1", "c1"), ("a2", "c2")):
        rows = plausible_rows(checkpoint, checkpoint)
        token, found = rows["token"][4], rows["sticky_reference"][3]
        rows["token"] = [{**token, "token_id": i} for i in range(70)]
        rows["sticky_reference"] = [{**found, "token_id": i, "value": 1 - i / 1000} for i in range(70)]
        put_audit(empty_warehouse, audit_record(audit_id, checkpoint), sticky_part(rows))
    found = ask(empty_warehouse, "reference-tokens")
    assert [(row["source"], row["token_id"]) for row in found] == [(c, i) for c in ("c1", "c2") for i in range(50)]


# ---- several checkpoints ----


def with_another_vocabulary(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    rows["token"][0]["token"] += "x"
    return rows


@pytest.fixture
def several(empty_warehouse: Path) -> Path:
    """b1 and b2 share a vocabulary, b3 has another one; 龸 is sticky in all, and in b2 two more tokens are."""
    for i, (checkpoint, shift) in enumerate((("b1", 0.3), ("b2", 0.0), ("b3", 0.0))):
        rows = plausible_rows(checkpoint, f"model/{checkpoint}", shift)
        # Another length limit or set of tokenizer files makes no other vocabulary.
        rows["checkpoint"][0]["tokenizer_sha256"] = f"{i}" * 64
        if checkpoint == "b3":
            with_another_vocabulary(rows)
        put_audit(empty_warehouse, audit_record(f"a{i}", checkpoint, minutes=i), sticky_part(rows))
    return empty_warehouse


def test_tokens_sticky_in_two_checkpoints_of_one_vocabulary_are_found(several: Path) -> None:
    """Losses in b1 are those of slopes .3 higher: 龸 .24, so that only its verdict is bad; ন and [MASK] none."""
    (row,) = ask(several, "sticky-across-checkpoints")
    assert (len(row["vocabulary"]), row["token_id"], row["token"]) == (12, 4, "龸")
    assert (row["origin"], row["script"], row["checkpoints"]) == ("word", "Han", 2)
    assert (row["sticky_by_retention"], row["sticky_by_definition"], row["strong_or_moderate"]) == (2, 2, 1)
    assert row["loss_max"] == pytest.approx(1 - 0.30 / CONTROL_SLOPE, abs=6e-4)
    assert row["loss_min"] == pytest.approx(1 - 0.60 / CONTROL_SLOPE, abs=6e-4)
    assert row["sources"] == ["model/b2", "model/b1"]  # the worst first


def test_checkpoints_of_different_vocabularies_share_no_token(empty_warehouse: Path) -> None:
    for audit_id, rows in (
        ("a1", plausible_rows("b1", "b1")),
        ("a2", with_another_vocabulary(plausible_rows("b2", "b2"))),
    ):
        put_audit(empty_warehouse, audit_record(audit_id, f"b{audit_id[1]}"), sticky_part(rows))
    assert ask(empty_warehouse, "sticky-across-checkpoints") == []


def test_one_model_under_two_poolings_counts_once(empty_warehouse: Path) -> None:
    for audit_id, checkpoint in (("a1", "b1"), ("a2", "b2")):
        rows = changed(checkpoint, checkpoint, checkpoint={"weights_sha256": "cd" * 32})
        put_audit(empty_warehouse, audit_record(audit_id, checkpoint), sticky_part(rows))
    assert ask(empty_warehouse, "sticky-across-checkpoints") == []


def test_a_later_audit_of_another_measure_hides_no_sticky_token(several: Path) -> None:
    of_another_measure = {name: plausible_rows("b1", "model/b1")[name] for name in ("checkpoint", "socm_summary")}
    put_audit(several, audit_record("a9", "b1", minutes=60), of_another_measure)
    assert len(ask(several, "sticky-across-checkpoints")) == 1


def test_two_audits_of_one_checkpoint_are_not_two_checkpoints(empty_warehouse: Path) -> None:
    for i, audit_id in enumerate(("a1", "a2")):
        put_audit(empty_warehouse, audit_record(audit_id, "b1", minutes=i), sticky_part(plausible_rows("b1", "b1")))
    assert ask(empty_warehouse, "sticky-across-checkpoints") == []


def test_only_the_newest_audit_of_a_checkpoint_counts(several: Path) -> None:
    """A newer audit of b1 finds nothing: 龸 is left with one checkpoint."""
    rows = plausible_rows("b1", "model/b1")
    rows["sticky_validation"] = [
        {**row, "verdict": row["verdict"] and "not_sticky", "severity": "negligible"}
        for row in rows["sticky_validation"]
    ]
    put_audit(several, audit_record("a9", "b1", minutes=60), sticky_part(rows))
    assert ask(several, "sticky-across-checkpoints") == []
