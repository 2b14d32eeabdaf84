"""What an audit's page says of figures in half precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embaudit.measures.sticky import findings
from embaudit.pages.general import identity


def said(facts: dict[str, Any], **changes: Any) -> str:
    rows = [{**row, **changes} for row in facts["sticky"]]
    section = findings.section({**facts, "sticky": rows})
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


def test_the_head_of_the_page_counts_figures_in_another_precision(full_facts: dict[str, Any]) -> None:
    """The plausible audit was searched in bfloat16 and is in float32."""
    assert {row["scan_dtype"] for row in full_facts["sticky"]} == {"bfloat16"}
    ran = dict(identity(full_facts))["ran on"]
    (row,) = full_facts["precisions"]
    assert f", float32 ({row['figures']} of {row['of_all']:,} figures in bfloat16), seed" in ran
    assert dict(identity({**full_facts, "precisions": []}))["ran on"].count("figures") == 0
