"""SOCM: how much of the difference between two texts mean pooling discards (arXiv 2604.27398).

``clouds`` scales a text's tokens, ``pairs`` compares them (by ``nuclear`` norms), ``summary`` averages streams of
pairs, ``lengths`` controls for length, ``tightness`` checks the Gaussian approximation, ``mining`` finds hard
negatives, ``contrast`` compares them with random pairs, ``poolings`` compares the mean with other poolings.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.socm.settings import SocmSettings
from embaudit.measures.socm.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 6


def _parts() -> Parts:
    from embaudit.measures.socm import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="socm",
    package=__name__,
    question="How much of a text does mean pooling discard?",
    parts=_parts,
    settings=SocmSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"socm_summary": ("socm_mean", "d_mu_mean", "d_sigma_mean", "share_trace_above_bound")},
    is_sharded=True,
    shown_tables=("socm_summary", "socm_cut"),
)
