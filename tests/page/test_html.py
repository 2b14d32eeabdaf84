"""The HTML page: what it shows, that it needs no network, and that text from strangers stays text."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit
from webpage import Page

from embaudit.cli.main import cli
from embaudit.declared.document import Column, Section, Table
from embaudit.declared.document import Page as PageModel
from embaudit.pages.html import render
from embaudit.pages.write import audit_page, read_audit, write_page
from embaudit.warehouse.connect import open_writer
from embaudit.words.errors import CheckFailed, StorageError, UsageError

SCRIPT = "<script>alert(1)</script>"
ATTACKS = f'{SCRIPT}"><img src=x onerror=alert(1)>{{{{ 7 * 7 }}}}</style>javascript:alert(1)&amp;'
UNSEEN, SHOWN = "\x1b[31m\u202e", "\\x1b[31m\\u202e"


def html_of(facts: dict[str, Any]) -> str:
    return render(audit_page(facts))


def filled(empty: Path, folder: Path, attack: str = "x", source: str = "owner/model") -> Path:
    """One audit; everything in it that a stranger could have named has ``attack`` in it."""
    path = Path(shutil.copy(empty, folder / "warehouse.duckdb"))
    rows = plausible_rows("c1", source + attack)
    for row in (*rows["token"], *rows["impact_token"], *rows["mitigation_token"], *rows["placement_token"]):
        row["token"] += attack
    for row in (*rows["socm_plane"], *rows["text"]):
        for name in {"token", "text"} & row.keys():
            row[name] = f"{row[name]}{attack}"
    rows["corpus"][0]["source"] = attack
    for table in (
        "socm_text",
        "socm_pair",
        "socm_listed_pair",
        "socm_plane",
        "socm_summary",
        "socm_cut",
        "layer_stat",
        "pooled_stat",
        "geometry",
        "geometry_dimension",
        "length_summary",
        "length_rise",
        "length_bin",
        "length_sigma",
        "occurrence_corpus",
        "occurrence",
        "impact",
        "impact_token",
        "mitigation",
    ):
        for row in rows[table]:
            row["corpus"] += attack
    for row in (*rows["hub"], *rows["attractor"]):
        row |= {name: f"{row[name]}{attack}" for name in ("text", "worst_text") if row.get(name)}
    for row in rows["gate_result"]:
        row |= {"rule": row["rule"] + attack, "reason": attack, "observed": attack, "policy": "release" + attack}
        row["audit_id"] = "a2"
    for row in rows["tempscale_choice"]:
        row["reason"] += attack
    failed = expectation("socm_summary", success=False, severity="warning")
    put_audit(path, audit_record("a2", "c1"), rows, measure_runs(), [expectation(), failed])
    return path


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One published audit, and one that failed."""
    path = filled(empty_once, tmp_path_factory.mktemp("page"))
    put_audit(path, audit_record("dead", "c1", "failed", "why", minutes=5), {}, [])
    return path


@pytest.fixture(scope="module")
def facts(warehouse: Path) -> dict[str, Any]:
    return read_audit(warehouse, "a2")


@pytest.fixture(scope="module")
def harmless_tags(facts: dict[str, Any]) -> list[str]:
    return [tag for tag, _ in Page(html_of(facts)).tags]


def test_the_page_has_every_section_and_its_figures(facts: dict[str, Any]) -> None:
    page = Page(html_of(facts))
    for words in (
        *("owner/model", "Gate tripped", "worst_loss", "0.62", "0.4 to 0.5", "Sticky tokens", "strong"),
        *("Loss of the worst tokens, by number of copies", "× 8", "Number of tokens by severity", "confirmed"),
        *("reliability 0.40 [0.30, 0.50]", "prediction from input embeddings 0.70 [0.60, 0.80]"),
        *("Second-order collapse", "Layers", "Layer by layer", "Length", "windows averaged"),
        # The row behind the last layer's, for a checkpoint that ends with a norm.
        "0.900 pooled 1.500 0.400",
        *("Integrity", "Where the tensors in memory come from", "Quality", "gain on word overlap", "cls pooling"),
        *("Geometry", "IsoScore*", "effective rank"),
        *("Surface", "of the ten best stay", "swapped letters", "Attractors", "error pages", "above relevant ones for"),
        *("Where sticky tokens do most harm", "greedy search", "+0.150 [+0.14, +0.16]", "a river"),
        *("What helps against sticky tokens", "removal from texts (strip)", "+0.045 [+0.035, +0.055]"),
        *("Impact of sticky tokens", "worst by retention", "-0.066 [-0.086, -0.046]", "Ordinary tokens: 'riverx'"),
        *(
            "Attention temperature",
            "Checks",
            "2 checks ran",
            "1 failed",
            "Settings",
            "sticky.copies",
            "80% of the pairs of long texts score higher.",
            "Such texts look alike.",
        ),
    ):
        assert words in page.words, words
    ids = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links == [f"#{one}" for one in ids]
    assert len(set(ids)) == len(ids) == 23


