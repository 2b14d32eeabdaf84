"""Findings of an audit about quality, from those that its parts staged."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.declared.finding import Finding, Rows
from embaudit.declared.rule import Rule, in_brief
from embaudit.measures.quality import STAGED, QualitySettings
from embaudit.measures.quality.scale import RULE as SCORE_SCALE
from embaudit.measures.quality.words import RULE as WORDS

DECLARED_RIGHT = Rule(
    "declared_right", reason="always `ok`: in an audit, one sentence for layers, collapse and other readings"
)


def findings(rows: Rows, settings: QualitySettings) -> Iterator[Finding]:
    """Its score and the scale of its scores, what is wrong or not known, then one for everything that is right."""
    yield from in_brief(rows(STAGED), DECLARED_RIGHT, "layers, collapse and other readings", (WORDS, SCORE_SCALE))
