"""What is done is taken over: a finished audit computes nothing, a changed setting exactly what hangs on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from runs import content, rewritten, staged, steps, wait_for

from embaudit.questions.audit import AuditRequest
from embaudit_flows.audit import AuditOutcome, audit

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]

# What insertion writes, for the search and for the validation, and every step after that.
INSERTED = {"moments"}
VERDICTS = {"sticky_validation", "sticky_summary", "sticky_severity", "sticky_enrichment"}
SOCM = {
    "socm_text",
    "socm_pair",
    "socm_surface",
    "socm_summary",
    "socm_tightness",
    "socm_plane",
    "socm_cut",
    "socm_length",
    "socm_pooling",
}
LAYERS = {"layer_text", "layer_stat", "layer_head_stat", "pooled_stat"}
CURVES = {"length_bin", "length_rise", "length_summary", "length_pair"}
# Where a step may find that the change did not touch its input (who is sticky), it need not run.
MAY = {"sticky_enrichment"}
# Tasks that keep no result.
ALWAYS = ("ingest ", "check tables", "publish", "write report", "write passport", "create-artifact")


def run(checkpoint: Path, profile: Path, **options: Any) -> AuditOutcome:
    return audit(AuditRequest.of(checkpoint=str(checkpoint), profile=str(profile), device="cpu", **options))


def names(files: set[Path]) -> set[str]:
    return {path.name.rsplit("-", 1)[0] for path in files}


def runs_since(started: datetime) -> dict[str, list[str]]:
    """Names of task runs by their last state, through Prefect's API."""
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


@dataclass(frozen=True)
class Audited:
    """A home in which everything was measured once, and how to ask there again."""

    home: Path
    checkpoint: Path
    profile: Path
    first: AuditOutcome
    steps: int


@pytest.fixture(scope="module")
def audited(
    prefect_api: str, tiny_checkpoint: Path, tiny_profile: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audited")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMBAUDIT_HOME", str(folder / "home"))
        patch.chdir(folder)
        first = run(tiny_checkpoint, tiny_profile)
        yield Audited(folder / "home", tiny_checkpoint, tiny_profile, first, len(steps(staged(folder / "home"))))


def test_a_finished_audit_computes_nothing(audited: Audited) -> None:
    before, rows = staged(audited.home), content(Path(audited.first.warehouse))
    started = datetime.now(UTC)
    second = run(audited.checkpoint, audited.profile)
    assert second.audit_id == audited.first.audit_id
    assert staged(audited.home) == before
    assert content(Path(audited.first.warehouse)) == rows
    # A server learns of tasks by events, and writes them down when it comes to it.
    wait_for(lambda: len(runs_since(started).get("Cached", [])) >= audited.steps, pause=0.5)
    # A corpus is always read anew, since its source may have changed; and the end is made again.
    again = [name for name in runs_since(started).get("Completed", []) if not name.startswith(ALWAYS)]
    assert not again, again


# What is changed: options of the audit, text of the profile, the tables that are computed anew. A measure's change is
# beside another one's in one run; each measure stands still in a run where the other three have changed between them.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, str], set[str]]] = {
    "another warehouse, and fewer measures": ({"warehouse": "other.duckdb", "measures": ["socm", "layers"]}, {}, set()),
    "resamples, and texts of layers": (
        {},
        {"resamples = 100": "resamples = 150", "texts = 20": "texts = 15"},
        VERDICTS | LAYERS,
    ),
    "controls, and texts of socm": (
        {},
        {"controls = 10": "controls = 12", "texts = 30": "texts = 25"},
        VERDICTS | INSERTED | SOCM,
    ),
    "texts of layers, and of length's sigma": (
        {},
        {"texts = 20": "texts = 14", "sigma_texts = 2": "sigma_texts = 1"},
        LAYERS | {"length_sigma"},
    ),
    "texts of socm and of length": (
        {},
        {"texts = 30": "texts = 24", "texts = 12": "texts = 10"},
        SOCM | CURVES | {"length_sigma"},
    ),
    "limit of tokens": (
        {"measure_settings": {"sticky": {"limit_tokens": 60}}},
        {},
        INSERTED | VERDICTS | {"prediction", "sticky_score"},
    ),
}


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed is looked at, and not what it says: half of such an audit's time goes into its checks."""
    monkeypatch.setattr("embaudit_flows.audit.check_staged", lambda staged, rows: [])


@pytest.mark.usefixtures("unchecked")
def test_a_changed_setting_computes_exactly_what_hangs_on_it(audited: Audited, tmp_path: Path) -> None:
    differences = {}
    for number, (change, (options, replaced, expected)) in enumerate(CHANGES.items()):
        profile = tmp_path / f"profile-{number}.toml"
        text = audited.profile.read_text()
        for old, new in replaced.items():
            assert text.count(old) == 1, f"{old} is not in the profile once"
            text = text.replace(old, new)
        profile.write_text(text)
        before = staged(audited.home)
        run(audited.checkpoint, profile, **options)
        after = staged(audited.home)
        assert not rewritten(before, after), f"{change} wrote files again that it does not touch"
        new = names(set(after) - set(before))
        if new - MAY != expected - MAY:
            differences[change] = {"too much": sorted(new - expected), "too little": sorted(expected - new - MAY)}
    assert not differences, differences


@pytest.mark.usefixtures("unchecked")
def test_other_weights_compute_everything_and_other_names_nothing(audited: Audited, tmp_path: Path) -> None:
    from tiny import tiny_bert

    before = staged(audited.home)
    renamed = Path(shutil.copytree(audited.checkpoint, tmp_path / "renamed"))
    # Into another warehouse: the audit's own row of the first one says where the checkpoint lay there.
    elsewhere = str(tmp_path / "other.duckdb")
    assert run(renamed, audited.profile, warehouse=elsewhere).audit_id == audited.first.audit_id
    # The checkpoint's own row says where it lies.
    assert names(set(staged(audited.home)) - set(before)) <= {"checkpoint"}
    before = staged(audited.home)
    other = run(tiny_bert(tmp_path / "other", seed=1), audited.profile, measures=["socm"])
    assert other.checkpoint_id != audited.first.checkpoint_id
    assert names(set(staged(audited.home)) - set(before)) == {"checkpoint", *SOCM}
    assert not rewritten(before, staged(audited.home))
