"""What is said of one search: where it was lost, what exactly, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

from embaudit.questions.answer import Lost
from embaudit.questions.why.mends import TriedMend
from embaudit.stores.store import Metric
from embaudit.words.masking import masked
from embaudit.words.sentences import punctuated


@dataclass(frozen=True)
class Diagnosis:
    """Where one search was lost.

    Attributes:
        lost: in a word.
        cause: what exactly, in a word or two; empty where the first says it.
        sentence: what happened there, and what came of trying its mend.
        mend: what would mend it; empty if nothing has to be.
        trial: of that; None if there is nothing to try.
        trials: of all that would mend it, this one's too.
    """

    lost: Lost
    sentence: str
    mend: str = ""
    cause: str = ""
    trial: TriedMend | None = None
    trials: tuple[TriedMend, ...] = ()

    def __post_init__(self) -> None:
        # Like a finding, it has what libraries and stores said put into it.
        for name in ("sentence", "mend"):
            object.__setattr__(self, name, punctuated(masked(getattr(self, name))))

    @property
    def is_confirmed(self) -> bool | None:
        """Whether its mend alone puts the row among the results; None if that was not tried."""
        return None if self.trial is None else self.trial.is_confirmed

    @classmethod
    def first_confirmed(cls, found: Iterable[Diagnosis]) -> Diagnosis:
        """Of what holds, the first that its mend confirms; if none does, the first. All say what was tried."""
        known = list(found)
        named = next((one for one in known if one.is_confirmed), known[0])
        trials = {one.trial.mend.name: one.trial for one in known if one.trial is not None}
        sentence = named.sentence if named.trial is None else f"{named.sentence} {named.trial.told}"
        return replace(named, sentence=sentence, trials=tuple(trials.values()))

    @property
    def told(self) -> str:
        """What happened, and what mends it if anything does."""
        return f"{self.sentence} → {self.mend}" if self.mend else self.sentence


@dataclass(frozen=True)
class ShownResults:
    """What an application shows of a search.

    Attributes:
        k: results.
        least: the score that a result must have; None without one.
        scale: of that: the cosine, or LangChain's relevance of a squared distance, 1 − d²/√2.
    """

    k: int
    least: float | None = None
    scale: Literal["cosine", "relevance"] = "cosine"

    def value(self, cosine: float, score: float | None, metric: Metric) -> float:
        """What is compared with the cut-off, of a row with this cosine and this score by the store's metric."""
        return 1 + score / sqrt(2) if self.scale == "relevance" and metric == "l2" and score is not None else cosine

    def shows(self, cosine: float | None, score: float | None, metric: Metric) -> bool:
        """Whether a result is not below the cut-off."""
        return self.least is None or cosine is None or self.value(cosine, score, metric) >= self.least


def rounded(rank: int) -> int:
    """The next ten."""
    return -(-rank // 10) * 10


def heading(one: Diagnosis) -> str:
    named = {
        **{"found": "Found", "not told": "Not told", "absent": "Lost: no such row"},
        **{"came up": "It came up", "not shown": "It does not come up"},
    }
    return named.get(one.lost, f"Lost {heading_of(one.lost)}")


def heading_of(word: str) -> str:
    """Where, as the end of "lost …"."""
    named = {
        "absent": "no such row",
        "filter": "by the filter",
        "vector": "in the vector",
        "search": "in the search",
        "cut-off": "by the cut-off",
        "text": "in the text",
        "function": "by the function",
    }
    return named.get(word, word)
