"""The published tables: one row class each, and the one list of them; and the figures that they have.

A declaration (``embaudit.table``) is the only place where a column is described. The order is that in which tables
are published and documented.
"""

from __future__ import annotations

from embaudit.figure import Summary
from embaudit.table import Row, Table
from embaudit.tables import corpora, layers, length, socm, sticky, tempscale, watch

ROWS: tuple[type[Row], ...] = (
    *(
        corpora.CheckpointRow,
        corpora.CorpusRow,
        corpora.TextRow,
        corpora.TextPairRow,
        corpora.AuditCorpusRow,
        corpora.TokenRow,
    ),
    *(
        sticky.StickyPairRow,
        sticky.StickyScoreRow,
        sticky.StickyValidationRow,
        sticky.StickySummaryRow,
        sticky.StickyDoseRow,
    ),
    *(sticky.StickyShiftRow, sticky.StickyAttentionRow, sticky.StickyEnrichmentRow),
    *(sticky.StickyReferenceRow, sticky.StickyReferenceSummaryRow),
    *(socm.SocmTextRow, socm.SocmPairRow, socm.SocmListedPairRow, socm.SocmSummaryRow, socm.SocmSurfaceRow),
    *(socm.SocmTightnessRow, socm.SocmPlaneRow),
    *(watch.AuditBackboneRow, watch.WatchedRevisionRow, watch.RegressionRow),
    *(layers.LayerTextRow, layers.LayerStatRow, layers.LayerHeadStatRow),
    *(length.LengthBinRow, length.LengthRiseRow, length.LengthSummaryRow, length.LengthPairRow, length.LengthSigmaRow),
    *(tempscale.TempscaleRow, tempscale.TempscaleChoiceRow),
    watch.GateResultRow,
)
TABLES: dict[str, Table] = {row.table.name: row.table for row in ROWS}
# What has figures: tables with such columns, and views that are declared to have them.
SUMMARIES: dict[str, Summary] = {
    summary.name: summary for summary in (*(table.summary for table in TABLES.values()), sticky.STICKY_TOKEN) if summary
}
