"""Searches whose right answer hangs on a figure, a date, a version or a word such as "without": is it found first?

Searches (q, r, w): text r is right for query q, and w is wrong, by one thing.

    found  = 1/n · Σ_i [sim(q_i, r_i) > sim(q_i, w_i)] + ½ [sim(q_i, r_i) = sim(q_i, w_i)]
    margin = 1/n · Σ_i sim(q_i, r_i) − sim(q_i, w_i)

with the checkpoint's prompts for queries and documents, and its declared similarity. The kinds:

    magnitude, format, unit   r and w differ by a figure: beyond the query's limit; in another format than the query's;
                              in w the query's figure in another unit   Duan et al. 2025, arXiv 2509.05691
    date      in the time that is asked for, or out of it                Zhang et al. 2024, arXiv 2412.15540 (MRAG)
    version   the version, model or article that is asked for, literally, or another
    exclusion q is "X without Y"; r is X without Y, w has Y             after arXiv 2502.13506
    foil      r answers late and in other words; w is short, repeats the query's words early, and answers nothing
                                                                        Fayyaz et al. 2025, arXiv 2503.05037

Random vectors are right in half of them. Words alone are right where the figure of the query stands in the right text
(version), and wrong wherever the wrong text shares more words (unit, exclusion, foil). The texts were written for
embaudit, in English, with invented names; sixteen of each kind.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from embaudit.declared.document import Column
from embaudit.measures.meaning import MEASURE_VERSION, MeaningSearchRow, SearchKind
from embaudit.statistics import score_share, student_half_width
from embaudit.steps.results import CheckpointSpec, checkpoint_of
from embaudit.steps.step import Outputs, step
from embaudit.words.estimate import Estimate

KINDS: tuple[SearchKind, ...] = get_args(SearchKind)


class Search(NamedTuple):
    kind: str
    query: str
    right: str
    wrong: str


@cache
def searches() -> tuple[Search, ...]:
    """Every search, kind by kind."""
    with (Path(__file__).parent / "searches.tsv").open(encoding="utf-8", newline="") as file:
        return tuple(Search(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def share(margins: np.ndarray) -> Estimate:
    """The share of (n,) margins above 0, equal ones by half, with Wilson's interval; n ≥ 1."""
    n = len(margins)
    value = float((margins > 0).mean() + (margins == 0).mean() / 2)
    # Wilson's interval is defined for a share of n, and half a search is one.
    return Estimate.reaching(value, score_share(round(value * n), n))


def words_found() -> Mapping[str, float]:
    """What TF-IDF gets right, by kind, with the weights that words have in all of these texts."""
    from embaudit.measures.quality.measured import TFIDF, pair_overlap

    every = searches()
    queries = [one.query for one in every]
    overlap = pair_overlap([*queries, *queries], [*(one.right for one in every), *(one.wrong for one in every)])[TFIDF]
    right, wrong = np.split(overlap, 2)
    return {kind: share((right - wrong)[_places(kind)]).known for kind in KINDS}


def _places(kind: str) -> np.ndarray:
    return np.array([place for place, one in enumerate(searches()) if one.kind == kind])


@step("meaning_searches", version=MEASURE_VERSION, tables=(MeaningSearchRow,), name="meaning of searches")
def meaning_of_searches(out: Outputs, spec: CheckpointSpec) -> None:
    """Table ``meaning_search``, by the declared similarity."""
    from embaudit.checkpoint import Encoder
    from embaudit.embedders.checkpoint import declared_similarity
    from embaudit.measures.quality.passes import of_pairs

    checkpoint = checkpoint_of(spec)
    every = searches()
    asked, documents = (Encoder(checkpoint.reading(role)) for role in ("query", "document"))
    queries = asked.encode_texts([one.query for one in every])
    kind = declared_similarity(checkpoint)
    right, wrong = (
        of_pairs(queries, documents.encode_texts([getattr(one, side) for one in every]), kind)
        for side in ("right", "wrong")
    )
    by_words = words_found()
    rows = []
    for name in KINDS:
        places = _places(name)
        margins = (right - wrong)[places]
        rows.append(
            {
                **{"kind": name, "searches": len(places)},
                **share(margins).columns("found"),
                "words_found": by_words[name],
                **Estimate.around(float(margins.mean()), student_half_width(margins)).columns("margin"),
                "right_similarity": float(right[places].mean()),
                "wrong_similarity": float(wrong[places].mean()),
            }
        )
    out.rows(MeaningSearchRow, rows, encodes=asked.texts + documents.texts)


COLUMNS = {
    **{"kind": Column("what decides"), "searches": Column("searches", ",")},
    **{"found": Column("right one first [95 %]", ".2f", is_bar=True), "words_found": Column("by words", ".2f")},
    "margin": Column("margin [95 %]", "+.3f", "+.3f"),
    "right_similarity": Column("similarity to the right text", ".3f", is_detail=True),
    "wrong_similarity": Column("to the wrong text", ".3f", is_detail=True),
}
