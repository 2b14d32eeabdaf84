"""Queries and views about sticky tokens: the search, the evidence, one vocabulary under several checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import ask
from plausible import audit_record, plausible_rows
from plausible_sticky import CONTROL_SLOPE, ENCODES, EXHAUSTIVE_ENCODES, SHIFTED, SIMILARITIES
from ready_warehouses import put_audit

from embaudit.warehouse.connect import open_reader


def sticky_part(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """What the questions about sticky tokens look at."""
    return {name: part for name, part in rows.items() if name in ("checkpoint", "token") or name.startswith("sticky")}


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
    assert rows[0]["times_fewer"] == 1.4  # 240 / 170
    assert (rows[0]["reliability"], rows[0]["prediction"]) == (0.4, 0.7)
    assert (rows[0]["pilot_missed"], rows[0]["pilot_shortlisted"], rows[0]["miss_rate"]) == (0, 1, 0.0)
    assert (rows[0]["miss_low"], rows[0]["miss_high"]) == (0.0, 0.975)
    scan = (rows[0]["scan_dtype"], rows[0]["scan_speedup"], rows[0]["rank_correlation"])
    assert scan == ("bfloat16", 4.1, 0.998)


def test_severities_are_counted_found_and_estimated_worst_first(filled: Path) -> None:
    rows = of_tiny(filled, "sticky-severity")
    names = ("severity", "least_loss", "estimated", "estimated_low", "estimated_high", "validated", "confirmed")
    # Losses .62, .49, .30 with intervals of .1 on either side; the view rounds to whole tokens.
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("strong", 0.5, 1.0, 1.0, 3.0, 1, 1),
        ("moderate", 0.25, 3.0, 2.0, 5.0, 3, 2),
        ("weak", 0.1, 3.0, 3.0, 5.0, 3, 3),
    ]
    assert not any(row["is_capped"] for row in rows)


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
    """Losses in b1 are those of slopes .3 higher: 龸 .24, so that it is an outlier alone; ন and [MASK] none."""
    (row,) = ask(several, "sticky-across-checkpoints")
    assert (len(row["vocabulary"]), row["token_id"], row["token"]) == (12, 4, "龸")
    assert (row["origin"], row["script"], row["checkpoints"]) == ("word", "Han", 2)
    assert (row["outlier_by_retention"], row["outlier_by_definition"], row["strong_or_moderate"]) == (2, 2, 1)
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
        {**row, "outlier": row["outlier"] and "no", "severity": "negligible"} for row in rows["sticky_validation"]
    ]
    put_audit(several, audit_record("a9", "b1", minutes=60), sticky_part(rows))
    assert ask(several, "sticky-across-checkpoints") == []
