"""Integrity and quality in an audit: a random checkpoint must not be served, and everything that shows it says so."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import Embaudit
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import Artifact
from prefect.client.schemas.sorting import ArtifactSort
from small_audits import AuditOnce, answered, shown
from tiny import ENGLISH
from warehouse_rows import rows

from embaudit.pages.text import plain
from embaudit.steps.progress import NoDisplay, shown_on
from embaudit.watch.open_items import accept, read_open
from embaudit_flows.audit import AuditOutcome
from embaudit_flows.ending import key_of_source

pytestmark = pytest.mark.slow

CAUSES = ("untrained_layers", "untrained_embeddings", "untrained_matrices")


@dataclass
class Heard(NoDisplay):
    """What a terminal would show of an audit, and the artifacts that it leaves on the server."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    outcome: AuditOutcome | None = None

    def say(self, line: str, level: int = logging.INFO) -> None:
        self.lines.append((level, line))

    def measured(self, what: str, seconds: float) -> None:
        self.lines.append((logging.INFO, f"{what}: done"))


@pytest.fixture(scope="module")
def heard(audit_once: AuditOnce, tmp_path_factory: pytest.TempPathFactory) -> Heard:
    """An audit of the tiny checkpoint, whose weights were never trained, on pairs of its own; to be read only."""
    folder = tmp_path_factory.mktemp("first-minute")
    words = ENGLISH.split()
    lines = ["sentence1\tsentence2\tscore\tdataset"]
    for place in range(80):
        first, second = (" ".join(words[(place + step) % len(words)] for step in range(5)) for step in (0, 1))
        lines.append(f"{first}\t{second} {place}\t{place % 6}\t{'even' if place % 2 else 'odd'}")
    (folder / "pairs.tsv").write_text("\n".join(lines))
    (folder / "policy.toml").write_text('[require]\nmeasures = ["integrity", "quality"]\n')
    heard = Heard()
    started = datetime.now(UTC)
    with shown_on(heard):
        heard.outcome = audit_once(
            measures=["integrity", "quality", "layers"],
            corpora={"sts": str(folder / "pairs.tsv")},
            policy=str(folder / "policy.toml"),
            gate="mark",
        )
    with get_client(sync_client=True) as client:
        made = client.read_artifacts(sort=ArtifactSort.CREATED_DESC)
    heard.artifacts = [one for one in reversed(made) if one.created and one.created >= started]
    return heard


@pytest.fixture(scope="module")
def outcome(heard: Heard) -> AuditOutcome:
    assert heard.outcome is not None
    return heard.outcome


def test_a_broken_checkpoint_is_called_so_at_once_and_again_at_the_end(heard: Heard, outcome: AuditOutcome) -> None:
    lines = [line for _, line in heard.lines]
    ((level, said), *others) = [one for one in heard.lines if "Do not serve: " in one[1]]
    assert not others
    assert level == logging.WARNING
    # What it says is what the audit ends with, and what to do; then how long the rest takes, and how to stop it.
    cause = next(row for row in outcome.findings if row["name"] == outcome.verdict["cause"])
    assert said.startswith(f"{outcome.source}: {outcome.verdict['line']} → {cause['advice']} The rest takes about ")
    assert "Ctrl-C" in said
    assert "the same command continues" in said
    # Integrity found it: scores need not be awaited.
    order = [lines.index(f"{name} of {outcome.source}: done") for name in ("integrity", "quality", "layers")]
    assert order[0] < lines.index(said) < order[1] < order[2]
    key = f"audit-verdict-{key_of_source(outcome.source)}"
    early, final = (one for one in heard.artifacts if one.key == key)
    assert plain(outcome.verdict["line"]) in str(early.data)
    assert final.data == plain(outcome.verdict["line"])


def test_the_verdict_and_its_cause(outcome: AuditOutcome) -> None:
    assert outcome.verdict["kind"] == "do not serve"
    assert outcome.verdict["cause"] in CAUSES
    assert rows(outcome, "SELECT kind, line, cause FROM verdict") == [
        tuple(outcome.verdict[name] for name in ("kind", "line", "cause"))
    ]
    # It is a finding of integrity, and not listed a second time.
    assert (outcome.verdict["cause"],) in rows(outcome, "SELECT name FROM finding WHERE measure = 'integrity'")


