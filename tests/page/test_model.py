"""What a page is made of: how cells read, what is left out, and that every renderer says the same."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest
from rich.console import Console
from told_before import unread

from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.declared.document import Column, Page, Section, Table, Value
from embaudit.declared.rule import Finding
from embaudit.measures.sticky import findings as page
from embaudit.measures.tempscale.findings import section as temperature_section
from embaudit.pages.general import (
    backbone_section,
    gate_section,
    identity,
    published_section,
    regression_section,
    stored_verdict,
    weights_changed,
)
from embaudit.pages.html import pieces
from embaudit.pages.html import render as as_html
from embaudit.pages.text import print_page, print_part, print_section, print_table
from embaudit.pages.text import render as as_markdown
from embaudit.pages.write import audit_page
from embaudit.words.estimate import Estimate


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (Column("texts", ","), 12_345, "12,345"),
        (Column("share", ".0%"), 0.254, "25%"),
        (Column("loss", ".3f"), Estimate(0.6178, 0.52, 0.7199), "0.618 [0.52, 0.72]"),
        (Column("change", "+.3f", "+.3f"), Estimate(0.05, 0.01, 0.09), "+0.050 [+0.010, +0.090]"),
        (Column("loss", ".3f"), Estimate(0.6178, None, 0.72), "0.618"),
        (Column("loss", ".3f"), Estimate(None, 0.1, 0.2), ""),
        (Column("cosine", ".2f"), "no text", "no text"),
        (Column("cosine", ".2f"), None, ""),
        (Column("token"), "[MASK]", "[MASK]"),
    ],
)
def test_a_cell_reads_as_its_column_says(column: Column, value: Value, text: str) -> None:
    assert column.text(value) == text


def test_a_short_table_keeps_the_first_rows_or_even_steps() -> None:
    rows = [(i,) for i in range(25)]
    first = Table([Column("n", "d")], rows, brief=3, more="embaudit query all")
    assert first.cut(is_brief=True) == (rows[:3], "3 of 25 rows; all: embaudit query all")
    assert first.cut(is_brief=False) == (rows, "")
    even = Table([Column("n", "d")], rows, brief=4, is_even=True)
    assert even.cut(is_brief=True) == ([(0,), (8,), (16,), (24,)], "4 of 25 rows.")
    assert Table([Column("n", "d")], rows[:2], brief=4, is_even=True).cut(is_brief=True) == (rows[:2], "")


def test_records_are_numbers_and_text_by_title() -> None:
    table = Table([Column("token"), Column("loss", ".3f"), Column("focal", ".2f")], [("a", Estimate(0.5, 0, 1), None)])
    assert table.records() == [{"token": "a", "loss": "0.500 [0.00, 1.00]", "focal": None}]


@pytest.mark.parametrize(
    ("text", "query", "document", "is_pooled", "said"),
    [
        (None, None, None, None, None),
        ("query: ", "query: ", "query: ", True, "'query: '"),
        (None, "Find it\nQuery:", None, True, "texts none; queries 'Find it\\nQuery:'; documents none"),
        ("a ", None, "b ", False, "texts 'a '; queries none; documents 'b ', not pooled"),
    ],
)
def test_the_prompts_stand_beside_the_pooling(
    text: str | None,
    query: str | None,
    document: str | None,
    is_pooled: bool | None,
    said: str | None,
    full_facts: dict[str, Any],
) -> None:
    prompts = {"prompt": text, "query_prompt": query, "document_prompt": document, "pools_prompt": is_pooled}
    rows = identity({**full_facts, **prompts})
    assert dict(rows).get("prompt") == said
    if said:
        assert [name for name, _ in rows].index("prompt") == [name for name, _ in rows].index("pooling") + 1


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        ({"score": 0.5, "difference": 0.05, "low": 0.01, "high": 0.09}, "0.500 (+0.050) ↑"),
        ({"score": 0.5, "difference": -0.05, "low": -0.09, "high": -0.01}, "0.500 (-0.050) ↓"),
        ({"score": 0.5, "difference": 0.05, "low": -0.01, "high": 0.09}, "0.500 (+0.050)"),
        ({"score": 0.5, "difference": 0.05, "low": None, "high": None}, "0.500 (+0.050)"),
        ({"score": 0.5, "difference": None}, "0.500"),
        ({"score": None, "difference": None}, ""),
    ],
)
def test_every_arm_has_a_row_and_an_arrow_if_it_is_beyond_noise(
    changes: dict[str, float | None], cell: str, full_facts: dict[str, Any]
) -> None:
    arms = [{**row, **changes} for row in full_facts["temperature_arms"]]
    section = temperature_section({**full_facts, "temperature_arms": arms})
    assert section is not None
    (table,) = [part for part in section.parts if isinstance(part, Table) and part.title.startswith("Every arm")]
    assert dict(table.rows) == dict.fromkeys(("τ = 0.8", "τ = 1", "averaged chunks", "whitening", "centring"), cell)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_no_figure_is_cut_off_in_a_narrow_terminal(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("token"), *(Column(f"figure {i}", ".3f") for i in range(3)), Column("why", is_prose=True)]
    rows = [("龸" * 80, Estimate(0.123, 0.1, 0.2), -0.456, "1 text", "because " * 20)]
    print_table(Table(columns, rows, "a title " * 20), Console(width=width))
    printed = capsys.readouterr().out
    for text in ("0.123 [0.10, 0.20]", "-0.456", "1 text"):
        assert text in printed
    assert all(len(line) <= width for line in printed.split("\n"))


def test_the_terminal_says_what_the_page_says(full_facts: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    page = audit_page(full_facts)
    print_page(page)
    printed = " ".join(capsys.readouterr().out.split())
    for section in page.sections:
        if section.is_folded:
            continue
        assert section.title in printed
        for part in section.parts:
            if isinstance(part, Finding):
                assert part.sentence in printed
            elif isinstance(part, str):
                assert " ".join(part.split()) in printed
            elif isinstance(part, Table):
                assert part.title in printed
                for row in part.cut(is_brief=True)[0]:
                    cells = zip(part.columns, row, strict=True)
                    numbers = [
                        column.text(value) for column, value in cells if column.is_number and not column.is_detail
                    ]
                    assert " ".join(" ".join(numbers).split()) in printed or all(text in printed for text in numbers)
    assert not any(section.title == "Settings" and section.title in printed for section in page.sections)


def test_an_audit_that_is_not_published_says_why_and_nothing_else(full_facts: dict[str, Any]) -> None:
    page = audit_page({**full_facts, "status": "failed", "reason": "a check failed."})
    assert page.findings == [
        Finding("problem", "This audit is failed, and nothing of it is published: a check failed.")
    ]
    assert page.sections == []
    assert dict(page.identity)["audit"] == "a1"


def test_a_long_gate_lists_all_that_is_wrong_and_forty_that_passed(full_facts: dict[str, Any]) -> None:
    verdict = stored_verdict(full_facts)
    assert verdict is not None
    (tripped,) = verdict.tripped
    (missing,) = verdict.warnings
    passed = next(finding for finding in verdict.findings if finding.outcome == "passed")
    many = verdict.model_copy(update={"findings": (*[passed] * 60, *[missing] * 2, *[tripped] * 50)})
    section = gate_section(many, "--json")
    assert section.title == "Gate tripped"
    (table,) = (part for part in section.parts if isinstance(part, Table))
    rows, note = table.cut(is_brief=True)
    assert [row[5] for row in rows] == ["tripped"] * 50 + ["missing, warned"] * 2 + ["passed"] * 40
    assert note == "92 of 112 rows; all: --json"


def test_markup_and_control_codes_are_text_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "[red]x[/red]\x1b[31m"
    shown = "[red]x[/red]\\x1b[31m"
    out = Console(width=200)
    table = Table([Column(hostile), Column("n", ".2f")], [(hostile, hostile)], hostile)
    print_section(
        Section(hostile, [hostile, table, Finding("look", f"{hostile} is said.", f"{hostile} is meant.")]), out
    )
    print_part(hostile, out)
    print_page(Page(hostile, [(hostile, hostile)], [], []))
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert printed.count(shown) == 12


def test_a_table_of_rows_has_a_column_for_each_name() -> None:
    rows = [
        {"way": "best", "gain": 0.1, "gain_low": 0.05, "gain_high": 0.15, "change": 0.2, "low": 0.1, "high": 0.3},
        {"way": "other", "gain": None, "gain_low": None, "gain_high": None, "change": 0.2, "low": None, "high": None},
    ]
    columns = {
        "way": Column("searched", words={"best": "best piece"}),
        "gain": Column("gain [95 %]", "+.2f", "+.2f"),
        "change": Column("change [95 %]", ".1f", ".1f", ends=("low", "high")),
    }
    table = Table.of(columns, rows, "Ways", brief=1)
    shown = [[column.text(cell) for column, cell in zip(table.columns, row, strict=True)] for row in table.rows]
    assert shown == [["best piece", "+0.10 [+0.05, +0.15]", "0.2 [0.1, 0.3]"], ["other", "", "0.2"]]
    assert (table.title, table.brief) == ("Ways", 1)
    bare = Table.of({"gain": Column("gain", "+.2f", "")}, rows)
    assert bare.rows == [[0.1], [None]], "without bounds a figure stands alone"


# ---- half precision ----


def said(facts: dict[str, Any], **changes: Any) -> str:
    rows = [{**row, **changes} for row in facts["sticky"]]
    section = page.section({**facts, "sticky": rows})
    assert section is not None
    parts: Iterator[str] = (part for part in section.parts if isinstance(part, str))
    return " ".join(parts)


@pytest.mark.parametrize(
    ("scan", "validation", "sentence"),
    [
        ("float32", "float32", ""),
        ("bfloat16", "float32", "Candidates were searched in bfloat16 (ranks agree with float32 to 0.994); everything"),
        ("bfloat16", None, "everything else, and all verdicts, are in float32."),
        (
            "float16",
            "float16",
            "and validated in float16, which moves their figures by at most 3% of a 95 % interval's width; u and "
            "everything else are in float32. All in float32: --set sticky.scan_dtype=float32",
        ),
    ],
)
def test_one_line_says_what_was_in_half_precision(
    full_facts: dict[str, Any], scan: str, validation: str | None, sentence: str
) -> None:
    text = said(
        full_facts,
        **{"scan_dtype": scan, "validation_dtype": validation, "rank_correlation": 0.994, "dtype": "float32"},
        validation_difference=0.032 if validation == "float16" else None,
    )
    assert sentence in text
    assert ("searched in" in text) is (scan != "float32")


def test_a_whole_audit_in_half_precision_says_so_once(full_facts: dict[str, Any]) -> None:
    half = {"scan_dtype": "bfloat16", "validation_dtype": "bfloat16", "dtype": "bfloat16"}
    assert "searched in" not in said(full_facts, **half)


def test_the_head_of_the_page_says_what_was_audited(full_facts: dict[str, Any]) -> None:
    *rows, (last, _) = identity({**full_facts, "revision": "0" * 40})
    assert rows == [
        ("audit", "a1"),
        ("checkpoint", "c1"),
        ("revision", "0" * 40),
        ("model", "BertModel, 2 layers, 4 heads, 32 dimensions, 12,345 parameters"),
        ("pooling", "mean"),
        ("prompt", "texts none; queries 'query: '; documents none"),
        ("reads", "64 tokens"),
        ("profile", "quick"),
        ("finished", "2026-11-21 12:00 UTC"),
    ]
    assert last == "ran on"
    # What is not known has no row.
    unknown = dict.fromkeys(("layer_count", "heads", "hidden_size", "parameters", "max_length", "finished"))
    known = dict(identity({**full_facts, **unknown}))
    assert known["model"] == "BertModel"
    assert {"reads", "finished", "revision"}.isdisjoint(known)
    assert ("reads", "texts of any length") in identity({**full_facts, "max_length": NO_LIMIT})


def test_the_head_of_the_page_counts_figures_in_another_precision(full_facts: dict[str, Any]) -> None:
    """The plausible audit was searched in bfloat16 and is in float32."""
    assert {row["scan_dtype"] for row in full_facts["sticky"]} == {"bfloat16"}
    ran = dict(identity(full_facts))["ran on"]
    (row,) = full_facts["precisions"]
    assert f", float32 ({row['figures']} of {row['of_all']:,} figures in bfloat16), seed" in ran
    assert dict(identity({**full_facts, "precisions": []}))["ran on"].count("figures") == 0


def shown_in(section: Section | None) -> list[str | list[str]]:
    """Its sentences, and the rows of its tables, the title first."""
    found: list[str | list[str]] = []
    for part in section.parts if section is not None else ():
        if isinstance(part, Table):
            rows = [[column.text(cell) for column, cell in zip(part.columns, row, strict=True)] for row in part.rows]
            found += [part.title, *rows]
        else:
            found.append(part.sentence if isinstance(part, Finding) else str(part))
    return found


def published(measure: str, own: float, ends: tuple[float, float] | None = None, **more: Any) -> dict[str, Any]:
    low, high = ends or (None, None)
    return {
        **{"measure": measure, "corpus": None, "own_texts": None, "own": own, "own_low": low, "own_high": high},
        **{"published": own - 0.25, "difference": 0.25, "published_in": "table 1", "matched_by": "id"},
        **{"published_checkpoint": "a/b", **more},
    }


def test_published_figures_stand_beside_its_own_in_their_order() -> None:
    rows = [
        published("reference_sticky", 1_234.0, published=1_000.0, difference=234.0, own_texts=None),
        published("reference_cutoff", 0.75),
        published("u", 0.875, own_texts=2_000),
        published("socm_mean", 0.5, (0.45, 0.55), corpus="wikipedia"),
    ]
    own = [
        ["SOCM, wikipedia", "0.500 [0.45, 0.55]", "", "0.250", "+0.250", "table 1"],
        ["u", "0.875", "2,000 texts", "0.625", "+0.250", "table 1"],
        ["reference: cutoff", "0.750", "", "0.500", "+0.250", "table 1"],
        ["reference: sticky", "1,234", "", "1,000", "+234", "table 1"],
    ]
    assert shown_in(published_section({"published": rows})) == ["Published and measured (a/b)", *own]
    by_name = [{**row, "matched_by": "name"} for row in rows]
    title = "Published and measured (a/b, matched by name alone)"
    assert shown_in(published_section({"published": by_name})) == [title, *own]
    assert published_section({"published": []}) is None


def test_each_backbone_has_its_differences() -> None:
    def delta(summary: str, measure: str, item: str, key: str = "k1") -> dict[str, Any]:
        return {
            **{"backbone_audit_id": key, "summary": summary, "measure": measure, "item": item, "backbone_value": 0.5},
            **{"value": 0.75, "delta": 0.25, "delta_low": 0.125, "delta_high": 0.375, "interval_is": "paired"},
        }

    change = {"backbone_audit_id": "k1", "corpus": "wikipedia", "change": 0.125}
    facts: dict[str, Any] = {
        "backbones": [{"backbone": name, "backbone_audit_id": key} for name, key in (("base", "k1"), ("none", "k2"))],
        "backbone_deltas": [
            delta("geometry", "mean_cosine", "wikipedia"),
            delta("geometry", "effective_rank", "msmarco"),
            delta("geometry", "anti_hubs", "wikipedia"),
            delta("socm_summary", "socm_mean", "wikipedia"),
            delta("socm_summary", "socm_mean", "msmarco", "k3"),
        ],
        "backbone_changes": [
            {**change, "change_low": 0.0625, "change_high": 0.1875},
            {**change, "corpus": "msmarco", "change_low": None, "change_high": None},
            {**change, "backbone_audit_id": "k3", "change_low": None, "change_high": None},
        ],
    }
    cells = ["0.5", "0.75", "+0.25 [+0.125, +0.375]", "paired"]
    assert shown_in(backbone_section(facts)) == [
        "Compared with the backbone base, audit k1",
        ["wikipedia", "socm_mean", *cells],
        ["msmarco", "effective_rank", *cells],
        ["wikipedia", "mean_cosine", *cells],
        "Change of the average SOCM on wikipedia: +0.1250 [+0.062, +0.188], paired over texts.",
        "Change of the average SOCM on msmarco: +0.1250.",
        "4 figures compared; all: embaudit query backbone",
        "none: the two audits have no figures in common.",
    ]
    assert backbone_section({**facts, "backbones": []}) is None


def test_what_got_worse_since_the_audit_before_is_told_with_its_weights() -> None:
    def layer(number: int | None, changed: int, is_read: bool = True, before: str = "a0") -> dict[str, Any]:
        return {
            **{"predecessor_audit_id": before, "layer": number, "changed": changed, "tensors": 4, "is_read": is_read}
        }

    worse = {
        **{"summary": "geometry", "measure": "mean_cosine", "item": "wikipedia", "predecessor_value": 0.5},
        **{"value": 0.75, "delta": 0.25, "tolerance": 0.02, "worse_when": "higher"},
    }
    token = {"token": "a", "change": "newly sticky", "predecessor_loss": None, "loss": 0.5, "severity": "severe"}
    facts: dict[str, Any] = {
        "compared": [
            {"worse": 1, "figures": 9, "predecessor_audit_id": "a0"},
            {"worse": 0, "figures": 3, "predecessor_audit_id": "b0"},
        ],
        "weight_changes": [layer(None, 1), layer(0, 2), layer(1, 0), layer(0, 4, before="c0")],
        "regressions": [worse],
        "sticky_changes": [token],
    }
    assert shown_in(regression_section(facts)) == [
        "1 of 9 figures are worse than in audit a0.",
        "0 of 3 figures are worse than in audit b0.",
        "3 of 12 tensors that vectors depend on changed: outside the layers, layer 0.",
        "Figures that are worse than in the previous audit",
        ["geometry.mean_cosine", "wikipedia", "0.5", "0.75", "+0.25", "0.02", "higher"],
        "",
        ["a", "newly sticky", "", "0.5", "severe"],
    ]
    assert regression_section({**facts, "compared": []}) is None
    changed = {
        "4 of 8 tensors that vectors depend on changed: everywhere.": [layer(0, 2), layer(1, 2)],
        "No weight that a vector depends on has changed.": [layer(0, 0)],
        "No weight that a vector depends on has changed; only 3 tensors that no vector depends on did.": [
            layer(0, 0),
            layer(None, 3, is_read=False),
        ],
    }
    for sentence, layers in changed.items():
        found = weights_changed(layers)
        assert (found.sentence, found.level) == (sentence, "look" if "No weight" in sentence else "ok")


# ---- what holds nothing ----


COLUMNS = (Column("first"), Column("hollow", ".2f"), Column("dashed"), Column("last", ","))
ROWS = [("a", None, "–", 1), ("b", Estimate(None), "", None)]
PAGE = Page(
    "title",
    [("known", "yes"), ("unknown", "")],
    [],
    [
        Section("Filled", [Table(COLUMNS, ROWS)]),
        Section("Barren", [Table(COLUMNS, []), ""]),
        Section("Filled", ["A paragraph."]),
        Section("?!", ["One of signs."]),
        Section("…", ["Another of signs."]),
    ],
)


def in_terminal(page: Page) -> str:
    with redirect_stdout(io.StringIO()) as out:
        print_page(page)
    return out.getvalue()


@pytest.mark.parametrize("medium", [as_html, as_markdown, in_terminal], ids=["html", "markdown", "terminal"])
def test_what_holds_nothing_is_left_out(medium) -> None:  # type: ignore[no-untyped-def]
    shown = medium(PAGE)
    assert all(word in shown for word in ("first", "last", "known", "Filled", "A paragraph"))
    assert not any(word in shown for word in ("hollow", "dashed", "unknown", "Barren"))


def test_every_link_leads_to_a_section_of_its_own() -> None:
    html = as_html(PAGE)
    places = re.findall(r'<section id="([^"]*)"', html)
    assert places == re.findall(r'<a href="#([^"]*)"', html)
    assert len(set(places)) == 4
    assert all(places)


def test_programs_get_every_column() -> None:
    table = Table(COLUMNS, ROWS)
    assert list(table.records()[0]) == ["first", "hollow", "dashed", "last"]
    assert [column.title for column in table.filled.columns] == ["first", "last"]


def test_a_table_in_which_nothing_is_known_keeps_its_columns() -> None:
    table = Table(COLUMNS[:2], [("", None)])
    assert table.filled is table


# ---- what is typed ----


@pytest.mark.parametrize(
    ("advice", "typed"),
    [
        ("embaudit screen FILE", ["embaudit screen FILE"]),
        ("For the reason: embaudit parity /a/b --with 'my model'", ["embaudit parity /a/b --with 'my model'"]),
        ("embaudit why says of each where it is lost.", ["embaudit why"]),
        ("Compare the two: embaudit compare.", ["embaudit compare"]),
        ("Give queries: --queries FILE, and the function.", ["--queries FILE"]),
        ("embaudit audit CHECKPOINT --corpus sts=FILE", ["embaudit audit CHECKPOINT --corpus sts=FILE"]),
        ("Read embaudit/x.py, and `pip install torch`.", ["pip install torch"]),
        ("Say so next time: --text '{title} {text}'", ["--text '{title} {text}'"]),
        ("embaudit query length-pairs", ["embaudit query length-pairs"]),
        ("Serve it in float32.", []),
        ("embaudit check packaged:all-MiniLM-L6-v2 again.", ["embaudit check packaged:all-MiniLM-L6-v2"]),
        ("embaudit audit X --set sticky.exhaustive=true (slow)", ["embaudit audit X --set sticky.exhaustive=true"]),
        ("(--pairs) or judged queries (--data).", ["--pairs", "--data"]),
        ("", []),
    ],
)
def test_what_is_typed_is_told_apart(advice: str, typed: list[str]) -> None:
    found = pieces(advice)
    assert [text for text, is_typed in found if is_typed] == typed
    assert "".join(text for text, _ in found) == advice.replace("`", "")


# ---- the page of an audit with every measure says what somebody read ----


@pytest.mark.parametrize(
    "changed", [{}, {"status": "failed", "reason": "a check failed."}], ids=["published", "failed"]
)
def test_the_page_of_an_audit_is_told(full_facts: dict[str, Any], changed: dict[str, str]) -> None:
    assert not unread("Audit", audit_page({**full_facts, **changed}))