def test_the_page_loads_nothing_and_runs_nothing(facts: dict[str, Any]) -> None:
    html = html_of(facts)
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html
    assert "url(" not in html
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert len(html) < 300_000


def test_text_from_strangers_stays_text(empty_once: Path, tmp_path: Path, facts: dict[str, Any]) -> None:
    html = html_of(read_audit(filled(empty_once, tmp_path, ATTACKS + UNSEEN), "a2"))
    page, harmless = Page(html), Page(html_of(facts))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in harmless.tags], "no element more and none less"
    assert page.words.count(ATTACKS + SHOWN) >= 20, "it is there to be read, in every table"
    assert not set(UNSEEN[::5]) & set(html), "what nobody sees is written out"


@pytest.mark.slow
@given(text=st.text(min_size=1, max_size=30))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_token_or_name_changes_the_page(facts: dict[str, Any], harmless_tags: list[str], text: str) -> None:
    tokens = [{**row, "token": text} for row in facts["tokens"]]
    changed = Page(html_of({**facts, "source": text, "tokens": tokens}))
    assert [tag for tag, _ in changed.tags] == harmless_tags


def test_rows_beyond_the_most_are_counted_and_a_bar_stays_in_its_cell() -> None:
    rows = [(f"r{i}", share) for i, share in enumerate([-0.5, 0.25, 7.0, None] * 60)]
    table = Table([Column("name"), Column("share", ".2f", is_bar=True)], rows, more="embaudit query all")
    html = render(PageModel("t", [], [], [Section("s", [table])]))
    assert "200 of 240 rows; all: embaudit query all" in html
    assert html.count("<tr>") == 201
    assert {a["style"] for tag, a in Page(html).tags if tag == "i"} == {"width:0%", "width:25%", "width:100%"}


def test_a_page_of_one_measure_leaves_the_others_out(empty_warehouse: Path) -> None:
    rows = {name: part for name, part in plausible_rows().items() if name.startswith(("socm", "checkpoint"))}
    put_audit(empty_warehouse, audit_record(), rows, [])
    page = Page(html_of(read_audit(empty_warehouse, "a1")))
    ids = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert ids == ["second-order-collapse", "checks", "settings"]
    assert "Gate" not in page.words


def test_what_got_worse_is_on_the_page(warehouse: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(warehouse, tmp_path))
    with open_writer(path, 0) as connection:
        connection.execute("DELETE FROM regression")
        connection.execute(
            "INSERT INTO regression VALUES "
            "('a2', 'a0', 'socm_summary', 'w', 'socm_mean', 0.7, 0.5, 0.2, 0.4, 'higher', 0.03, 0, true), "
            "('a2', 'a0', 'socm_summary', 'w', 'd_mu_mean', 0.3, 0.3, 0.0, 0.0, NULL, NULL, NULL, false)"
        )
    page = Page(html_of(read_audit(path, "a2")))
    assert "1 of 2 figures are worse than in audit a0" in page.words
    assert "+0.2" in page.words


def test_the_command_writes_one_file_and_says_where(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    first = CliRunner().invoke(cli, ["report", "--warehouse", str(warehouse)])
    assert first.exit_code == 0, first.output
    written = tmp_path / "home/reports/a2.html"
    assert first.output.strip() == str(written)
    assert [file.name for file in written.parent.iterdir()] == ["a2.html"], "nothing half-written is left"
    again = CliRunner().invoke(
        cli, ["report", "a", "--warehouse", str(warehouse), "--out", str(tmp_path / "here.html")]
    )
    assert again.exit_code == 0
    assert (tmp_path / "here.html").read_text() == written.read_text()


def test_there_is_no_page_of_what_is_not_published(warehouse: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="is failed"):
        write_page(warehouse, "dead", tmp_path)
    with pytest.raises(UsageError, match="no audit 'nope'"):
        write_page(warehouse, "nope", tmp_path)


def test_a_page_that_cannot_be_written_is_one_paragraph(warehouse: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StorageError, match="Cannot write the report"):
        write_page(warehouse, "latest", blocked)
    assert blocked.read_text() == "in the way"


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1200])
def test_a_browser_builds_the_page_that_was_written(empty_once: Path, tmp_path: Path, width: int) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium, which is not here")
    page = write_page(filled(empty_once, tmp_path, ATTACKS), "latest", tmp_path).path
    picture = tmp_path / "page.png"
    quietly = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}")

    def browse(*options: str) -> str:
        command = [chromium, *quietly, f"--window-size={width},2000", *options, page.as_uri()]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout

    built = Page(browse("--dump-dom"))
    assert [tag for tag, _ in built.tags] == [tag for tag, _ in Page(page.read_text()).tags]
    assert ATTACKS in built.words
    browse(f"--screenshot={picture}")
    header = picture.read_bytes()
    assert struct.unpack(">II", header[16:24]) == (width, 2000)
    # An empty page of that size compresses to a few thousand bytes.
    assert len(header) > 40_000
