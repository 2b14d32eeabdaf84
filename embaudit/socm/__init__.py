"""SOCM: how much of two texts' difference mean pooling throws away (arXiv 2604.27398). Needs no Prefect and no DuckDB.

``clouds`` scales a text's tokens, ``pairs`` compares them (by ``nuclear`` norms), ``summary`` averages pairs as they
stream by, ``tightness`` asks how far to trust the Gaussian view, ``mining`` finds hard negatives.
"""

from embaudit.socm.clouds import COSINE_BOUND, TRACE_BOUND, TokenCloud, Undefined, clouds_of, token_cloud
from embaudit.socm.nuclear import Eigenvalues, NuclearNorms, Polar, nuclear_norms_on
from embaudit.socm.pairs import (
    CHECKED_PAIRS,
    Accuracy,
    PairBlock,
    against_corpus,
    all_pairs,
    checked,
    count_pairs_of_shard,
    given_pairs,
    plan_blocks,
)
from embaudit.socm.summary import QUANTILES, SocmSummary, Surface, summarise

# Changing how a value is computed changes this number, and with it every cache key of the measure.
MEASURE_VERSION = 2

__all__ = [
    "CHECKED_PAIRS",
    "COSINE_BOUND",
    "MEASURE_VERSION",
    "QUANTILES",
    "TRACE_BOUND",
    "Accuracy",
    "Eigenvalues",
    "NuclearNorms",
    "PairBlock",
    "Polar",
    "SocmSummary",
    "Surface",
    "TokenCloud",
    "Undefined",
    "against_corpus",
    "all_pairs",
    "checked",
    "clouds_of",
    "count_pairs_of_shard",
    "given_pairs",
    "nuclear_norms_on",
    "plan_blocks",
    "summarise",
    "token_cloud",
]
