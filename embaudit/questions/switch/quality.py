"""What the switch changes where there are judgements: NEW − OLD, paired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from embaudit.measures.quality.scores import CollectionScorer, PairScorer
from embaudit.questions.switch.material import SwitchedPairs, SwitchedSearch
from embaudit.words.estimate import Estimate


@dataclass(frozen=True)
class ScoreChange:
    """One score of both, and NEW − OLD."""

    name: str
    metric: str
    old: Estimate
    new: Estimate
    change: Estimate

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def score_changes(pairs: Sequence[SwitchedPairs], searches: Sequence[SwitchedSearch]) -> Iterator[ScoreChange]:
    """Spearman's ρ of scored pairs and nDCG@10 of judged queries, both on the same resamples."""
    for each in pairs:
        old, new = (PairScorer(each.pairs).spearman(scores) for scores in each.scores)
        name = f"the {len(each.pairs.scores):,} pairs of {each.pairs.name}"
        yield ScoreChange(name, "Spearman's ρ", old.estimate(), new.estimate(), new.minus(old).estimate())
    for search in searches:
        if search.is_judged:
            old, new = (CollectionScorer(search.collection).ndcg(scores) for scores in search.scores)
            yield ScoreChange(search.name, "nDCG@10", old.estimate(), new.estimate(), new.minus(old).estimate())
