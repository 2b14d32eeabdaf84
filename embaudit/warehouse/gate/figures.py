"""The figures that rules can refer to: those of the view ``summary_figure``, and of answers, by their question.

Those of audits come from the declarations, so that a mistyped name is reported before a long audit and not after it.
Which figures an answer has depends on what was asked, so the gate says which ones it has where one is missing.
"""

from __future__ import annotations

from embaudit.questions.answer import ASKS
from embaudit.warehouse.tables import SUMMARIES
from embaudit.words.errors import hint

FIGURES = {summary.name: tuple(one.name for one in summary.figures) for summary in SUMMARIES.values()}


def unknown_figure(summary: str, measure: str) -> str:
    """What is wrong with a figure's name, with the closest ones; empty if the figure exists."""
    if summary in ASKS:
        return ""
    if summary not in FIGURES:
        return f"unknown summary {summary!r}{hint(summary, [*FIGURES, *ASKS])}"
    if measure not in FIGURES[summary]:
        elsewhere = [name for name, measures in FIGURES.items() if measure in measures]
        where = f"; {measure} is a figure of {' and '.join(elsewhere)}" if elsewhere else ""
        return f"{summary} has no figure {measure!r}{where or hint(measure, FIGURES[summary])}"
    return ""
