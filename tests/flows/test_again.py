"""An audit that was made before: the same results without a server, and a run wherever something must be computed."""

from __future__ import annotations

import logging
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import Embaudit
from prefect import flow
from prefect.settings import PREFECT_API_URL, temporary_settings
from small_audits import Audited
from some_rows import mostly_slow
from warehouse_rows import rows

from embaudit.api.run import run_audit
from embaudit.questions.audit import AuditRequest
from embaudit.steps.progress import NoDisplay, shown_on
from embaudit.warehouse.gate import GateTripped
from embaudit.warehouse.prune import Keep, prune
from embaudit_flows.audit import AuditOutcome, audit_again


class Heard(NoDisplay):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str, level: int = logging.INFO) -> None:
        self.lines.append(line)


STRICT = """
[[limit]]
name = "nothing is thrown away"
summary = "socm_summary"
measure = "socm_mean"
max = -1
reason = "because"
"""
LOG = "SELECT status, reason FROM audit"


@pytest.fixture
def without_server(prefect_api: str) -> Iterator[None]:
    """Whoever asks a server fails."""
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        yield


@pytest.fixture
def request_before(audited: Audited, audited_home: Path) -> AuditRequest:
    return AuditRequest.of(**audited.question)


def results(outcome: AuditOutcome) -> dict[str, object]:
    """What was found, without where and when."""
    return outcome.model_dump(exclude={"warehouse", "seconds", "report", "passport"})


@pytest.mark.usefixtures("without_server")
def test_the_same_audit_needs_no_server(audited: Audited, request_before: AuditRequest, audited_home: Path) -> None:
    shutil.rmtree(audited_home / "reports")
    heard = Heard()
    with shown_on(heard):
        outcome = audit_again(request_before)
    # Its end follows at once: nothing is said on the way there.
    assert heard.lines == ["Nothing to compute: every result was staged by an earlier audit."]
    assert outcome is not None
    assert results(outcome) == results(audited.outcome)
    assert outcome.report is not None
    assert Path(outcome.report).is_file()
    first, second = (
        rows(place, "SELECT audit_id, status, reason, finished FROM audit")[0]
        for place in (audited.outcome.warehouse, outcome.warehouse)
    )
    # It is on record as any rerun is: the newest audit is the one that was asked for last.
    assert first[:3] == second[:3]
    assert first[3] < second[3]


@pytest.mark.slow
@pytest.mark.usefixtures("without_server")
def test_what_was_pruned_is_published_again(audited: Audited, request_before: AuditRequest, audited_home: Path) -> None:
    warehouse = str(audited_home / "warehouse.duckdb")
    prune(warehouse, 5.0, Keep(audits=0))
    counted = "SELECT count(*) FROM sticky_score"
    assert rows(warehouse, counted) == [(0,)]
    assert audit_again(request_before) is not None
    assert rows(warehouse, counted) == rows(audited.outcome.warehouse, counted)


def lacks_a_file(home: Path, request: AuditRequest) -> AuditRequest:
    next((home / "staging" / "socm").rglob("*.parquet")).unlink()
    return request


def is_of_another_checkpoint(home: Path, request: AuditRequest) -> AuditRequest:
    changed = home / "changed"
    shutil.copytree(request.checkpoint, changed)
    return request.changed(checkpoint=str(changed))


def reads_other_texts(home: Path, request: AuditRequest) -> AuditRequest:
    texts = home / "texts.txt"
    texts.write_text("\n".join(f"another text about number {place}" for place in range(40)))
    return request.changed(corpora={**request.corpora, "wikipedia": str(texts)})


def draws_others(home: Path, request: AuditRequest) -> AuditRequest:
    return request.changed(seed=1)


@pytest.mark.parametrize(
    "change", mostly_slow([lacks_a_file, is_of_another_checkpoint, reads_other_texts, draws_others], 1)
)
def test_what_has_to_be_computed_needs_a_run(
    change: Callable[[Path, AuditRequest], AuditRequest], request_before: AuditRequest, audited_home: Path
) -> None:
    request = change(audited_home, request_before)
    warehouse = str(audited_home / "warehouse.duckdb")
    before = rows(warehouse, LOG)
    assert audit_again(request) is None
    # Giving up is no failure.
    assert rows(warehouse, LOG) == before == [("published", None)]


@pytest.mark.usefixtures("without_server")
@pytest.mark.parametrize("gate", ["fail", pytest.param("mark", marks=pytest.mark.slow)])
def test_the_gate_judges_anew(gate: str, request_before: AuditRequest, tmp_path: Path) -> None:
    policy = tmp_path / "strict.toml"
    policy.write_text(STRICT)
    request = request_before.changed(policy=str(policy), gate=gate)
    if gate == "fail":
        with pytest.raises(GateTripped):
            audit_again(request)
    else:
        outcome = audit_again(request)
        assert outcome is not None
        assert outcome.gate is not None
        assert outcome.gate.outcome == "tripped"


def test_within_a_flow_of_ones_own_it_is_a_run(request_before: AuditRequest) -> None:
    @flow(persist_result=False)
    def nightly() -> bool:
        return audit_again(request_before) is None

    assert nightly()


@pytest.mark.slow
def test_a_configured_server_gets_its_run(request_before: AuditRequest, audited: Audited) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterStartTime

    started = datetime.now(UTC)
    outcome, _ = run_audit(request_before, None)
    assert results(outcome) == results(audited.outcome)
    # Asked for by time: the server answers with 200 of its runs, and by now may hold more.
    later = FlowRunFilter(start_time=FlowRunFilterStartTime(after_=started))
    with get_client(sync_client=True) as client:
        made = client.read_flow_runs(flow_run_filter=later)
    (whole,) = (run for run in made if run.parent_task_run_id is None)
    assert whole.name == f"audit {request_before.checkpoint}, {request_before.profile}"


# ---- the README's queries return what it says ----


README = (Path(__file__).parents[2] / "README.md").read_text()
QUERIES = [
    shlex.split(line[2:], comments=True)[2:] for line in README.split("\n") if line.startswith("$ embaudit query ")
]


@pytest.mark.usefixtures("audited_home")
def test_every_query_of_the_readme_runs(embaudit_here: Embaudit) -> None:
    assert len(QUERIES) >= 3
    for arguments in QUERIES:
        result = embaudit_here("query", *arguments)
        assert result.returncode == 0, (arguments, result.stderr)
        assert len(result.stdout.strip().split("\n")) > 2


@pytest.mark.slow
@pytest.mark.usefixtures("minilm")
def test_the_figures_under_a_query_are_those_of_the_packaged_checkpoint(embaudit: Embaudit) -> None:
    query, shown = re.findall(r'\$ embaudit query "([^"]+)" --format csv\n((?:[\w,.]+\n)+)', README)[0]
    assert embaudit("audit", "packaged:all-MiniLM-L6-v2", "--measures", "socm").returncode == 0
    assert embaudit("query", query, "--format", "csv").stdout == shown
