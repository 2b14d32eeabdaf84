"""What is done is taken over: a finished audit computes nothing, a changed setting exactly what hangs on it."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from runs import content, rewritten, staged, steps

from embaudit_flows.audit import AuditOutcome, audit

# Every step that looks at vectors after the scan, and what the scan itself writes.
SCAN = {"scan"}
VERDICTS = {"undecided", "sticky_score", "sticky_validation", "sticky_summary", "sticky_enrichment", "validation"}
SOCM = {"socm_text", "socm_pair", "socm_surface", "socm_summary", "socm_tightness", "socm_plane"}
LAYERS = {"layer_text", "layer_stat", "layer_head_stat"}
CURVES = {"length_bin", "length_rise", "length_summary", "length_pair"}
# Where a step may find that the change did not touch its input (who goes on to more pairs), it need not run.
MAY = {"validation"}
# Tasks that keep no result.
ALWAYS = ("ingest ", "check tables", "publish", "write report", "create-artifact")


def run(checkpoint: Path, profile: Path, **options: Any) -> AuditOutcome:
    return audit(checkpoint=str(checkpoint), profile=str(profile), device="cpu", **options)


def names(files: set[Path]) -> set[str]:
    return {path.name.rsplit("-", 1)[0] for path in files}


def runs_since(started: datetime, cached: int) -> dict[str, list[str]]:
    """Names of task runs by their last state, through Prefect's API, once so many are on record as cached.

    A server learns of tasks by events, and writes them down when it comes to it.
    """
    deadline = time.monotonic() + 60
    while len((found := _runs_since(started)).get("Cached", [])) < cached and time.monotonic() < deadline:
        time.sleep(1)
    return found


def _runs_since(started: datetime) -> dict[str, list[str]]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterStartTime

    found: dict[str, list[str]] = {}
    with get_client(sync_client=True) as client:
        # Of the flows that began since then: what an earlier one did may be written down as late as now.
        later = FlowRunFilter(start_time=FlowRunFilterStartTime(after_=started))
        for one in client.read_task_runs(flow_run_filter=later, limit=200):
            # A sub-flow stands among the tasks, too.
            if one.state is None or not one.state.state_details.child_flow_run_id:
                found.setdefault(str(one.state_name), []).append(one.name)
    return found


@pytest.mark.slow
def test_a_finished_audit_computes_nothing(home: Path, tiny_checkpoint: Path, tiny_profile: Path) -> None:
    first = run(tiny_checkpoint, tiny_profile)
    before, rows = staged(home), content(Path(first.warehouse))
    started = datetime.now(UTC)
    second = run(tiny_checkpoint, tiny_profile)
    assert second.audit_id == first.audit_id
    assert staged(home) == before
    assert content(Path(first.warehouse)) == rows
    found = runs_since(started, cached=len(steps(before)))
    assert len(found["Cached"]) >= len(steps(before)), found
    # A corpus is always read anew, since its source may have changed; and the end is made again.
    again = [name for name in found.get("Completed", []) if not name.startswith(ALWAYS)]
    assert not again, again


CHANGES: dict[str, tuple[dict[str, Any], dict[str, str], set[str]]] = {
    # what is changed: options of the audit, text of the profile, the tables that are computed anew
    "another warehouse": ({"warehouse": "other.duckdb"}, {}, set()),
    "resamples": ({}, {"resamples = 100": "resamples = 150"}, VERDICTS),
    "controls": ({}, {"controls = 10": "controls = 12"}, VERDICTS),
    "texts of socm": ({}, {"texts = 30": "texts = 25"}, SOCM),
    "texts of layers": ({}, {"texts = 20": "texts = 15"}, LAYERS),
    "texts of length": ({}, {"texts = 12": "texts = 10"}, CURVES | {"length_sigma"}),
    "texts of length's sigma": ({}, {"sigma_texts = 2": "sigma_texts = 1"}, {"length_sigma"}),
    "limit of tokens": ({"limit_tokens": 60}, {}, SCAN | VERDICTS | {"draw_order", "survivor"}),
    "fewer measures": ({"measures": ["socm", "layers"]}, {}, set()),
}


@pytest.mark.slow
def test_a_changed_setting_computes_exactly_what_hangs_on_it(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(tiny_checkpoint, tiny_profile)
    differences = {}
    for number, (change, (options, replaced, expected)) in enumerate(CHANGES.items()):
        profile = tmp_path / f"profile-{number}.toml"
        text = tiny_profile.read_text()
        for old, new in replaced.items():
            assert text.count(old) == 1, f"{old} is not in the profile once"
            text = text.replace(old, new)
        profile.write_text(text)
        before = staged(home)
        run(tiny_checkpoint, profile, **options)
        after = staged(home)
        assert not rewritten(before, after), f"{change} wrote files again that it does not touch"
        new = names(set(after) - set(before))
        if new - MAY != expected - MAY:
            differences[change] = {"too much": sorted(new - expected), "too little": sorted(expected - new - MAY)}
    assert not differences, differences


@pytest.mark.slow
def test_other_weights_compute_everything_and_other_names_nothing(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    first = run(tiny_checkpoint, tiny_profile, measures=["socm"])
    before = staged(home)
    renamed = Path(shutil.copytree(tiny_checkpoint, tmp_path / "renamed"))
    assert run(renamed, tiny_profile, measures=["socm"]).audit_id == first.audit_id
    # The checkpoint's own row says where it lies.
    assert names(set(staged(home)) - set(before)) <= {"checkpoint"}
    from tiny import tiny_bert

    before = staged(home)
    other = run(tiny_bert(tmp_path / "other", seed=1), tiny_profile, measures=["socm"])
    assert other.checkpoint_id != first.checkpoint_id
    assert names(set(staged(home)) - set(before)) == {"checkpoint", *SOCM}
    assert not rewritten(before, staged(home))
