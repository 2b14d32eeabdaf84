"""Findings of an audit about integrity, from those that its checks staged."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.declared.finding import Finding, Rows
from embaudit.declared.rule import Rule, in_brief
from embaudit.measures.integrity import STAGED, IntegritySettings

SOUND = Rule("sound", reason="always `ok`: in an audit, one sentence for every check that found nothing wrong")


def findings(rows: Rows, settings: IntegritySettings) -> Iterator[Finding]:
    """What is wrong or not known, one finding a rule; then one for everything that is right."""
    yield from in_brief(rows(STAGED), SOUND, "files, weights, tokenizer, numbers and batches")