def test_each_tensor_has_a_row(outcome: AuditOutcome, tiny_checkpoint: Path) -> None:
    from safetensors import safe_open

    with safe_open(tiny_checkpoint / "model.safetensors", "pt") as file:
        stored = {name: "x".join(map(str, file.get_slice(name).get_shape())) for name in file.keys()}  # noqa: SIM118
    found = rows(outcome, "SELECT stored_name, replace(shape, ' × ', 'x'), status FROM weight WHERE file IS NOT NULL")
    assert {name: shape for name, shape, _ in found} == stored
    assert {status for *_, status in found} <= {"same", "renamed"}
    table = "embeddings.word_embeddings.weight"
    ((deviation, largest),) = rows(outcome, f"SELECT deviation, largest FROM weight WHERE tensor LIKE '%{table}'")
    with safe_open(tiny_checkpoint / "model.safetensors", "pt") as file:
        values = file.get_tensor(next(name for name in stored if name.endswith(table)))
    assert (deviation, largest) == pytest.approx((float(values.std(correction=0)), float(values.abs().max())))


def test_each_data_set_has_its_own_scores_and_the_sample_stands_in_for_what_was_not_given(
    outcome: AuditOutcome,
) -> None:
    assert rows(outcome, "SELECT data_set, kind, items FROM quality ORDER BY ALL") == [
        *(("even", "pairs", 40), ("odd", "pairs", 40)),
        ("sample", "queries", 90),
    ]
    assert rows(outcome, "SELECT DISTINCT layer FROM quality_layer ORDER BY 1") == [(0,), (1,), (2,)]
    # What the last layer leaves is what is served.
    last = (
        "SELECT abs(l.score - q.score) FROM quality_layer AS l JOIN quality AS q USING (data_set, kind) WHERE layer = 2"
    )
    assert all(difference < 1e-6 for (difference,) in rows(outcome, last))
    assert rows(outcome, "SELECT count(*) FROM quality WHERE NOT score BETWEEN score_low AND score_high") == [(0,)]


def test_any_policy_trips_and_the_verdict_stays_open_until_it_is_accepted(outcome: AuditOutcome) -> None:
    assert outcome.gate is not None
    assert [finding.rule for finding in outcome.gate.tripped] == ["sound checkpoint"]
    cause = outcome.verdict["cause"]
    found = {str(item) for item in read_open(outcome.warehouse, [outcome.audit_id], 5)}
    assert found == {f"do not serve: {cause}", "policy policy: sound checkpoint"}
    accepted = accept(Path(outcome.warehouse), outcome.audit_id, [cause], by="ops", reason="a test", wait_seconds=5)
    assert [str(item) for item in accepted] == [f"do not serve: {cause}"]
    assert {item.what for item in read_open(outcome.warehouse, [outcome.audit_id], 5)} == {"gate"}


def test_the_page_begins_with_it_and_has_the_figures(embaudit_here: Embaudit, outcome: AuditOutcome) -> None:
    page = shown(embaudit_here, outcome)
    first = next(line for line in page.splitlines() if line.startswith("problem"))
    assert "Do not serve: " in first
    assert outcome.report is not None
    report = Path(outcome.report).read_text(encoding="utf-8")
    for expected in ("Where the tensors in memory come from", "Scores, beside what needs no network"):
        assert expected in page
        assert expected in report
    assert "If the network stopped after each layer" in report
    assert report.index("Do not serve: ") < report.index("Gate tripped")
    for query in ("verdicts", "weights", "quality", "quality-layers", "quality-readings", "open-items"):
        # Whatever the reading, random weights find no more than words do: none is compared.
        assert bool(answered(embaudit_here, outcome, query)) == (query != "quality-readings"), query
    assert answered(embaudit_here, outcome, "leaderboard")[0]["verdict"] == "do not serve"
