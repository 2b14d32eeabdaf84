"""What is said of one search: where it was lost, what exactly, and what mends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embaudit.words.masking import masked
from embaudit.words.sentences import punctuated

Word = Literal["absent", "filter", "found", "vector", "search", "cut-off", "text", "function", "not told"]


@dataclass(frozen=True)
class Diagnosis:
    """Where one search was lost.

    Attributes:
        lost: in a word.
        cause: what exactly, in a word or two; empty where the first says it.
        sentence: what happened there.
        mend: what would mend it; empty if nothing has to be.
    """

    lost: Word
    sentence: str
    mend: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        # Like a finding, it has what libraries and stores said put into it.
        for name in ("sentence", "mend"):
            object.__setattr__(self, name, punctuated(masked(getattr(self, name))))

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


def nth(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{ending}"


def rounded(rank: int) -> int:
    """The next ten."""
    return -(-rank // 10) * 10


def heading(one: Diagnosis) -> str:
    named = {"found": "Found", "not told": "Not told", "absent": "Lost: no such row"}
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
