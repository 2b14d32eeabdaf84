"""Estimates an audit's duration from its plan: the operations of its measures, over what a layer reaches here.

In a forward pass of L layers of width d, a token in a sequence of n tokens takes 2N + 4Lnd operations: two for each of
the N = 12Ld² weights of a transformer (Kaplan et al., arXiv 2001.08361, table 1), plus the attention products. Work
other than encoding is counted in core seconds if it is comparable. How fast operations are depends on the precision
that they run in, so each piece of work names its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# The audit's own (``--dtype``); that of the scan, which is half precision where this is clearly faster; or float32
# whatever the audit runs in.
Precision = Literal["audit", "scan", "float32"]

# For each layer and number of a state. Measured once: all-MiniLM-L6-v2 on two cores, 27 µs a token in either precision,
# beside layers at 137 GFLOP/s in float32 and 275 in bfloat16.
BESIDE_LAYERS = 1_600


@dataclass(frozen=True)
class Work:
    """``texts`` sequences of about ``tokens`` tokens each, special tokens included, that a measure encodes.

    Attributes:
        core_seconds: single-core time of further work on them.
        is_shared: whether other measures of the same audit find it done if it is equal to theirs.
        runs_in: the precision in which they are encoded.
    """

    texts: float
    tokens: float
    core_seconds: float = 0.0
    is_shared: bool = False
    runs_in: Precision = "audit"


@dataclass(frozen=True)
class Readable:
    """Sizes of a checkpoint and of the corpora that an audit reads.

    Attributes:
        heads: total over all layers.
        vocabulary, searched: number of entries, and of those in the search.
        max_length: longest input in tokens.
        rows, tokens: by corpus, the number of texts or pairs, and their estimated mean length.
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
        """``wanted`` texts of a corpus (or all, if fewer), each encoded ``times`` times, up to a length."""
        length = min(self.tokens[corpus], self.max_length if up_to is None else up_to)
        return Work(times * min(wanted, self.rows[corpus]), length)

    def operations(self, work: Work) -> float:
        """Operations that encoding its texts takes."""
        weights = 12 * self.layers * self.hidden_size**2
        per_token = 2 * weights + 4 * self.layers * work.tokens * self.hidden_size
        return work.texts * work.tokens * per_token

    def beside_layers(self, work: Work) -> float:
        """Operations that take as long in float32 as what tokens cost beside their layers: ids, masks, pooling."""
        return work.texts * work.tokens * BESIDE_LAYERS * self.layers * self.hidden_size

    def seconds(self, work: Iterable[Work], operations_per_second: Mapping[Precision, float], cores: int) -> float:
        """Duration at the throughput of each precision; what is no product is no faster in half precision."""
        rates = operations_per_second
        return sum(
            self.operations(one) / rates[one.runs_in]
            + self.beside_layers(one) / rates.get("float32", rates[one.runs_in])
            + one.core_seconds / cores
            for one in work
        )
