"""The page of a comparison of two functions: its verdict, the findings, and the figures by kind of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from embaudit.declared.document import Column, Page, Section, Table, Value
from embaudit.questions.parity.compare import is_apart
from embaudit.words.sentences import quoted

if TYPE_CHECKING:
    from embaudit.questions.parity.parity import ParityReport


def parity_page(report: ParityReport) -> Page:
    """The verdict is the first finding and takes the place of the first problem."""
    identity = [("checkpoint", report.checkpoint_id), ("with", report.other)]
    if report.compared:
        identity.append(("kinds of text apart", f"{sum(map(is_apart, report.compared))} of {len(report.compared)}"))
    identity.append(("took", f"{report.seconds:.0f} s"))
    if report.requests:
        identity.append(("requests", f"{report.requests:,}"))
    return Page(report.checkpoint, identity, report.told(), list(_sections(report)), kind="Parity of")


def _sections(report: ParityReport) -> Iterator[Section]:
    yield Section("Texts alone, by kind", [_by_kind(report)])
    if report.corpora:
        yield Section("Pairs and queries", [_on_corpora(report)])


def _by_kind(report: ParityReport) -> Table:
    has_explanation = bool(report.differs)
    columns = [
        Column("kind"),
        Column("texts", ","),
        Column("median 1 − cos", is_right=True),
        Column("largest", is_right=True),
        Column("of", is_prose=True),
        *([Column("left if explained so", is_right=True)] if has_explanation else []),
    ]
    rows: list[tuple[Value, ...]] = []
    for kind in sorted(report.kinds, key=lambda kind: -np.nan_to_num(kind.worst, nan=np.inf)):
        left = [_small(report.left_on(kind.kind))] if has_explanation else []
        shown = "" if np.isnan(kind.worst) else quoted(kind.worst_text)
        rows.append((kind.kind, len(kind.texts), _small(kind.median), _small(kind.worst), shown, *left))
    return Table(tuple(columns), rows)


def _on_corpora(report: ParityReport) -> Table:
    columns = (
        Column("of", is_prose=True),
        Column("1 − cos", is_right=True),
        Column("ranks agree", ".3f"),
        Column("overlap@10", ".3f"),
        Column("unrelated", is_right=True),
        Column("matching", is_right=True),
        Column("score [95 %]", ".3f"),
        Column("change [95 %]", "+.3f", bounds="+.3f"),
    )
    rows: list[tuple[Value, ...]] = []
    for corpus in report.corpora:
        unrelated, matching = (_scale(corpus.scales.get(name)) for name in ("unrelated", "matching"))
        worst = float("nan") if corpus.worst is None else corpus.worst
        rows.append(
            (
                *(f"{corpus.metric}, {corpus.name}", _small(worst), corpus.agreement, corpus.overlap),
                *(unrelated, matching, corpus.score, corpus.change),
            )
        )
    return Table(columns, rows)


def _scale(medians: tuple[float, float] | None) -> str:
    return "" if medians is None else f"{medians[0]:.2f} → {medians[1]:.2f}"


def _small(value: float) -> str:
    return "–" if np.isnan(value) else "0" if value == 0 else f"{value:.1e}" if value < 1e-3 else f"{value:.3f}"
