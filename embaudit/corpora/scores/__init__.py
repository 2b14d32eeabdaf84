"""Downstream scores: read from other tools' files and correlated with audit measures.

``read`` opens files and folders, ``formats`` parses them, ``correlation`` computes Spearman's rho.
"""

from embaudit.corpora.scores.formats import Score, SkippedSource
from embaudit.corpora.scores.read import (
    Correlation,
    ReadScores,
    ScoredMeasure,
    TaskCorrelation,
    average_over_tasks,
    correlate,
    read_scores,
    spearman,
)

__all__ = [
    "Correlation",
    "ReadScores",
    "Score",
    "ScoredMeasure",
    "SkippedSource",
    "TaskCorrelation",
    "average_over_tasks",
    "correlate",
    "read_scores",
    "spearman",
]
