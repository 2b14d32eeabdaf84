"""How long an audit takes, from its plan: what its measures give the model, over what this machine multiplies.

A token of a sequence of n tokens takes 2N + 4Lnd operations in a forward pass of L layers of width d: two for each of
the N = 12Ld² weights of a transformer (Kaplan et al., arXiv 2001.08361, table 1), and the attention's products. What
a measure does beside encoding counts in seconds of one core where it takes as long as that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Sequences of about so many tokens, special ones included, that a measure gives the model.

    Attributes:
        core_seconds: of one core, for what it does with them.
    """

    texts: float
    tokens: float
    core_seconds: float = 0.0


@dataclass(frozen=True)
class Readable:
    """The sizes of a checkpoint and of what an audit reads.

    Attributes:
        heads: of all layers.
        vocabulary, searched: entries, and those of them that a search chooses among.
        max_length: tokens that are read of a text.
        rows, tokens: of each corpus: its texts or pairs, and their mean length as far as it is known.
    """

    layers: int
    heads: int
    hidden_size: int
    vocabulary: int
    searched: int
    max_length: int
    rows: Mapping[str, int]
    tokens: Mapping[str, float]

    def read(self, corpus: str, wanted: float, *, times: float = 1.0, up_to: float | None = None) -> Work:
        """So many of a corpus's texts, or all, each read so many times up to a length."""
        length = min(self.tokens[corpus], self.max_length if up_to is None else up_to)
        return Work(times * min(wanted, self.rows[corpus]), length)

    def seconds(self, work: Iterable[Work], operations_per_second: float, cores: int) -> float:
        """How long it takes at a rate of multiplication."""
        weights = 12 * self.layers * self.hidden_size**2

        def operations(one: Work) -> float:
            per_token = 2 * weights + 4 * self.layers * one.tokens * self.hidden_size
            return one.texts * one.tokens * per_token

        return sum(operations(one) / operations_per_second + one.core_seconds / cores for one in work)
