"""Placement through the audit flow: every strategy places every token; page, finding and queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from commands import Embaudit
from planned import assert_planned
from small_audits import AuditOnce, answered, shown
from tiny import ENGLISH

from embaudit.measures.geometry.geometry import FIGURES
from embaudit.measures.placement import STRATEGIES
from embaudit.warehouse.regression import RULES, Figure, compare
from embaudit.words.errors import UsageError
from embaudit_flows.audit import AuditOutcome

pytestmark = pytest.mark.slow

SMALL = {"draws": 4, "budget": 3, "tries": 4, "guided": 2, "ordinary": 4, "resamples": 100}


@pytest.fixture(scope="module")
def outcome(audit_once: AuditOnce) -> AuditOutcome:
    """An audit of where two tokens do most harm, to be read only."""
    return audit_once(**asked("river", "town"))


def asked(*tokens: str) -> dict[str, Any]:
    return {"measures": ["placement"], "measure_settings": {"placement": {**SMALL, "tokens": list(tokens)}}}


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
    assert_planned(outcome)


def test_the_page_the_finding_and_the_queries(embaudit_here: Embaudit, outcome: AuditOutcome) -> None:
    (found,) = [row for row in outcome.findings if row["measure"] == "placement"]
    assert found["name"] == "worst_places"
    assert "Where sticky tokens do most harm" in shown(embaudit_here, outcome)
    for name, count in (("placement", 2 * len(STRATEGIES)), ("placement-tokens", 2 * len(STRATEGIES))):
        rows = answered(embaudit_here, outcome, name)
        assert len(rows) == count
        assert rows[0]["strategy"] == "rotation"


def test_tokens_that_no_text_or_every_text_holds_are_refused(audit_once: AuditOnce) -> None:
    with pytest.raises(UsageError, match="or every text does"):
        audit_once(**asked("[CLS]", "[unused0]"))


# ---- geometry ----


POLICY = """
[require]
measures = ["geometry"]
[[limit]]
name = "one direction is not all there is"
summary = "geometry"
measure = "effective_rank"
min = 1
reason = "because"
"""
HUBS = "Undefined, geometry of 6 texts of msmarco: hubness_skewness, anti_hubs."


@pytest.fixture(scope="module")
def audited_geometry(audit_once: AuditOnce, tmp_path_factory: pytest.TempPathFactory) -> AuditOutcome:
    """An audit of sixty texts and of six, to be read only."""
    folder = tmp_path_factory.mktemp("geometry")
    words = ENGLISH.split()
    for name, texts in (("wikipedia", 60), ("msmarco", 6)):
        lines = (" ".join(words[(7 * place + step * step) % len(words)] for step in range(8)) for place in range(texts))
        (folder / f"{name}.txt").write_text("\n".join(f"{line} {place}" for place, line in enumerate(lines)))
    policy = folder / "policy.toml"
    policy.write_text(POLICY)
    corpora = {name: str(folder / f"{name}.txt") for name in ("wikipedia", "msmarco")}
    return audit_once(measures=["geometry"], corpora=corpora, policy=str(policy))


def test_a_corpus_has_a_row_with_intervals_and_what_is_undefined_is_said(audited_geometry: AuditOutcome) -> None:
    with duckdb.connect(audited_geometry.warehouse, read_only=True) as connection:
        (small, large) = connection.execute("FROM geometry ORDER BY texts").df().to_dict("records")
        dimensions = connection.execute("SELECT corpus, count(*) FROM geometry_dimension GROUP BY 1 ORDER BY 1")
        assert dimensions.fetchall() == [("msmarco", 10), ("wikipedia", 10)]
        cells = connection.execute("SELECT item, measure, value FROM summary_figure WHERE summary = 'geometry'")
        figures = [Figure("geometry", *cell) for cell in cells.fetchall()]
        intervals = "SELECT DISTINCT measure FROM summary_interval WHERE item = 'wikipedia' AND low IS NOT NULL"
        bounded = {name for (name,) in connection.execute(intervals).fetchall()}
    assert (large["corpus"], large["texts"], small["texts"]) == ("wikipedia", 60, 6)
    for name in FIGURES:
        assert large[f"{name}_low"] <= large[name] <= large[f"{name}_high"], name
        assert large[f"{name}_low"] < large[f"{name}_high"], name
    assert audited_geometry.warnings == [HUBS]
    # A gate limits what a corpus has, and the next audit is compared by it.
    assert {one.measure for one in figures if one.item == "wikipedia"} == {*FIGURES, "dimensions_for_half"}
    directed = {measure for summary, measure in RULES if summary == "geometry"}
    assert bounded == directed > {"mean_cosine", "isoscore", "hubness_skewness"}
    assert not any(row["is_worse"] for row in compare(figures, figures))
    assert audited_geometry.gate is not None
    assert not audited_geometry.gate.tripped
    assert_planned(audited_geometry)


def test_the_page_the_report_and_the_query(embaudit_here: Embaudit, audited_geometry: AuditOutcome) -> None:
    page = shown(embaudit_here, audited_geometry)
    assert audited_geometry.report is not None
    report = Path(audited_geometry.report).read_text(encoding="utf-8")
    for expected in ("Geometry", "IsoScore*", "effective rank", "hubness skewness"):
        assert expected in page
        assert expected in report
    rows = answered(embaudit_here, audited_geometry, "geometry")
    assert [(row["corpus"], row["texts"]) for row in rows] == [("msmarco", 6), ("wikipedia", 60)]
    assert all(len(row["top_dimensions"].split()) == 3 for row in rows)
