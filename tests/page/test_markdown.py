"""The page in Markdown: a Markdown reader gets the text back, and nothing but text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from some_rows import mostly_slow

from embaudit.declared.document import Table
from embaudit.pages.text import plain, render
from embaudit.pages.write import audit_page
from embaudit.words.sentences import visible

# As the UI's reader: with HTML, tables and addresses that become links.
READER = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table").enable("strikethrough")
# A link is the report's, strong is a finding's level.
INLINE = {"text", "text_special", "strong_open", "strong_close", "link_open", "link_close"}
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


def attacked(facts: dict[str, Any], attack: str) -> dict[str, Any]:
    """The facts with a stranger's text in everything that a stranger can name."""
    named = {
        **dict.fromkeys(
            (
                "socm",
                "socm_cuts",
                "socm_contrasts",
                "socm_poolings",
                "tightness",
                "layers",
                "length",
                "length_bins",
                "length_rankings",
                "length_rises",
            ),
            ("corpus",),
        ),
        **{"tokens": ("token",), "corpora": ("name",), "temperatures": ("reason",), "length_sigma": ("corpus",)},
        **{"gate": ("policy",), "gate_findings": ("rule", "item", "reason"), "regressions": ("item",)},
    }
    changed = {table: [row | dict.fromkeys(names, attack) for row in facts[table]] for table, names in named.items()}
    return {**facts, **changed, "source": attack, "profile": attack, "pooling": attack, "prompt": attack}


@pytest.mark.parametrize("attack", mostly_slow(ATTACKS, ("<script>alert(1)</script>", "`code`")))
def test_text_from_strangers_stays_where_it_is(full_facts: dict[str, Any], attack: str) -> None:
    link = "https://reports.example/a1.html"
    tokens = READER.parse(render(audit_page(attacked(full_facts, attack), link)))
    harmless = READER.parse(render(audit_page(attacked(full_facts, "harmless"), link)))
    assert [token.type for token in tokens] == [token.type for token in harmless], "no block more and none less"
    children = [child for token in tokens for child in token.children or []]
    assert {child.type for child in children} <= INLINE
    assert [child.attrs["href"] for child in children if child.type == "link_open"] == [link]
    texts = [_text_of(token.content) for token in tokens if token.type == "inline"]
    # The worst tokens, the corpus of the SOCM table, and the rules of the gate have a cell of their own.
    assert sum(text == visible(attack).strip() for text in texts) >= 3 + 1 + len(full_facts["gate_findings"])


@pytest.fixture(scope="module")
def harmless_blocks(full_facts: dict[str, Any]) -> list[str]:
    return blocks(attacked(full_facts, "x"))


def blocks(facts: dict[str, Any]) -> list[str]:
    return [token.type for token in READER.parse(render(audit_page(facts)))]


@pytest.mark.slow
@given(text=st.text("    #>-+*1.)=`~<|&\\[]()_\t\n ab", min_size=1, max_size=12))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_begins_a_block(full_facts: dict[str, Any], harmless_blocks: list[str], text: str) -> None:
    assert blocks(attacked(full_facts, text)) == harmless_blocks


def test_the_page_has_every_section_but_the_folded_one_and_every_figure_of_its_tables(
    full_facts: dict[str, Any],
) -> None:
    page = audit_page(full_facts)
    texts = [_text_of(token.content) for token in READER.parse(render(page)) if token.type == "inline"]
    for section in page.sections:
        assert (section.title in texts) != section.is_folded
    shown = [section for section in page.sections if not section.is_folded]
    tables = [part for section in shown for part in section.parts if isinstance(part, Table)]
    assert len(tables) >= 10
    for table in tables:
        for row in table.cut(is_brief=True)[0]:
            cells = {column.text(value) for column, value in zip(table.columns, row, strict=True)}
            assert cells - {""} <= set(texts)


def _text_of(markdown: str) -> str:
    return "".join(content for kind, content in inline(markdown) if kind in ("text", "text_special"))
