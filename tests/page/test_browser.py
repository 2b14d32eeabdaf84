"""Pages in a real browser: quiet, whole and readable at every width and in both themes."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import CUT_OFF, FAINTEST, LINKS, OVERFLOW, new_tab
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit

from embaudit.pages.compare import comparison_page
from embaudit.pages.html import render
from embaudit.pages.sides import read_sides
from embaudit.pages.write import write_file, write_index, write_page

# What WCAG 2 asks of text (level AA).
READABLE = 4.5
# How many pictures each page has of these audits.
PICTURES = {"a2": 18, "comparison": 2, "index": 1}


@pytest.fixture(scope="module")
def folder(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a checkpoint's second audit, of both side by side, and of all audits."""
    folder = tmp_path_factory.mktemp("pages")
    warehouse = Path(shutil.copy(empty_once, folder / "warehouse.duckdb"))
    rows = plausible_rows("c1", "owner/a-model-whose-name-is-as-long-as-names-on-the-hub-are")
    others = ("gate_result", "regression", "watched_revision")
    put_audit(warehouse, audit_record("a1", "c1"), {**rows, **{name: [] for name in others}}, measure_runs())
    for name in ("regression", "gate_result"):
        rows[name] = [{**row, "audit_id": "a2"} for row in rows[name]]
    rows["regression"] = [{**row, "predecessor_audit_id": "a1"} for row in rows["regression"]]
    failed = expectation("socm_summary", success=False, severity="warning")
    put_audit(warehouse, audit_record("a2", "c1", minutes=1), rows, measure_runs(), [failed])
    put_audit(warehouse, audit_record("dead", "c1", "failed", "a critical check", 2), {})
    write_page(warehouse, "a2", folder)
    write_file(render(comparison_page(read_sides(warehouse, ["a1", "a2"]))), folder / "comparison.html")
    write_index(warehouse, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_a_page_is_quiet_whole_and_readable_at_every_width_and_in_both_themes(
    name: str, folder: Path, tmp_path: Path
) -> None:
    page = folder / f"{name}.html"
    papers = set()
    with new_tab(tmp_path) as tab:
        for theme in ("light", "dark"):
            for width in (400, 1200):
                tab.open(page.as_uri(), width, theme)
                assert not tab.said("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
                requests = [event["request"]["url"] for event in tab.said("Network.requestWillBeSent")]
                assert requests == [page.as_uri()], "nothing but the file itself"
                assert tab.value("document.querySelectorAll('figure svg').length") == PICTURES[name]
                # Every list that can be opened is, so that tables below charts are looked at too.
                tab.value("document.querySelectorAll('details').forEach(one => one.open = true)")
                assert tab.value(OVERFLOW) <= 0, (theme, width)
                assert tab.value(CUT_OFF) == []
                contrast, words = tab.value(FAINTEST)
                assert contrast >= READABLE, (theme, words)
                papers.add(tab.value("getComputedStyle(document.body).backgroundColor"))
            fills = "[...document.querySelectorAll('svg path')].map(one => getComputedStyle(one).fill)"
            assert "rgb(0, 0, 0)" not in tab.value(fills), "the style sheet's colours"
        for link in tab.value(LINKS):
            if link.startswith("#"):
                assert tab.value(f"document.querySelector(`{link}`) !== null"), link
            else:
                assert (folder / unquote(link)).is_file()
    assert len(papers) == 2
