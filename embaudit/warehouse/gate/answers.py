"""What a policy can refer to of answers: the figures and findings of the newest to each question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import duckdb

from embaudit.warehouse.gate.facts import AuditFacts, Cell
from embaudit.warehouse.named_answers import KeptAnswer, figures_of


def read_answers(
    connection: duckdb.DuckDBPyConnection, answers: Sequence[KeptAnswer], several: frozenset[str] = frozenset()
) -> AuditFacts:
    """Everything that rules can refer to: each question's figures, under the name of its command.

    Args:
        several: questions that were asked in several ways, whose figures say by which.
    """
    cells: list[Cell] = []
    findings: list[tuple[str, str]] = []
    for one in answers:
        of = one.question_key if one.asks in several else ""
        cells += [
            Cell(one.asks, figure.item, figure.figure, figure.value, figure.low, figure.high, question=of)
            for figure in figures_of(connection, one)
        ]
        findings.append((f"{one.asks}.verdict", one.level))
        findings += connection.execute(
            "SELECT concat(?, '.', name), level FROM answer_finding WHERE answer_id = ? ORDER BY place",
            [one.asks, one.computed_id],
        ).fetchall()
    checked = next((one for one in answers if one.asks == "check"), None)
    return AuditFacts(
        audit_id=answers[0].answer_id,
        source=answers[0].subject,
        profile="",
        measures=frozenset(one.asks for one in answers),
        cells=tuple(cells),
        tokens=None,
        capped={},
        bases=frozenset(),
        failed_warnings=(),
        sample_corpora=(),
        findings=tuple(findings),
        verdict=None if checked is None else (checked.verdict, checked.line),
    )


def asked_in_several_ways(answers: Sequence[KeptAnswer]) -> frozenset[str]:
    """Questions of which there is more than one, as with other settings."""
    return frozenset(asks for asks, count in Counter(one.asks for one in answers).items() if count > 1)
