"""All audits of a warehouse as one page: which checkpoint stands first, what is counted, where links lead."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from plausible import audit_record, expectation, plausible_rows
from ready_warehouses import put_audit
from told_before import unread
from webpage import Page as HtmlPage

from embaudit.cli.main import cli
from embaudit.declared.chart import Chart
from embaudit.declared.document import Link, Page, Table
from embaudit.pages.index import index_page, read_index
from embaudit.pages.write import write_index
from embaudit.system.settings import warehouse_at

STRANGE = "<script>alert(1)</script>\u202e&amp;"


def rows_of(checkpoint: str, source: str, level: str) -> dict[str, list[dict[str, Any]]]:
    """An audit whose worst finding is of a level, and the only one of that level."""
    rows = plausible_rows(checkpoint, source)
    found = [{**row, "level": "ok"} for row in rows["finding"]]
    found[0] |= {"level": level, "sentence": f"{source} is {level}."}
    return {**rows, "finding": found, "gate_result": [], "regression": [], "watched_revision": []}


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad checkpoints, one of two revisions, one that failed after it was published, one of strange words."""
    place = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("index") / "warehouse.duckdb"))
    given = plausible_rows()
    put_audit(place, audit_record("fine", "c1"), rows_of("c1", "owner/fine", "ok"))
    put_audit(place, audit_record("old", "c2", minutes=1), rows_of("c2", "owner/bad", "ok"))
    bad = rows_of("c3", "owner/bad", "problem") | {
        "regression": [{**row, "audit_id": "bad", "predecessor_audit_id": "old"} for row in given["regression"]],
        "gate_result": [{**row, "audit_id": "bad"} for row in given["gate_result"]],
    }
    put_audit(place, audit_record("bad", "c3", minutes=2), bad)
    put_audit(place, audit_record("look", "c4", minutes=3), rows_of("c4", STRANGE, "look"))
    failed = replace(audit_record("dead", "c1", "failed", "1 critical check", 4), settings={"source": "owner/fine"})
    put_audit(place, failed, {}, checks=[expectation(success=False)])
    return place


def tables(page: Page) -> Mapping[str, Table]:
    return {section.title: part for section in page.sections for part in section.parts if isinstance(part, Table)}


def index_of(warehouse: Path, folder: Path) -> Page:
    return index_page(read_index(warehouse_at(warehouse), folder))


def test_each_checkpoint_stands_there_once_the_worst_first(warehouse: Path, tmp_path: Path) -> None:
    page = index_of(warehouse, tmp_path)
    assert not unread("Index", page)
    records = tables(page)["Checkpoints"].records()
    assert [(row["checkpoint"], row["worst finding"]) for row in records] == [
        ("owner/bad", "problem"),
        (STRANGE, "look"),
        ("owner/fine", "ok"),
    ]
    assert [row["gate"] for row in records] == ["tripped", None, None]
    assert dict(page.identity)["audits"] == "4 published, 1 failed"
    assert [(finding.level, finding.sentence) for finding in page.findings] == [
        (
            "problem",
            "Open: /indexes/one (search: does not find what it holds), /indexes/one (vectors: not wholly its own), "
            "/indexes/one (why: lost), http://search (verify: another function).",
        ),
        ("problem", "Problems in 1 of 3 checkpoints: owner/bad."),
        ("look", f"Something to look at in 1 of 3 checkpoints: {STRANGE}."),
        ("problem", "The gate tripped for 1 checkpoint: owner/bad."),
    ]
    found = tables(page)["Open findings"].records()
    assert [(row["level"], row["what was found"]) for row in found] == [
        ("problem", "owner/bad is problem."),
        ("look", f"{STRANGE} is look."),
    ], "of the newest audits, and nothing that is fine"


