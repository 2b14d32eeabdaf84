"""Placement through the audit flow: every strategy places every token; page, finding and queries."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from commands import Embaudit
from planned import assert_planned
from small_audits import home_at

from embaudit.measures.placement import STRATEGIES
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import UsageError
from embaudit_flows.audit import AuditOutcome, audit

pytestmark = pytest.mark.slow

SMALL = {"draws": 4, "budget": 3, "tries": 4, "guided": 2, "ordinary": 4, "resamples": 100}


@pytest.fixture(scope="module")
def outcome(
    prefect_api: str,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    tmp_path_factory: pytest.TempPathFactory,
    empty_once: Path,
) -> AuditOutcome:
    """An audit of where two tokens do most harm, to be read only."""
    with home_at(tmp_path_factory.mktemp("placement") / "home", empty_once):
        return audit(request(tiny_checkpoint, tiny_profile, ["river", "town"]))


def request(checkpoint: Path, profile: Path, tokens: list[str]) -> AuditRequest:
    return AuditRequest(
        checkpoint=str(checkpoint),
        profile=str(profile),
        measures=["placement"],
        measure_settings={"placement": {**SMALL, "tokens": tokens}},
        device="cpu",
    )


def test_every_strategy_places_every_token(outcome: AuditOutcome) -> None:
    with duckdb.connect(outcome.warehouse, read_only=True) as connection:
        rows = connection.execute("FROM placement").df().to_dict("records")
        tokens = connection.execute("FROM placement_token").df().to_dict("records")
    assert {(row["strategy"], row["role"]) for row in rows} == {
        (strategy, role) for strategy in STRATEGIES for role in ("severe", "ordinary")
    }
    assert {row["token"] for row in tokens} == {"river", "town"}
    assert len(tokens) == 2 * len(STRATEGIES)
    by_strategy = {row["strategy"]: row for row in rows if row["role"] == "severe"}
    assert by_strategy["prefix"]["place"] == 0
    assert by_strategy["suffix"]["place"] == 1
    assert by_strategy["best_random"]["loss_seen"] >= by_strategy["random"]["loss_seen"]
    assert by_strategy["best_random"]["encodes"] == 4
    assert all(row["copies"] == 3 for name, row in by_strategy.items() if name not in ("greedy", "gradient"))
    for row in tokens:
        assert row["token"] in row["example"].split()
        if row["strategy"] == "suffix":
            assert row["example"].split()[-3:] == [row["token"]] * 3


def test_the_plan_says_about_how_much_it_encodes(outcome: AuditOutcome) -> None:
    assert_planned(outcome)


def test_the_page_the_finding_and_the_queries(embaudit_here: Embaudit, outcome: AuditOutcome) -> None:
    (found,) = [row for row in outcome.findings if row["measure"] == "placement"]
    assert found["name"] == "worst_places"
    done = embaudit_here("show", outcome.audit_id, "--full", "--warehouse", outcome.warehouse)
    assert done.returncode == 0, done.stderr
    assert "Where sticky tokens do most harm" in done.stdout
    for name, count in (("placement", 2 * len(STRATEGIES)), ("placement-tokens", 2 * len(STRATEGIES))):
        rows = json.loads(embaudit_here("query", name, "--format", "json", "--warehouse", outcome.warehouse).stdout)
        assert len(rows) == count
        assert rows[0]["strategy"] == "rotation"


def test_tokens_that_no_text_or_every_text_holds_are_refused(
    prefect_api: str, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path, empty_once: Path
) -> None:
    with home_at(tmp_path / "home", empty_once), pytest.raises(UsageError, match="or every text does"):
        audit(request(tiny_checkpoint, tiny_profile, ["[CLS]", "[unused0]"]))
