"""Figures of a switch from mean to cls pooling, over scored pairs and over the documents of an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.coverage.draws import SHARE, Ended, Population
from embaudit.checkpoint import Checkpoint
from embaudit.corpora.draw import TextPair
from embaudit.measures.quality.material import ScoredPairs
from embaudit.measures.quality.passes import SERVED, MultiPoolingEncoder
from embaudit.questions.switch.material import OldAndNew, SwitchedPairs, SwitchedSearch, search_of_vectors
from embaudit.questions.switch.quality import compare_same_texts
from embaudit.questions.switch.search import NEW, measure_search
from embaudit.questions.switch.switch import switch_vectors
from embaudit.questions.switch.verdict import CutOffTransfer, ScaledPairs, default_cut_off, scales_of, transfer
from embaudit.words.estimate import Estimate

NEW_POOLING = "cls"
# Of all-MiniLM-L6-v2's cosines: of scored pairs, and of passages that have nothing to do with each other.
CUT_OFFS, PASSAGE_CUT_OFFS = (0.5, 0.7), (0.1, 0.2)


def encoded(checkpoint: Checkpoint, texts: Sequence[str]) -> OldAndNew:
    """Each text once, pooled in both ways."""
    encoder = MultiPoolingEncoder(checkpoint)
    found = encoder.passes(encoder.tokenize(texts), (NEW_POOLING,))
    return OldAndNew(found.vectors[SERVED], found.vectors[NEW_POOLING])


def of_pairs(checkpoint: Checkpoint, rows: Sequence[TextPair]) -> Population:
    """Cut-offs on scored pairs, and paired quality; the truth is what all pairs say."""
    pairs = [(row.first, row.second, row.score) for row in rows if row.score is not None]
    texts = list(dict.fromkeys(text for first, second, _ in pairs for text in (first, second)))
    number = {text: place for place, text in enumerate(texts)}
    both = encoded(checkpoint, texts)
    first_sides = both.at(np.array([number[first] for first, _, _ in pairs]))
    second_sides = both.at(np.array([number[second] for _, second, _ in pairs]))

    def at(places: np.ndarray) -> SwitchedPairs:
        drawn = ScoredPairs("drawn", *zip(*(pairs[place] for place in places), strict=True))
        return SwitchedPairs(drawn, first_sides.at(places), second_sides.at(places))

    (whole,) = scales_of([at(np.arange(len(pairs)))], [])

    def figures(places: np.ndarray) -> dict[str, Ended]:
        own = at(places)
        (scale,) = scales_of([own], [])
        (change,) = switch_vectors([own]).quality
        found = _cut_offs(scale, whole, CUT_OFFS)
        return {**found, "change of ρ": _ended(change.change)}

    return Population("switch, pairs", len(pairs), len(pairs) // SHARE, figures, _truths(whole, CUT_OFFS))


def of_documents(checkpoint: Checkpoint, texts: Sequence[str]) -> Iterator[Population]:
    """Cut-offs on texts that have nothing to do with each other, neighbours, and what a bridge keeps."""
    both = encoded(checkpoint, texts)

    def at(places: np.ndarray) -> SwitchedSearch:
        # The order of the places is that of the texts, which may have an order of their own.
        dealt = np.random.default_rng(places).permutation(places)
        return search_of_vectors(both.at(dealt))

    (whole,) = scales_of([], [at(np.arange(len(texts)))])

    def cut_offs(places: np.ndarray) -> dict[str, Ended]:
        (scale,) = scales_of([], [at(places)])
        return _cut_offs(scale, whole, PASSAGE_CUT_OFFS)

    def neighbours(places: np.ndarray) -> dict[str, Ended]:
        search = at(places)
        found = measure_search(search)
        same = compare_same_texts([], [search])
        assert same is not None
        kept = {f"first ten kept [{name}]": _ended(way.kept) for name, way in found.ways.items() if name != NEW}
        return {
            "overlap@10": _ended(found.overlap),
            "agreement": _ended(found.agreement),
            "median cosine": _ended(same.median),
            **kept,
        }

    size = len(texts) // SHARE
    yield Population("switch, texts", len(texts), size, cut_offs, _truths(whole, PASSAGE_CUT_OFFS))
    yield Population("switch, index", len(texts), size, neighbours)


def _truths(whole: ScaledPairs, numbers: Sequence[float]) -> dict[str, float]:
    found: dict[str, float | None] = {}
    for number in numbers:
        found |= {name: ended[0] for name, ended in _of_number(transfer(whole, number), number).items()}
    # These are differences to what all pairs say, since each draw has its own number.
    names = ("default cut-off", *(f"flips at the new number [{number}]" for number in numbers), "flips at the default")
    return {name: value for name, value in found.items() if value is not None} | dict.fromkeys(names, 0.0)


def _cut_offs(scale: ScaledPairs, whole: ScaledPairs, numbers: Sequence[float]) -> dict[str, Ended]:
    found: dict[str, Ended] = {}
    for number in numbers:
        of_number = transfer(scale, number)
        found |= _of_number(of_number, number)
        found[f"flips at the new number [{number}]"] = _flips_beside(of_number, of_number.new.value, whole)
    number, how = default_cut_off(scale)
    chosen = transfer(scale, number, how)
    is_by_unrelated = chosen.new is chosen.same_share
    whole_one = transfer(whole, number)
    truth = (whole_one.same_share if is_by_unrelated else whole_one.same_recall).value
    found["default cut-off"] = _beside(chosen.new, truth)
    found["flips at the default"] = _flips_beside(chosen, number, whole, staying=True)
    return found


def _of_number(found: CutOffTransfer, number: float) -> dict[str, Ended]:
    return {
        f"same share of unrelated [{number}]": _ended(found.same_share),
        f"same recall [{number}]": _ended(found.same_recall),
        f"flips if it stays [{number}]": _ended(found.flips_at_old),
    }


def _flips_beside(found: CutOffTransfer, new: float | None, whole: ScaledPairs, *, staying: bool = False) -> Ended:
    """The share of decisions that flip at a draw's own number, less that of all pairs at the same number."""
    if new is None:
        return None, None, None
    truth = float(np.mean((whole.old > found.old) != (whole.new > new)))
    return _beside(found.flips_at_old if staying else found.flips_at_new, truth)


def _beside(found: Estimate, truth: float | None) -> Ended:
    if truth is None or found.value is None or found.low is None or found.high is None:
        return None, None, None
    return found.value - truth, found.low - truth, found.high - truth


def _ended(found: Estimate) -> Ended:
    return found.value, found.low, found.high
