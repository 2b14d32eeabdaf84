"""Position: where in a document may the evidence for a query stand?

A query q has its evidence e, the beginning of its best relevant document. D(e, p) is a document of n tokens: passages
that are irrelevant to q, the same ones whatever p is, with e after a share p of them. D(e', p) is the same document
with the evidence of another query in the same place, of the same number of tokens:

    gain(p)    = mean over queries of s(q, D(e, p)) − s(q, D(e', p))
    kept(p)    = gain(p) / gain(0)
    change(p)  = mean over queries of the gain at p minus the gain at 0, paired
    won(p)     = share of queries with s(q, D(e, p)) > s(q, D(e', p)); ties count half

with s the similarity that the checkpoint declares. Both documents have the same length, filler and place, so only what
the evidence says can part them. Behind the length limit, nothing does: both documents are read as the same tokens.

For whoever serves the checkpoint: at a place with a small gain, a document is hardly found by what it says there; cut
documents into pieces, or put what counts first. Sources: Coelho et al. 2024, "Dwell in the Beginning" (arXiv
2404.04163), and Zeng et al. 2025, "An Empirical Study of Position Bias in Modern Information Retrieval" (arXiv
2505.13950), which move the relevant passage; the paired control with other evidence is ours.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.position.settings import PositionSettings
from embaudit.measures.position.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.position import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="position",
    package=__name__,
    question="Where in a document may the evidence stand?",
    parts=_parts,
    settings=PositionSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"position": ("won", "kept")},
    shares={"position": "won"},
    # It encodes long documents, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("position", "position_summary"),
)
