"""The audit flow end to end on a tiny checkpoint: real server, real warehouse, real checks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Embaudit
from planned import assert_planned
from small_audits import AskedAgain, Audited
from warehouse_rows import rows

from embaudit.checkpoint.precision import ProductSeconds
from embaudit.measures import MEASURES
from embaudit.measures.sticky.plan import spend
from embaudit.measures.sticky.steps import candidates
from embaudit.pages.write import audit_page, read_audit
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import CheckFailed, UsageError
from embaudit_flows.audit import AuditOutcome, audit
from embaudit_flows.ending import key_of_source


def run(checkpoint: Path, profile: Path, **options: Any) -> AuditOutcome:
    return audit(AuditRequest.of(checkpoint=str(checkpoint), profile=str(profile), **{"device": "cpu", **options}))


DRAWN = "SELECT count(*) FROM sticky_sentence WHERE purpose = '{}' AND role = 'draw'"


def is_of_step(path: Path) -> bool:
    return path.suffix == ".parquet" and not {"audit", "corpus"} & set(path.parts)


def inodes(home: Path) -> dict[Path, int]:
    return {path: path.stat().st_ino for path in home.rglob("*.parquet") if is_of_step(path)}


def test_the_plan_says_about_how_much_is_encoded(audited: Audited) -> None:
    assert_planned(audited.outcome)


def test_the_page_is_read_once_and_shown_everywhere(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = audited.outcome
    read = outcome.page()
    assert read == audit_page(read_audit(outcome.warehouse, outcome.audit_id))
    monkeypatch.setattr("embaudit_flows.plan.read_audit", lambda *_: pytest.fail("read again"))
    assert outcome.page() is read


def test_an_audit_fills_every_table(audited: Audited) -> None:
    outcome = audited.outcome
    one = rows(outcome.warehouse, "SELECT audit_id, status, profile, reason FROM audit")
    assert one == [(outcome.audit_id, "published", "whole", None)]
    counts = dict(rows(outcome.warehouse, "SELECT table_name, estimated_size FROM duckdb_tables()"))
    # A link to a backbone, scores of tasks, what a watch saw and what was pruned come by other commands; a gate, a
    # ranking of documents and some measures only when asked for.
    by_request = {
        *(
            "audit_backbone",
            "downstream_score",
            "gate_result",
            "watched_revision",
            "watch_run",
            *("answer", "answer_finding", "answer_figure", "why_case", "wrong_row", "crowding_row"),
            "index_change",
            "regression",
            "pruning",
        ),
        "acceptance",
        # Other readings of random weights, which find no more than words do, are not compared; other wordings of the
        # instruction when asked for.
        *("length_ranking", "quality_reading", "quality_wording"),
        *(row.table.name for measure in MEASURES.values() if not measure.is_default for row in measure.rows),
    }
    assert {table for table in counts if not counts[table]} == by_request, counts
    check_layers(outcome)
    # What the flow says it found, and publishes, is of every measure that it ran, and of no other.
    assert {finding["measure"] for finding in outcome.findings} - {"audit"} == {
        *("integrity", "quality", "sticky", "socm", "layers", "length")
    }
    assert rows(outcome.warehouse, "SELECT sentence FROM finding ORDER BY place") == [
        (finding["sentence"],) for finding in outcome.findings
    ]
    assert rows(
        outcome.warehouse, "SELECT corpus, texts, pairs FROM socm_summary WHERE pair_kind = 'all' ORDER BY corpus"
    ) == [("msmarco", 30, 435), ("wikipedia", 30, 435)]
    # The pilot and the worst got all draws, those that looked bad some, and what was shortlisted was validated.
    draws = rows(outcome.warehouse, DRAWN.format("scoring"))[0][0]
    eligible = rows(outcome.warehouse, "SELECT count(*) FROM token WHERE is_reachable OR category = 'special'")[0][0]
    pilot, stages = spend(1_200, eligible, draws)
    assert (draws, len(stages)) == (6, 3)
    dropped = [before[1] - after[1] for before, after in pairwise(stages)]
    assert dict(rows(outcome.warehouse, "SELECT draws, count(*) FROM sticky_score GROUP BY ALL")) == {
        2: dropped[0],
        4: dropped[1],
        6: pilot + stages[-1][1],
    }
    assert rows(outcome.warehouse, "SELECT count(*) FROM sticky_score WHERE is_pilot") == [(pilot,)]
    shortlisted = rows(
        outcome.warehouse, "SELECT token_id FROM sticky_score WHERE shortlisted_by IS NOT NULL ORDER BY 1"
    )
    validated = rows(
        outcome.warehouse, "SELECT DISTINCT token_id FROM sticky_validation WHERE role = 'candidate' ORDER BY 1"
    )
    assert shortlisted == validated
    check_points(outcome)
    check_reference(outcome)
    # The summary repeats the pairs' own averages.
    mean, low, high = rows(
        outcome.warehouse, "SELECT avg(socm), min(socm), max(socm) FROM socm_pair WHERE corpus = 'wikipedia'"
    )[0]
    assert rows(outcome.warehouse, "SELECT socm_mean, socm_min, socm_max FROM socm_summary WHERE corpus = 'wikipedia'")[
        0
    ] == pytest.approx((mean, low, high))
    assert rows(
        outcome.warehouse, "SELECT count(*) FROM expectation_result WHERE NOT success AND severity = 'critical'"
    ) == [(0,)]


def check_layers(outcome: AuditOutcome) -> None:
    """Every text of two tokens and more in every layer, and the averages of what is stored."""
    texts = rows(outcome.warehouse, "SELECT corpus, texts + undefined FROM layer_stat WHERE layer = 1 ORDER BY 1")
    assert texts == [("msmarco", 20), ("wikipedia", 20)]
    stored = rows(
        outcome.warehouse,
        "SELECT corpus, layer, avg(sigma_a), avg(c), count(*) FROM layer_text GROUP BY ALL ORDER BY ALL",
    )
    said = rows(outcome.warehouse, "SELECT corpus, layer, sigma_a, c, texts FROM layer_stat ORDER BY ALL")
    assert said == [pytest.approx(row) for row in stored]
    assert rows(outcome.warehouse, "SELECT count(*) FROM layer_head_stat") == [(2 * 2 * 4,)]
    pairs = rows(outcome.warehouse, "SELECT pair, count(DISTINCT position) FROM socm_plane GROUP BY 1 ORDER BY 1")
    assert [pair for pair, _ in pairs] == ["highest", "lowest", "median"]


def check_points(outcome: AuditOutcome) -> None:
    """Every token of the validation is measured at every draw against every anchor; its sentences chose nothing."""
    drawn, anchors = (
        rows(
            outcome.warehouse, f"SELECT count(*) FROM sticky_sentence WHERE purpose = 'validation' AND role = '{role}'"
        )
        for role in ("draw", "anchor")
    )
    expected = (drawn[0][0], anchors[0][0], drawn[0][0] * anchors[0][0])
    found = "SELECT DISTINCT validation_draws, validation_anchors, validation_points FROM sticky_summary"
    assert rows(outcome.warehouse, found) == [expected]
    assert rows(outcome.warehouse, "SELECT DISTINCT points FROM sticky_validation") == [(expected[2],)]
    assert rows(outcome.warehouse, "SELECT count(*) - count(DISTINCT sentence) FROM sticky_sentence") == [(0,)]
    # What was found is never more than the estimate, which is of all that were searched.
    (bad,) = rows(
        outcome.warehouse,
        "SELECT count(*) FROM sticky_severity, (SELECT max(searched) AS searched FROM sticky_summary) "
        "WHERE estimated < confirmed OR estimated > searched + 0.001",
    )
    assert bad == (0,)


def check_reference(outcome: AuditOutcome) -> None:
    scored = rows(outcome.warehouse, "SELECT token_id FROM sticky_reference ORDER BY 1")
    assert scored == rows(
        outcome.warehouse, "SELECT token_id FROM token WHERE category IN ('ok', 'special') ORDER BY 1"
    )
    cutoff = rows(outcome.warehouse, "SELECT cutoff FROM sticky_reference_summary")[0][0]
    listed = rows(outcome.warehouse, f"SELECT token_id FROM sticky_reference WHERE score >= {cutoff!r} ORDER BY 1")
    assert listed == rows(outcome.warehouse, "SELECT token_id FROM sticky_reference WHERE is_shortlisted ORDER BY 1")
    # 2 % of some 280 tokens are six: too few for a threshold.
    assert rows(outcome.warehouse, "SELECT DISTINCT verdict FROM sticky_reference WHERE is_shortlisted") == [
        ("no_threshold",)
    ]


def test_rerunning_recomputes_nothing_doubles_nothing_and_shows_the_same(
    audited: Audited, asked_again: AskedAgain
) -> None:
    again, warehouse = asked_again.said, asked_again.home / "warehouse.duckdb"
    counts = dict(rows(audited.outcome, "SELECT table_name, estimated_size FROM duckdb_tables()"))
    assert again.returncode == 0, again.stderr
    assert "Traceback" not in again.stderr
    assert "takes about" not in again.stderr
    assert rows(warehouse, "SELECT audit_id, status FROM audit") == [(audited.outcome.audit_id, "published")]
    assert inodes(asked_again.home) == {
        path: was.st_ino for path, was in asked_again.written.items() if is_of_step(path)
    }
    assert dict(rows(warehouse, "SELECT table_name, estimated_size FROM duckdb_tables()")) == counts
    # The tokens, the figures, and the place of the results.
    for word in ("loss", "pull", "focal point", "severity", "SOCM", "u =", "encodes", "embedded sample", "peak memory"):
        assert word in again.stdout
    assert str(warehouse) in again.stdout


@pytest.mark.slow
def test_a_deleted_staged_file_is_computed_again(audited: Audited, audited_home: Path) -> None:
    written = inodes(audited_home)
    gone = next(audited_home.rglob("socm_summary-*.parquet"))
    # Moved, not deleted: the file system may give the inode of a deleted file to the one that takes its place.
    gone.rename(audited_home.parent / gone.name)
    audit(AuditRequest.of(**audited.question, measures=["socm"]))
    assert gone.is_file()
    changed = {path for path, inode in inodes(audited_home).items() if written.get(path) != inode}
    # What the same task wrote lies in the same folder.
    assert gone in changed
    assert {path.parent for path in changed} == {gone.parent}


@pytest.mark.slow
def test_changed_settings_recompute_exactly_what_hangs_on_them(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    run(tiny_checkpoint, tiny_profile)
    before = set(inodes(home))
    more = tmp_path / "more.toml"
    more.write_text(tiny_profile.read_text().replace("resamples = 100", "resamples = 150"))
    run(tiny_checkpoint, more)
    new = {path.name.rsplit("-", 1)[0] for path in set(inodes(home)) - before}
    # More resamples touch the intervals, and with them what is confirmed; which tokens are enriched only where
    # somebody's verdict is another; what was inserted, and its scores, stay as they are.
    assert new - {"sticky_enrichment"} == {"sticky_validation", "sticky_summary", "sticky_severity"}


@pytest.mark.slow
def test_another_seed_is_another_audit_and_leaves_socm_of_the_first_texts_alone(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path
) -> None:
    first = run(tiny_checkpoint, tiny_profile, draw="first")
    before = set(inodes(home))
    second = run(tiny_checkpoint, tiny_profile, draw="first", seed=1)
    assert second.audit_id != first.audit_id
    assert not any("socm" in path.name for path in set(inodes(home)) - before)
    assert rows(first.warehouse, "SELECT count(*) FROM audit WHERE status = 'published'") == [(2,)]
    assert rows(
        first.warehouse,
        "SELECT count(*), max(position) FROM text JOIN corpus USING (corpus_id) WHERE name = 'wikipedia'",
    ) == [(30, 29)]


@pytest.mark.slow
def test_another_seed_draws_other_texts_and_publishes_them_beside_the_others(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path
) -> None:
    drawn = []
    for seed in (0, 1):
        outcome = run(tiny_checkpoint, tiny_profile, measures=["socm"], seed=seed)
        texts = "SELECT position FROM socm_text WHERE corpus = 'wikipedia' AND audit_id = '{}'"
        drawn.append({position for (position,) in rows(outcome.warehouse, texts.format(outcome.audit_id))})
    published = "SELECT position FROM text JOIN corpus USING (corpus_id) WHERE corpus.name = 'wikipedia'"
    assert {position for (position,) in rows(outcome.warehouse, published)} == drawn[0] | drawn[1]
    assert len(drawn[0] & drawn[1]) < 30 == len(drawn[0]) == len(drawn[1])
    # Both sides of a pair have their words.
    lost = "SELECT count(*) FROM socm_text LEFT JOIN text USING (corpus_id, position) WHERE text.text IS NULL"
    assert rows(outcome.warehouse, lost) == [(0,)]


@pytest.mark.slow
def test_shards_change_nothing(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = run(tiny_checkpoint, tiny_profile)
    values = "SELECT token_id, pull, slope FROM sticky_score ORDER BY token_id"
    pairs = "SELECT corpus, first, second, d_mu, d_sigma, socm FROM socm_pair ORDER BY ALL"
    expected, expected_pairs = rows(whole.warehouse, values), rows(whole.warehouse, pairs)
    monkeypatch.setenv("EMBAUDIT_TOKENS_PER_SHARD", "37")
    monkeypatch.setenv("EMBAUDIT_PAIRS_PER_SHARD", "100")
    sharded = run(tiny_checkpoint, tiny_profile, warehouse=str(tmp_path / "sharded.duckdb"))
    assert sharded.audit_id == whole.audit_id
    found, found_pairs = rows(sharded.warehouse, values), rows(sharded.warehouse, pairs)
    assert [row[0] for row in found] == [row[0] for row in expected]
    assert np.abs(np.array(found)[:, 1:].astype(float) - np.array(expected)[:, 1:].astype(float)).max() <= 1e-4
    assert [row[:3] for row in found_pairs] == [row[:3] for row in expected_pairs]
    differences = np.array([row[3:] for row in found_pairs]) - np.array([row[3:] for row in expected_pairs])
    assert np.abs(differences).max() <= 1e-6


def test_a_blocking_check_publishes_nothing_names_the_rows_and_leaves_what_was_published(
    computed_home: Path, tiny_checkpoint: Path, tiny_profile: Path
) -> None:
    warehouse = run(tiny_checkpoint, tiny_profile, measures=["socm"]).warehouse
    pairs = "SELECT * FROM socm_pair ORDER BY ALL"
    published = rows(warehouse, pairs)
    # What a bit flip or a bug would do: a staged pair whose distance is impossible.
    victim = next(computed_home.rglob("socm_pair-*.parquet"))
    table, record = pq.read_table(victim).to_pandas(), pq.read_metadata(victim).metadata[b"embaudit"]
    table.loc[3, "d_mu"] = 2.0
    pq.write_table(
        pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata({"embaudit": record}), victim
    )
    with pytest.raises(CheckFailed):
        run(tiny_checkpoint, tiny_profile, measures=["socm"])
    assert rows(warehouse, pairs) == published

    Path(warehouse).unlink()
    with pytest.raises(CheckFailed) as failure:
        run(tiny_checkpoint, tiny_profile, measures=["socm"])
    assert failure.value.exit_code == 2
    assert "socm_pair.d_mu" in failure.value.happened
    assert f"second={table.loc[3, 'second']}" in failure.value.happened
    assert rows(warehouse, "SELECT status FROM audit") == [("failed",)]
    assert rows(warehouse, "SELECT count(*) FROM socm_pair") == [(0,)]
    failed = rows(
        warehouse,
        "SELECT table_name, column_name FROM expectation_result WHERE NOT success AND severity = 'critical'",
    )
    assert ("socm_pair", "d_mu") in failed


@pytest.mark.slow
def test_limit_tokens_scans_only_so_many(home: Path, tiny_checkpoint: Path, tiny_profile: Path) -> None:
    outcome = run(tiny_checkpoint, tiny_profile, measures=["sticky"], measure_settings={"sticky": {"limit_tokens": 25}})
    assert rows(outcome.warehouse, "SELECT count(*) FROM sticky_score") == [(25,)]
    # Five candidates a protocol: too few for quartiles, and said so.
    assert rows(outcome.warehouse, "SELECT DISTINCT outlier FROM sticky_validation WHERE role = 'candidate'") == [
        ("no_threshold",)
    ]
    assert any("threshold" in warning for warning in outcome.warnings)


@pytest.mark.slow
def test_overridden_pooling_is_another_checkpoint(audited: Audited, home: Path, embaudit_here: Embaudit) -> None:
    answer = embaudit_here(*audited.command, "--measures", "socm", "--pooling", "cls", "--json")
    cls = AuditOutcome.model_validate_json(answer.stdout)
    assert cls.checkpoint_id != audited.outcome.checkpoint_id
    assert rows(cls.warehouse, "SELECT DISTINCT pooling_is_mean FROM socm_summary") == [(False,)]
    assert rows(audited.outcome.warehouse, "SELECT DISTINCT pooling_is_mean FROM socm_summary") == [(True,)]
    assert any("pooling_is_mean" in warning for warning in cls.warnings)
    assert not any("pooling_is_mean" in warning for warning in audited.outcome.warnings)


@pytest.mark.slow
def test_a_prompt_is_applied_recorded_and_shown(audited: Audited, home: Path, embaudit_here: Embaudit) -> None:
    answer = embaudit_here(*audited.command, "--measures", "socm", "--prompt", "the gold: ", "--json")
    found = AuditOutcome.model_validate_json(answer.stdout)
    assert found.prompts == dict.fromkeys(("prompt", "query_prompt", "document_prompt"), "the gold: ")
    assert audited.outcome.prompts == dict.fromkeys(found.prompts, "")
    columns = "prompt, query_prompt, document_prompt, pools_prompt"
    asked = f"SELECT {columns} FROM checkpoint WHERE checkpoint_id = '{found.checkpoint_id}'"
    assert rows(found.warehouse, asked) == [("the gold: ",) * 3 + (True,)]
    shown = embaudit_here("show", found.audit_id, "--warehouse", found.warehouse)
    assert "'the gold: '" in shown.stdout


def test_wrong_options_are_named(home: Path, tiny_checkpoint: Path, tiny_profile: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"measures": ["socn"]}, "no measure is called 'socn'"),
        ({"corpora": {"wikipaedia": "sample"}}, "'wikipaedia'"),
        ({"device": "abacus"}, "no device 'abacus'"),
        ({"dtype": "float8"}, "float8"),
        ({"pooling": "median"}, "median"),
    ]
    for options, message in wrong:
        with pytest.raises(UsageError, match=message):
            run(tiny_checkpoint, tiny_profile, **options)


def test_the_ui_gets_a_summary_the_tables_and_progress(audited: Audited) -> None:
    name = key_of_source(audited.question["checkpoint"])
    keys = {artifact.key for artifact in audited.artifacts}
    assert {f"{one}-{name}" for one in ("audit-summary", "sticky-summary", "socm-summary", "sticky-tokens")} <= keys
    assert all(key.endswith(f"-{name}") for key in keys if key)
    (page,) = (artifact for artifact in audited.artifacts if artifact.key == f"audit-summary-{name}")
    # Nobody serves the report: a link to it would lead nowhere.
    assert "file://" not in str(page.data)
    assert not any(artifact.type == "link" for artifact in audited.artifacts)
    assert audited.outcome.audit_id in (page.description or "")
    assert audited.outcome.audit_id in str(page.data)
    progress = [artifact for artifact in audited.artifacts if artifact.type == "progress"]
    assert any("scan" in (artifact.description or "") for artifact in progress)
    assert all(artifact.data == 100 for artifact in progress)


@pytest.mark.slow
def test_one_file_under_two_names_is_one_content(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("the river runs to the sea\nthe old town has a church\nthe sun is a star\n")
    corpora = {"wikipedia": str(texts), "msmarco": str(texts)}
    outcome = run(tiny_checkpoint, tiny_profile, measures=["socm"], corpora=corpora)
    assert rows(outcome.warehouse, "SELECT count(*) FROM text") == [(3,)]
    summaries = rows(outcome.warehouse, "SELECT corpus, pairs, socm_mean FROM socm_summary ORDER BY corpus")
    assert [row[:2] for row in summaries] == [("msmarco", 3), ("wikipedia", 3)]
    assert summaries[0][2] == summaries[1][2]


@pytest.mark.slow
def test_exhaustive_spends_everything_and_misses_nothing(home: Path, tiny_checkpoint: Path, tiny_profile: Path) -> None:
    outcome = run(tiny_checkpoint, tiny_profile, measures=["sticky"], measure_settings={"sticky": {"exhaustive": True}})
    draws = rows(outcome.warehouse, DRAWN.format("scoring"))[0][0]
    assert rows(outcome.warehouse, "SELECT DISTINCT draws FROM sticky_score") == [(draws,)]
    summary = rows(outcome.warehouse, "SELECT search, encodes = exhaustive_encodes, miss_rate FROM sticky_summary")
    assert summary == [("exhaustive", True, None)] * 2


@pytest.mark.slow
def test_a_sequential_score_is_the_exhaustive_one_where_all_draws_were_spent(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path
) -> None:
    def scores(outcome: AuditOutcome) -> dict[int, tuple[float, float]]:
        found = rows(
            outcome.warehouse,
            f"SELECT token_id, pull, slope FROM sticky_score WHERE audit_id = '{outcome.audit_id}' "
            "QUALIFY draws = max(draws) OVER ()",
        )
        return {token: (pull, slope) for token, pull, slope in found}

    sequential = scores(run(tiny_checkpoint, tiny_profile, measures=["sticky"]))
    exhaustive = scores(
        run(tiny_checkpoint, tiny_profile, measures=["sticky"], measure_settings={"sticky": {"exhaustive": True}})
    )
    assert set(sequential) < set(exhaustive)
    difference = [np.subtract(sequential[token], exhaustive[token]) for token in sequential]
    assert np.abs(difference).max() <= 1e-4


@pytest.mark.slow
def test_pairs_of_the_users_own_are_kept_as_they_are(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    given = tmp_path / "pairs.csv"
    sentences = ["the river runs to the sea", "a star is a sun", "the old town has a church", "iron and gold"]
    lines = [f"{a},{b}\n" for a in sentences for b in sentences if a != b]
    given.write_text("sentence1,sentence2\n" + "".join(lines + lines[:1]))
    outcome = run(
        tiny_checkpoint,
        tiny_profile,
        measures=["sticky"],
        pairs={"validation": str(given)},
        measure_settings={"sticky": {"reference": True, "limit_tokens": 60}},
    )
    for purpose in ("validation", "reference_validation"):
        assert rows(
            outcome.warehouse,
            f"SELECT first || ',' || second FROM sticky_pair WHERE purpose = '{purpose}' ORDER BY position",
        ) == [(line.strip(),) for line in [*lines, lines[0]]]
    # A given pair is one point an operator; the search has sentences of its own.
    assert rows(outcome.warehouse, "SELECT DISTINCT points FROM sticky_validation") == [(3 * 13,)]
    assert rows(outcome.warehouse, "SELECT DISTINCT purpose FROM sticky_sentence") == [("scoring",)]


@pytest.mark.slow
def test_worker_processes_change_nothing(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    values = "SELECT token_id, pull, slope FROM sticky_score ORDER BY token_id"
    monkeypatch.setenv("EMBAUDIT_TOKENS_PER_SHARD", "100")
    alone = run(tiny_checkpoint, tiny_profile, measures=["sticky"])
    monkeypatch.setenv("EMBAUDIT_WORKERS", "2")
    # Another home: nothing of the first run is reused.
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "second"))
    both = run(tiny_checkpoint, tiny_profile, measures=["sticky"])
    assert both.audit_id == alone.audit_id
    first, second = (np.array(rows(outcome.warehouse, values), dtype=float) for outcome in (alone, both))
    assert np.abs(first - second).max() <= 1e-4


@pytest.mark.slow
def test_a_cheaper_precision_of_the_scan_is_on_record_with_its_rank_correlation(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "product_seconds", lambda *given: ProductSeconds(0.008, 0.002, 128))
    outcome = run(
        tiny_checkpoint, tiny_profile, measures=["sticky"], measure_settings={"sticky": {"scan_dtype": "auto"}}
    )
    found = rows(outcome.warehouse, "SELECT scan_dtype, scan_speedup, rank_correlation FROM sticky_summary")
    assert [(dtype, speedup) for dtype, speedup, _ in found] == [("bfloat16", 4.0)] * 2
    assert all(-1 <= correlation < 1 for *_, correlation in found)
    # Validation stays in float32: the controls' values are those of an audit that scanned in float32.
    plain = run(tiny_checkpoint, tiny_profile, measures=["sticky"])
    assert rows(
        outcome.warehouse,
        f"SELECT DISTINCT scan_dtype, scan_speedup FROM sticky_summary WHERE audit_id = '{plain.audit_id}'",
    ) == [("float32", None)]
    before = [
        rows(o.warehouse, f"SELECT DISTINCT rho_0 FROM sticky_validation WHERE audit_id = '{o.audit_id}'")
        for o in (outcome, plain)
    ]
    assert before[0]
    assert before[0][0] == pytest.approx(before[1][0], abs=1e-9)


@pytest.mark.slow
def test_doses_that_do_not_fit_are_a_line_and_no_failure(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    large = tmp_path / "large.toml"
    large.write_text(tiny_profile.read_text().replace("dose_tokens = 0", "dose_tokens = 2\ndoses = [200, 300]"))
    outcome = run(tiny_checkpoint, large, measures=["sticky"])
    assert any("Not even 200 copies fit" in warning for warning in outcome.warnings)
    assert rows(outcome.warehouse, "SELECT count(*) FROM sticky_dose") == [(0,)]
    assert rows(outcome.warehouse, "SELECT count(*) > 0 FROM sticky_validation") == [(True,)]
