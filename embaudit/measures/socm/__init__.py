"""SOCM: how much of two texts' difference mean pooling throws away (arXiv 2604.27398). Needs no Prefect and no DuckDB.

``clouds`` scales a text's tokens, ``pairs`` compares them (by ``nuclear`` norms), ``summary`` averages pairs as they
stream by, ``lengths`` holds length fixed, ``tightness`` asks how far to trust the Gaussian view, ``mining`` finds hard
negatives, ``contrast`` sets them against random pairs, ``poolings`` puts other poolings beside the mean.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.socm.settings import SocmSettings
from embaudit.measures.socm.tables import ROWS

# Changing how a value is computed changes this number, and with it every key of the measure's steps.
MEASURE_VERSION = 5

MEASURE = Measure(
    name="socm",
    question="How much of a text does mean pooling throw away?",
    settings=SocmSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"socm_summary": ("socm_mean", "d_mu_mean", "d_sigma_mean", "share_trace_above_bound")},
    is_sharded=True,
    shown_tables=("socm_summary", "socm_cut"),
)
