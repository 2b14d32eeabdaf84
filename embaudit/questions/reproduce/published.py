"""What a result file of MTEB publishes, and which of the data that are given each task was scored on.

MTEB names a task, its split and subset, and one main score: nDCG@10 of a retrieval task, Spearman's ρ of similarity
tasks. It says nothing of the prompts, the limit and the pooling that the score was reached with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from embaudit.corpora.scores.formats import Score
from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.words.errors import UsageError, did_you_mean

Data = ScoredPairs | Collection
# Main scores of tasks that are no retrieval and no pairs with people's scores. `map`, `ap` and the others are of texts
# that neither --data nor --pairs can hold.
RETRIEVAL, SIMILARITY = ("ndcg_at_10",), ("cosine_spearman", "cos_sim.spearman", "spearman")
UNKNOWN = "main_score"


@dataclass(frozen=True)
class PublishedScore:
    """A published score and the data that it is of."""

    score: Score
    data: Data

    @property
    def part(self) -> str:
        """Task, split and subset, as people say them."""
        subset = "" if self.score.subset == "default" else f", {self.score.subset}"
        return f"{self.score.task} ({self.score.split}{subset})"


def of_data(scores: Sequence[Score], data: Sequence[Data], part: str | None = None) -> list[PublishedScore]:
    """Each data set with the score that was published of it.

    The only task belongs to the only data set; of several, a task and a data set belong together that are called alike.

    Args:
        part: split or subset, where a task has several; by default its test split.

    Raises:
        UsageError: if a data set has no task, or a task has several parts to choose from.
    """
    found = []
    for one in data:
        fitting = [score for score in scores if _fits(score, one)]
        tasks = list(dict.fromkeys(score.task for score in fitting))
        named = [task for task in tasks if _word(task) in _words(one.name)]
        if not named and len(tasks) == len(data) == 1:
            named = tasks
        if len(named) != 1:
            kind = "similarity" if isinstance(one, ScoredPairs) else "retrieval"
            there = ", ".join(dict.fromkeys(score.task for score in scores))
            hint = did_you_mean(Path(one.name).stem, tasks)
            raise UsageError(
                f"No {kind} task is called as {one.name} is: there are scores of {there}.",
                next_step=f"{hint}Give the file of that task alone, or call the data as the task.",
            )
        found.append(PublishedScore(_only([score for score in fitting if score.task == named[0]], part), one))
    return found


def _only(scores: Sequence[Score], part: str | None) -> Score:
    """The score of a part of a task; of its test split, if none is named."""
    chosen = [one for one in scores if part in (one.split, one.subset)] if part else _of_test(scores)
    if len(chosen) == 1:
        return chosen[0]
    parts = "; ".join(f"{one.split}, {one.subset}" for one in scores)
    count = f"no part {part!r}" if part and not chosen else "several scores"
    raise UsageError(
        f"{scores[0].task} has {count} ({parts}).",
        next_step="Say which of these your data are, by its split or subset: --part NAME.",
    )


def _of_test(scores: Sequence[Score]) -> list[Score]:
    return [one for one in scores if one.split == "test"] or [*scores]


def _fits(score: Score, data: Data) -> bool:
    wanted = SIMILARITY if isinstance(data, ScoredPairs) else RETRIEVAL
    return score.metric in (*wanted, UNKNOWN, None)


def _words(name: str) -> Iterator[str]:
    """What a data set may be called: the parts of its path."""
    for part in Path(name).parts:
        yield _word(part)
        yield _word(part.partition(".")[0])


def _word(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())