def test_what_a_watch_looks_at_stands_there_what_is_open_first(warehouse: Path, tmp_path: Path) -> None:
    (table,) = [
        section.parts[0]
        for section in index_of(warehouse, tmp_path).sections
        if section.title.startswith("What is watched")
    ]
    assert isinstance(table, Table)
    assert [(row["what"], row["state"], row["verdict"]) for row in table.records()] == [
        ("/indexes/one", "open", "search: does not find what it holds"),
        ("/indexes/one", "open", "vectors: not wholly its own"),
        ("/indexes/one", "open", "why: lost"),
        ("http://search", "open", "verify: another function"),
        ("http://away", "no answer", "verify: could not be compared"),
    ]


def test_what_got_worse_and_what_failed_have_their_rows(warehouse: Path, tmp_path: Path) -> None:
    page = index_of(warehouse, tmp_path)
    worse = tables(page)["What got worse"].records()
    assert [(row["checkpoint"], row["figure"], row["before"], row["now"]) for row in worse] == [
        ("owner/bad", "socm_summary.socm_mean", 0.4, 0.5),
        ("owner/bad", "sticky_severity.estimated", 0.0, 3.0),
    ]
    (section,) = [section for section in page.sections if section.title == "What failed"]
    audits, checks = (part.records() for part in section.parts if isinstance(part, Table))
    assert [(row["audit"], row["checkpoint"], row["why"]) for row in audits] == [
        ("dead", "owner/fine", "1 critical check")
    ]
    assert [(row["audit"], row["severity"], row["rows"]) for row in checks] == [("dead", "critical", 2)]


def test_a_line_joins_the_revisions_of_one_checkpoint(warehouse: Path, tmp_path: Path) -> None:
    page = index_of(warehouse, tmp_path)
    (chart,) = [part for section in page.sections for part in section.parts if isinstance(part, Chart)]
    for (panel,) in chart.rows:
        (marks,) = [layer.marks for layer in panel.layers if layer.kind == "point"]
        assert [mark.series for mark in marks] == ["owner/bad", "owner/bad"], "others were audited once"
        assert [mark.x for mark in marks] == sorted({mark.x for mark in marks}, key=str), "each audit has its place"
        assert panel.x.categories == [mark.x for mark in marks]


def test_links_lead_to_pages_that_are_there(warehouse: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("an audit's page")
    (tmp_path / "of someone else.html").write_text("no audit's")
    found = {row[0] for row in tables(index_of(warehouse, tmp_path))["Checkpoints"].rows}
    assert found == {Link("owner/bad", "bad.html"), STRANGE, "owner/fine"}
    path = write_index(warehouse, tmp_path)
    links = [attributes["href"] for tag, attributes in HtmlPage(path.read_text()).tags if tag == "a"]
    assert {link for link in links if not link.startswith("#")} == {"bad.html"}


def test_text_from_strangers_stays_text(warehouse: Path, tmp_path: Path) -> None:
    page = HtmlPage(write_index(warehouse, tmp_path).read_text())
    assert STRANGE.replace("\u202e", r"\u202e") in page.words
    assert "script" not in {tag for tag, _ in page.tags}


def test_an_empty_warehouse_says_what_to_type(empty_once: Path, tmp_path: Path) -> None:
    page = index_of(empty_once, tmp_path)
    assert [(finding.level, finding.advice) for finding in page.findings] == [
        ("not measured", "embaudit audit CHECKPOINT")
    ]
    assert page.sections == []


def test_the_command_writes_beside_the_audits_and_says_where(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path))
    said = CliRunner().invoke(cli, ["index", "--warehouse", str(warehouse)])
    assert (said.exit_code, said.output) == (0, f"{tmp_path / 'reports' / 'index.html'}\n")
    first = (tmp_path / "reports" / "index.html").read_text()
    said = CliRunner().invoke(cli, ["index", "--warehouse", str(warehouse), "--out", str(tmp_path / "here.html")])
    assert said.exit_code == 0
    assert (tmp_path / "here.html").read_text() == first
    missing = CliRunner().invoke(cli, ["index", "--warehouse", str(tmp_path / "none.duckdb")])
    assert missing.exit_code == 1
    assert "none.duckdb" in str(missing.exception)
