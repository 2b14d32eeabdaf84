"""Geometry through the audit flow: two corpora, one too small for hubs; gate, figures, comparison, page and query."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from commands import Embaudit
from planned import assert_planned
from small_audits import home_at
from tiny import ENGLISH

from embaudit.measures.geometry.geometry import FIGURES
from embaudit.questions.audit import AuditRequest
from embaudit.warehouse.regression import RULES, Figure, compare
from embaudit_flows.audit import AuditOutcome, audit

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
def outcome(
    prefect_api: str,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    tmp_path_factory: pytest.TempPathFactory,
    empty_once: Path,
) -> AuditOutcome:
    """An audit of sixty texts and of six, to be read only."""
    folder = tmp_path_factory.mktemp("geometry")
    words = ENGLISH.split()
    for name, texts in (("wikipedia", 60), ("msmarco", 6)):
        lines = (" ".join(words[(7 * place + step * step) % len(words)] for step in range(8)) for place in range(texts))
        (folder / f"{name}.txt").write_text("\n".join(f"{line} {place}" for place, line in enumerate(lines)))
    policy = folder / "policy.toml"
    policy.write_text(POLICY)
    with home_at(folder / "home", empty_once):
        return audit(
            AuditRequest(
                checkpoint=str(tiny_checkpoint),
                profile=str(tiny_profile),
                measures=["geometry"],
                corpora={name: str(folder / f"{name}.txt") for name in ("wikipedia", "msmarco")},
                policy=str(policy),
                device="cpu",
            )
        )


@pytest.mark.slow
def test_a_corpus_has_a_row_with_intervals_and_what_is_undefined_is_said(outcome: AuditOutcome) -> None:
    with duckdb.connect(outcome.warehouse, read_only=True) as connection:
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
    assert outcome.warnings == [HUBS]
    # A gate limits what a corpus has, and the next audit is compared by it.
    assert {one.measure for one in figures if one.item == "wikipedia"} == {*FIGURES, "dimensions_for_half"}
    directed = {measure for summary, measure in RULES if summary == "geometry"}
    assert bounded == directed > {"mean_cosine", "isoscore", "hubness_skewness"}
    assert not any(row["is_worse"] for row in compare(figures, figures))
    assert outcome.gate is not None
    assert not outcome.gate.tripped


@pytest.mark.slow
def test_the_plan_says_about_how_much_it_encodes(outcome: AuditOutcome) -> None:
    assert_planned(outcome)


@pytest.mark.slow
def test_the_page_the_report_and_the_query(embaudit_here: Embaudit, outcome: AuditOutcome) -> None:
    done = embaudit_here("show", outcome.audit_id, "--full", "--warehouse", outcome.warehouse)
    assert done.returncode == 0, done.stderr
    assert outcome.report is not None
    report = Path(outcome.report).read_text(encoding="utf-8")
    for expected in ("Geometry", "IsoScore*", "effective rank", "hubness skewness"):
        assert expected in done.stdout
        assert expected in report
    found = embaudit_here("query", "geometry", "--format", "json", "--warehouse", outcome.warehouse)
    rows = json.loads(found.stdout)
    assert [(row["corpus"], row["texts"]) for row in rows] == [("msmarco", 6), ("wikipedia", 60)]
    assert all(len(row["top_dimensions"].split()) == 3 for row in rows)
