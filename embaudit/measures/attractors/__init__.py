"""Attractors: which texts stand in everyone's results, and do texts without content stand above relevant ones?

Hubs. Every document d of a collection asks for its k = 10 nearest others, and every query q for its ten best documents:

    N(x) = number of these askers that have document x among their ten,
    S = E[(N − μ)³]/σ³ over the documents                           Radovanović et al. 2010, JMLR 11

beside S of the ranking by TF-IDF and of random vectors of as many documents with the same effective rank.

Junk. Texts of our own that stand in real indexes without saying anything (navigation, cookie notices, error pages,
lorem ipsum, …) are added to the documents. Of each kind A and over the queries q:

    met   = share with a text of A among the ten best of documents and A
    above = share for which max cos(q, a) over A exceeds max cos(q, d) over the documents relevant for q
    clean = share for which no text of any kind does

Users of vector search report that very short segments with little to say dominate its results (apache/lucene#16263).
Whoever serves the checkpoint learns what to keep out of the index, and how many results such texts will take.
"""

from __future__ import annotations

from embaudit.measures.attractors.settings import AttractorsSettings
from embaudit.measures.attractors.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.attractors import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="attractors",
    package=__name__,
    question="Which texts stand in everyone's results?",
    parts=_parts,
    settings=AttractorsSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"attractor_summary": ("clean",)},
    shares={"attractor_summary": "clean"},
    # It encodes a collection, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("attractor", "hub", "attractor_summary"),
)
