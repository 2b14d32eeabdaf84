"""Chunks: what chunk size does this checkpoint want?

A collection of long documents is searched in several ways, and each is scored by nDCG@10 of the documents:

    whole      s(q, d) = s(q, v(d)), d cut at the length limit, as served
    best(z)    s(q, d) = max over the pieces c of d of s(q, v(c))
    mean(z)    s(q, d) = s(q, mean over the pieces c of d of v(c))

A piece is a run of whole sentences with at most z tokens (``embaudit.measures.pieces``); v is the served vector and s
the declared similarity. The gain of a way is its mean nDCG@10 over queries minus that of ``whole``, paired. The size
that a checkpoint wants is chosen on half of the queries, and its gain reported on the others.

The documents are the user's own if the median one is long enough to be cut. Otherwise, and without a collection, they
are composed: four passages of different subjects joined, as in a newsletter, each passage in exactly one document.
Such documents are longer than what many checkpoints read, and about four things: what one vector can say of them is
little, whatever the checkpoint. How much of the loss is the length limit and how much is the crowding is told apart by
queries whose passage is read and whose passage is cut off.

For whoever serves the checkpoint: the size of pieces to store, and what whole documents would cost. Sources: Guenther
et al. 2024, "Late Chunking" (arXiv 2409.04701), which compares chunk sizes; Zhou et al. 2024, length collapse (arXiv
2410.24200): vectors of long texts are alike.
"""

from __future__ import annotations

from embaudit.measures.chunks.settings import ChunksSettings
from embaudit.measures.chunks.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.chunks import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="chunks",
    package=__name__,
    question="What chunk size does the checkpoint want?",
    parts=_parts,
    settings=ChunksSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"chunk": ("score",)},
    shares={"chunk": "score"},
    # It encodes the documents once per size, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("chunk", "chunk_length", "chunk_choice"),
)
