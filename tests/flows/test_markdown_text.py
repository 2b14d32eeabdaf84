"""Text from outside in artifacts: a Markdown reader gets the text back, and nothing but text."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from plausible import plausible_rows, stage_all

from embaudit.gate import Finding, GateVerdict
from embaudit.shown import visible
from embaudit_flows.markdown import plain
from embaudit_flows.summary import markdown_summary
from embaudit_tasks.results import Staged

# As the UI's reader: with HTML, tables and addresses that become links.
READER = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table").enable("strikethrough")
ATTACKS = (
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "![x](//evil)"),
    *("`code`", "**bold**", "a|b|c", "&lt;b&gt;", "# head", "- item", "1. one", "https://evil.example", "~~x~~"),
    *(
        "<https://evil.example>",
        "me@evil.example",
        "line\nbreak",
        "\\",
        "\\|",
        "_x_",
        "$x^2$",
        "***",
        "\u202eright",
        "\x1b[31m",
    ),
)


def inline(markdown: str) -> list[tuple[str, str]]:
    return [(token.type, token.content) for token in READER.parseInline(markdown)[0].children or []]


def reads_as(markdown: str) -> str:
    """The text that a reader shows; anything that is no text is an error."""
    found = inline(markdown)
    # A backslash before a sign makes a token of its own, which joins the text around it.
    assert {kind for kind, _ in found} <= {"text", "text_special"}, found
    return "".join(content for _, content in found)


@given(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=40), st.text("<>[]()`*_|\\!#~&;:/.-@ ab1\n", max_size=20)))
def test_text_comes_out_as_it_is(text: str) -> None:
    # Readers drop the spaces at the ends of a paragraph.
    assert reads_as(plain(text)).strip(" ") == visible(text).strip(" ")


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_token_stays_in_its_cell(tmp_path: Path, attack: str) -> None:
    rows = {table: plausible_rows()[table] for table in ("token", "sticky_validation", "socm_summary")}
    for row in rows["token"]:
        row["token"] = attack
    rows["socm_summary"][0]["corpus"] = attack
    staged = [Staged(table=table.table, path=table.paths[0], rows=1) for table in stage_all(tmp_path, rows)]
    finding = Finding(
        rule=attack, kind="limit", summary="s", item=attack, measure="m", outcome="missing", trips=True, reason=attack
    )
    verdict = GateVerdict(
        audit_id="a1",
        source=attack,
        policy=attack,
        policy_hash="h",
        baseline_audit_id=None,
        evaluated=datetime(2026, 11, 21, tzinfo=UTC),
        findings=(finding,),
    )
    text = markdown_summary("a1", attack, staged, verdict, "https://reports.example/a1.html")
    tokens = READER.parse(text)
    assert not {"html_block", "fence", "code_block", "hr"} & {token.type for token in tokens}
    children = [child for token in tokens for child in token.children or []]
    assert not {"html_inline", "image", "softbreak", "s_open"} & {child.type for child in children}
    assert [child.attrs["href"] for child in children if child.type == "link_open"] == [
        "https://reports.example/a1.html"
    ]
    cells = [token.content for token in tokens if token.type == "inline"]
    # Three candidates in a table of six columns, and one finding in another.
    assert sum(token.type == "tr_open" for token in tokens) == (1 + 3) + (1 + 1)
    assert sum(token.type == "td_open" for token in tokens) == 6 * (3 + 1)
    assert sum(reads == visible(attack).strip() for reads in map(_text_of, cells)) >= 5


def _text_of(markdown: str) -> str:
    return "".join(content for kind, content in inline(markdown) if kind in ("text", "text_special"))
