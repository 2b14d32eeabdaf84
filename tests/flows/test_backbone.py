"""A fine-tuned checkpoint against its backbone: two audits, their link, and the deltas of every summary."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from commands import Embaudit
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audit
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.checkpoint.loading import PROMPTS
from embaudit.questions.audit import AuditRequest
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.query import run_query
from embaudit_tasks.publish import link_backbone


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other weights, and no modules: a plain transformer, as backbones are."""
    folder = tiny_bert(tmp_path_factory.mktemp("backbone") / "plain", seed=1)
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    for name in ("1_Pooling", "2_Normalize"):
        shutil.rmtree(folder / name)
    return folder


@pytest.mark.slow
def test_the_deltas_of_a_link_are_counted(empty_warehouse: Path, tmp_path: Path) -> None:
    for audit_id, checkpoint, shift in (("own", "c1", 0.25), ("backbone", "c2", 0.0)):
        found = plausible_rows(checkpoint, f"m/{checkpoint}")
        found["socm_summary"] = [{**row, "socm_mean": row["socm_mean"] + shift} for row in found["socm_summary"]]
        put_audit(empty_warehouse, audit_record(audit_id, checkpoint), found)
    counted = link_backbone.fn("own", "backbone", str(empty_warehouse), 0, str(tmp_path / "staging"))
    with open_reader(empty_warehouse) as connection:
        deltas = connection.execute("SELECT summary, measure, round(delta, 9) FROM backbone_delta").fetchall()
    assert counted == len(deltas)
    assert {row for row in deltas if row[2]} == {("socm_summary", "socm_mean", 0.25)}


