"""Samples the texts of a corpus that a task uses, by seed and content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from embaudit.corpora.draw import content_order, pair_text
from embaudit.words.errors import NotMeasurable

# Both halves must have items.
MIN_ITEMS = 4


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with their classes; ``left_out``: classes with too few texts."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgements:
    """Documents, and queries with the grades (above 0) of their relevant documents by index.

    Attributes:
        own: for each query, the documents that are the query itself and are not ranked for it; empty: none has any.
    """

    documents: tuple[str, ...]
    queries: tuple[str, ...]
    relevant: tuple[Mapping[int, float], ...]
    own: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True)
class GradedPairs:
    """Sentence pairs with human similarity scores.

    Attributes:
        data_sets: of each pair, the data set on whose scale its score is; empty: all are on one scale.
        left_out: data sets with too few pairs, or with one score for all.
    """

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    scores: tuple[float, ...]
    data_sets: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def of(self, places: Sequence[int]) -> GradedPairs:
        """Some of the pairs, of one data set."""
        firsts, seconds = (tuple(side[place] for place in places) for side in (self.firsts, self.seconds))
        return GradedPairs(firsts, seconds, tuple(self.scores[place] for place in places))


def pick_labelled(texts: Sequence[tuple[str, str | None]], most: int, folds: int, seed: int) -> LabelledTexts:
    """At most ``most`` labelled texts; a class needs ``folds`` members in each half.

    Raises:
        NotMeasurable: if fewer than two classes are left.
    """
    known = [(text, label) for text, label in texts if label is not None]
    if not known:
        raise NotMeasurable("none of its texts has a label.")
    picked = [known[place] for place in content_order([text for text, _ in known], seed)[:most]]
    sizes = Counter(label for _, label in picked)
    kept = {label for label, size in sizes.items() if size >= 2 * folds}
    if len(kept) < 2:
        raise NotMeasurable(
            f"{len(sizes)} class{'es' if len(sizes) > 1 else ''} among {len(picked)} labelled texts, {len(kept)} of "
            f"them with at least {2 * folds} texts: cross-validation in two halves needs two such classes."
        )
    chosen = [(text, label) for text, label in picked if label in kept]
    return LabelledTexts(
        tuple(text for text, _ in chosen), tuple(label for _, label in chosen), tuple(sorted(set(sizes) - kept))
    )


def pick_judged(
    documents: Sequence[str],
    queries: Sequence[tuple[str, Mapping[int, float]]],
    most_documents: int,
    most_queries: int,
    seed: int,
    own: Sequence[Collection[int]] = (),
) -> Judgements:
    """At most ``most_queries`` queries, all their relevant documents, and others up to ``most_documents``.

    Args:
        own: as in ``Judgements``.

    Raises:
        NotMeasurable: if there are too few queries or documents.
    """
    asked = content_order([text for text, _ in queries], seed)[:most_queries]
    picked = [queries[place] for place in asked]
    needed = {place for _, relevant in picked for place in relevant}
    order = content_order(documents, seed)
    others = {*[place for place in order if place not in needed][: max(most_documents - len(needed), 0)]}
    places = [place for place in order if place in needed or place in others]
    if len(picked) < MIN_ITEMS or len(places) < 2:
        raise NotMeasurable(f"{len(picked)} judged queries and {len(places)} documents are too few to rank and split.")
    new = {place: index for index, place in enumerate(places)}
    return Judgements(
        tuple(documents[place] for place in places),
        tuple(text for text, _ in picked),
        tuple({new[place]: grade for place, grade in sorted(relevant.items())} for _, relevant in picked),
        tuple(frozenset(new[place] for place in own[query] if place in new) for query in asked) if own else (),
    )


def pick_graded(
    pairs: Sequence[tuple[str, str, float | None]], most: int, seed: int, data_sets: Sequence[str | None] = ()
) -> GradedPairs:
    """At most ``most`` pairs with a score, from each data set in turn, so that small ones are not drowned.

    Args:
        data_sets: of each pair; empty: there is only one.

    Raises:
        NotMeasurable: if there are too few in every data set, or all have the same score.
    """
    named = [name or "" for name in data_sets] or [""] * len(pairs)
    scored = [(*pair, name) for pair, name in zip(pairs, named, strict=True) if pair[2] is not None]
    taken: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    order = content_order([pair_text(first, second) for first, second, *_ in scored], seed)
    for rank, place in enumerate(order):
        turns.append((taken[scored[place][-1]], rank))
        taken[scored[place][-1]] += 1
    picked = [scored[order[rank]] for _, rank in sorted(turns)[:most]]
    by_set = {name: [score for *_, score, own in picked if own == name] for name in dict.fromkeys(named)}
    kept = {name for name, scores in by_set.items() if len(scores) >= MIN_ITEMS and len(set(scores)) > 1}
    if not kept:
        raise NotMeasurable(f"{len(picked)} scored pairs are too few, or all have the same score.")
    firsts, seconds, scores, names = zip(*[one for one in picked if one[-1] in kept], strict=True)
    return GradedPairs(
        firsts, seconds, scores, names if len(by_set) > 1 else (), tuple(name for name in by_set if name not in kept)
    )
