"""Surface: does a query find the same documents when it is written otherwise?

For a change c (lower case, a typo, full-width letters, …) and the queries q of a judged collection that it changes,

    overlap@10 = mean over q of |top10(c(q)) ∩ top10(q)| / |top10(q)|
    change     = mean over q of nDCG@10(c(q)) − nDCG@10(q)
    moved      = mean over q of 1 − cos(c(q), q)

Documents stay as they are. Dense retrievers are known to lose by typos (Zhuang and Zuccon 2021, arXiv 2108.12139;
Sidiropoulos and Kanoulas 2022, arXiv 2205.02303); users report that a query in lower case finds other documents than
the same one with its capitals (FlagOpen/FlagEmbedding#934), or that all queries in capitals have one vector
(ollama/ollama#13942). Whoever serves the checkpoint learns which forms of a text
to bring into one before it is encoded, and which typos to correct.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.surface.settings import SurfaceSettings
from embaudit.measures.surface.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.surface import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="surface",
    package=__name__,
    question="Does a query find the same when it is written otherwise?",
    parts=_parts,
    settings=SurfaceSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"surface": ("overlap",)},
    shares={"surface": "overlap"},
    # It encodes every query several times.
    is_default=False,
    shown_tables=("surface",),
)