@pytest.mark.parametrize("prompts", [("the gold: ", "query: ", ""), ("", "", "")])
def test_a_backbone_reads_as_much_as_its_checkpoint_behind_the_same_prompts(
    prompts: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever either of them declares."""
    from embaudit_flows import backbone as flows

    asked: list[AuditRequest] = []
    found = {
        "audit_id": "a",
        "checkpoint_id": "c",
        "source": "m",
        "warehouse": str(home / "w.duckdb"),
        "max_length": 48,
    }
    applied = dict(zip(PROMPTS, prompts, strict=True))
    outcome = flows.AuditOutcome(**found, prompts=applied, rows={}, corpora={}, warnings=[], seconds=0)
    monkeypatch.setattr(flows, "audit", lambda request: asked.append(request) or outcome)
    monkeypatch.setattr(flows, "link_backbone", lambda *given: 0)
    flows.audit_with_backbone.fn(AuditRequest(checkpoint="m", query_prompt="query"), "owner/backbone")
    own, other = asked
    assert (own.max_length, own.asked_prompts) == (None, {"query_prompt": "query"})
    assert (other.checkpoint, other.max_length, other.asked_prompts) == ("owner/backbone", 48, applied)


@pytest.mark.slow
def test_the_deltas_of_every_summary_are_stored(
    computed_home: Path, tiny_checkpoint: Path, backbone: Path, tiny_profile: Path
) -> None:
    from embaudit_flows.backbone import audit_with_backbone

    request = AuditRequest(checkpoint=str(tiny_checkpoint), profile=str(tiny_profile), measures=["socm", "layers"])
    both = audit_with_backbone(request, str(backbone))
    warehouse = computed_home / "warehouse.duckdb"
    assert both.checkpoint.max_length == both.backbone.max_length == 64, "both read texts to the same length"
    assert both.checkpoint.checkpoint_id != both.backbone.checkpoint_id
    with open_reader(warehouse) as connection:
        deltas = connection.execute(
            "SELECT summary, item, measure, value, backbone_value, delta FROM backbone_delta"
        ).fetchall()
        assert len(deltas) == both.deltas
        own, other = (
            connection.execute(
                "SELECT first, second, socm FROM socm_pair WHERE audit_id = ? AND corpus = 'wikipedia' ORDER BY ALL",
                [audit_id],
            ).fetchnumpy()
            for audit_id in (both.checkpoint.audit_id, both.backbone.audit_id)
        )
        ((change, low, high),) = connection.execute(
            "SELECT change, change_low, change_high FROM backbone_socm_change WHERE corpus = 'wikipedia'"
        ).fetchall()
    # A page that was built at the audit's end would not have it.
    assert "Compared with its backbone" in [section.title for section in both.checkpoint.page().sections]
    by_name = {(summary, item, measure): rest for summary, item, measure, *rest in deltas}
    assert {summary for summary, _, _ in by_name} == {
        "socm_summary",
        "socm_cut",
        "socm_length",
        "socm_pooling",
        "layer_stat",
        "pooled_stat",
    }
    value, backbone_value, delta = by_name["socm_summary", "wikipedia", "socm_mean"]
    assert value == pytest.approx(own["socm"].mean())
    assert backbone_value == pytest.approx(other["socm"].mean())
    assert delta == pytest.approx(value - backbone_value)
    assert ("layer_stat", "msmarco, layer 1", "sigma_a") in by_name
    # The paired jackknife by leaving texts out, one after the other.
    difference = own["socm"] - other["socm"]
    # Drawn texts, so that their positions have gaps.
    positions = np.unique([own["first"], own["second"]])
    without = np.array([difference[(own["first"] != i) & (own["second"] != i)].mean() for i in positions])
    texts = len(positions)
    half = 1.96 * np.sqrt((texts - 1) / texts * np.square(without - without.mean()).sum())
    assert (change, low, high) == pytest.approx((difference.mean(), difference.mean() - half, difference.mean() + half))
    assert len(run_query(warehouse, "backbone-socm").rows) == 2
    with open_reader(warehouse) as connection:
        kinds = dict(
            connection.execute(
                "SELECT summary, list_sort(list_distinct(list(interval_is))) FROM backbone_change "
                "WHERE interval_is IS NOT NULL GROUP BY ALL"
            ).fetchall()
        )
        holds = connection.execute(
            "SELECT count(*) FROM backbone_change WHERE NOT (delta_low <= delta AND delta <= delta_high)"
        ).fetchone()
    assert kinds["socm_summary"] == kinds["layer_stat"] == kinds["pooled_stat"] == ["paired"]
    assert holds == (0,)


@pytest.mark.parametrize("texts", mostly_slow([9, 40], 1))
def test_differences_are_paired_over_texts(texts: int, empty_warehouse: Path, tmp_path: Path) -> None:
    """Texts differ much more from each other than each does between two checkpoints."""
    generator = np.random.default_rng(0)
    of_texts = generator.uniform(0, 10, texts)
    drawn = {"own": of_texts + generator.normal(0.3, 0.1, texts), "backbone": of_texts}
    for minutes, (audit_id, values) in enumerate(drawn.items()):
        rows = {
            name: found
            for name, found in plausible_rows(f"c-{audit_id}", f"m/{audit_id}").items()
            if name in ("checkpoint", "corpus", "layer_stat", "layer_text", "geometry")
        }
        stat, text = (rows[name][0] | {"corpus": "wikipedia", "layer": 0} for name in ("layer_stat", "layer_text"))
        half = 1.96 * values.std(ddof=1) / np.sqrt(texts)
        ends = {"r": values.mean(), "r_low": values.mean() - half, "r_high": values.mean() + half}
        rows["layer_stat"] = [stat | {"texts": texts} | ends]
        rows["layer_text"] = [text | {"position": place, "r": value} for place, value in enumerate(values)]
        put_audit(empty_warehouse, audit_record(audit_id, f"c-{audit_id}", minutes=minutes), rows)
    link_backbone.fn("own", "backbone", str(empty_warehouse), 0, str(tmp_path / "staging"))
    with open_reader(empty_warehouse) as connection:
        found = {
            (summary, measure): rest
            for summary, measure, *rest in connection.execute(
                "SELECT summary, measure, delta, delta_low, delta_high, interval_is FROM backbone_change"
            ).fetchall()
        }
    change = drawn["own"] - drawn["backbone"]
    delta, low, high, kind = found["layer_stat", "r"]
    assert delta == pytest.approx(change.mean())
    if texts < 10:
        assert (low, high, kind) == (None, None, None)
    else:
        half = 1.96 * change.std(ddof=1) / np.sqrt(texts)
        assert (low, high, kind) == (pytest.approx(change.mean() - half), pytest.approx(change.mean() + half), "paired")
        assert low > 0
    # Without rows of each text: the two audits' own intervals, as if of different texts.
    delta, low, high, kind = found["geometry", "mean_cosine"]
    assert (delta, kind) == (0, "unpaired")
    assert low < 0 < high


@pytest.mark.slow
@pytest.mark.usefixtures("computed_home")
def test_a_missing_backbone_leaves_the_checkpoints_audit_published(
    embaudit_here: Embaudit, tiny_checkpoint: Path, tiny_profile: Path
) -> None:
    arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm", "--backbone")
    refused = embaudit_here(*arguments, "/no/such/folder")
    assert refused.returncode == 2
    assert "/no/such/folder" in refused.stderr
    nameless = embaudit_here(*arguments, "card")
    assert nameless.returncode == 2
    assert "names no backbone" in nameless.stderr
    offline = embaudit_here(*arguments, "owner/backbone@main")
    assert offline.returncode == 2
    assert "The backbone owner/backbone" in offline.stderr
    assert "is published" in offline.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("computed_home")
def test_the_page_shows_what_fine_tuning_changed(
    embaudit_here: Embaudit, tiny_checkpoint: Path, backbone: Path, tiny_profile: Path
) -> None:
    before = datetime.now(UTC)
    done = embaudit_here(
        *("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm,layers"),
        *("--backbone", str(backbone)),
    )
    assert done.returncode == 0, done.stderr
    assert "Compared with the backbone" in done.stdout
    (took,) = re.findall(r"Took (\d+) s", done.stdout)
    warehouse = re.findall(r"Results: (.+)", done.stdout)[0]
    with open_reader(warehouse) as connection:
        sums = "SELECT count(*), sum(epoch(finished - started)) FROM audit WHERE started >= ?"
        ((audits, seconds),) = connection.execute(sums, [before]).fetchall()
    # A printed second is rounded.
    assert (audits, int(took) + 1 >= seconds) == (2, True)
    assert "socm_mean" in done.stdout
    (audit_id,) = re.findall(r"Every figure: embaudit show (\w+) --full", done.stdout)
    shown = embaudit_here("show", audit_id, "--full").stdout
    assert "Compared with its backbone" in shown
    assert "Change of the average SOCM on wikipedia" in shown
