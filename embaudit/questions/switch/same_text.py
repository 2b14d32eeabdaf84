"""How far the two vectors of the same text are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embaudit.corpora.downstream.task import unit_rows
from embaudit.questions.parity.apart import is_apart, is_rounding
from embaudit.questions.parity.compare import KindDifference, compare_kind
from embaudit.questions.switch.material import OldAndNew, SwitchedPairs, SwitchedSearch
from embaudit.statistics.intervals import quantile_ranks
from embaudit.words.estimate import Estimate

QUERIES, DOCUMENTS, PAIRS = "queries of ", "documents of ", "pairs of "
USES = {QUERIES: "queries", DOCUMENTS: "documents", PAIRS: "texts of pairs"}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class SameText:
    """Cosines of a text's two vectors, over all texts.

    Attributes:
        quantiles: at ``QUANTILES``.
        median: its interval is exact for any distribution of independent texts.
        strangers: median cosine of OLD's vector of a text with NEW's vector of the next one.
        worst: the largest 1 − cosine.
        is_same: the same vectors within parity's limits.
        is_rounded: the same within what half precision rounds.
        moved: where documents have the same vectors, which texts have not: queries, texts of pairs; empty otherwise.
    """

    texts: int
    quantiles: tuple[float, ...]
    median: Estimate
    strangers: float
    worst: float
    worst_text: str
    is_same: bool
    is_rounded: bool
    moved: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_same_texts(pairs: Sequence[SwitchedPairs], searches: Sequence[SwitchedSearch]) -> SameText | None:
    """None if the two have other dimensions."""
    kinds = [kind for kind in _kinds(pairs, searches) if kind is not None]
    if not kinds:
        return None
    distances = np.concatenate([kind.distances for kind, _ in kinds])
    # A vector of zeros has no direction; NaN was refused before.
    cosines = 1 - distances[np.isfinite(distances)]
    far = max((kind for kind, _ in kinds), key=lambda kind: np.nan_to_num(kind.worst))
    in_order = np.sort(cosines)
    low, high = quantile_ranks(len(in_order), 0.5)
    median = float(np.median(in_order))
    differences = [kind for kind, _ in kinds]
    is_same = not any(is_apart(kind) for kind in differences) and len(cosines) == len(distances)
    is_comparable = len(cosines) == len(distances) and bool(searches)
    moved = {name: any(is_apart(kind) for kind in differences if kind.kind.startswith(name)) for name in USES}
    return SameText(
        len(distances),
        tuple(float(np.quantile(in_order, share)) for share in QUANTILES),
        Estimate(median) if high is None else Estimate(median, float(in_order[low - 1]), float(in_order[high - 1])),
        float(np.median(np.concatenate([strangers for _, strangers in kinds]))),
        far.worst,
        far.worst_text,
        is_same,
        not is_same and len(cosines) == len(distances) and is_rounding(differences),
        tuple(USES[name] for name in (QUERIES, PAIRS) if moved[name]) if is_comparable and not moved[DOCUMENTS] else (),
    )


def _kinds(
    pairs: Sequence[SwitchedPairs], searches: Sequence[SwitchedSearch]
) -> list[tuple[KindDifference, np.ndarray] | None]:
    """Distinct texts of each use, as they are prompted there."""
    found = []
    for each in pairs:
        texts = [*each.pairs.firsts, *each.pairs.seconds]
        both = OldAndNew(
            np.concatenate([each.firsts.old, each.seconds.old]), np.concatenate([each.firsts.new, each.seconds.new])
        )
        found.append(_kind(f"{PAIRS}{each.pairs.name}", texts, both))
    for search in searches:
        found.append(_kind(f"{DOCUMENTS}{search.collection.name}", search.collection.documents, search.known))
        if not search.asks_itself:
            found.append(_kind(f"{QUERIES}{search.collection.name}", search.collection.queries, search.asked))
        elif search.as_queries is not None:
            # Documents ask for their neighbours as documents; what is done to queries shows in these.
            first = search.collection.documents[: len(search.as_queries.old)]
            found.append(_kind(f"{QUERIES}{search.collection.name}", first, search.as_queries))
    return found


def _kind(name: str, texts: Sequence[str], both: OldAndNew) -> tuple[KindDifference, np.ndarray] | None:
    """The difference, and cosines of each text's OLD with the next one's NEW; None for other dimensions."""
    if not both.has_one_dimension:
        return None
    places = np.array(sorted({text: place for place, text in enumerate(texts)}.values()))
    old, new = both.old[places], both.new[places]
    difference = compare_kind(name, [texts[place] for place in places], old, new, {})
    return difference, np.einsum("nd,nd->n", unit_rows(old), np.roll(unit_rows(new), -1, axis=0))
