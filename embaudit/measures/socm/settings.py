"""Settings of SOCM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field, field_validator

from embaudit.draw import Draw
from embaudit.measures.measure import Asked, DrawnSettings
from embaudit.measures.workload import Readable, Work

# Of one pair of texts of n tokens, over n² (benchmarks/README.md).
PAIR_SECONDS = 26e-9


class SocmSettings(DrawnSettings):
    """Settings of the SOCM measure."""

    corpora: tuple[str, ...] = Field(
        default=("wikipedia", "msmarco"),
        description="all pairs of a corpus of texts; a corpus of pairs as it is listed",
    )
    texts: int = Field(default=1_000, ge=2, description="texts of each corpus")
    listed_pairs: int = Field(default=50_000, ge=1, description="pairs of each corpus of pairs")
    exponents: tuple[float, ...] = Field(
        default=(0.0, 0.5, 1.0, 2.0),
        min_length=1,
        description="alpha and beta of the generalised SOCM, every combination",
    )
    tightness_pairs: int = Field(
        default=200, ge=0, description="random pairs per corpus with exact transport and SIF weights beside"
    )
    cut_tokens: tuple[int, ...] = Field(
        default=(16, 32, 64),
        description="lengths that the texts of a corpus are cut to, so that all are of one length; none: ()",
    )
    cut_texts: int = Field(default=300, ge=2, description="of the drawn texts, as many as are cut")
    pooling_texts: int = Field(
        default=300,
        ge=0,
        description="of the drawn texts, as many on which other poolings stand beside the mean; none: 0",
    )
    contrast_pairs: int = Field(
        default=1_000, ge=0, description="pairs of each corpus of pairs that are set against random ones"
    )
    negatives: int = Field(default=1, ge=1, description="passages per query where hard negatives are mined")

    @property
    def mined_negatives(self) -> int:
        return self.negatives

    @field_validator("exponents")
    @classmethod
    def _no_exponent_is_negative(cls, exponents: tuple[float, ...]) -> tuple[float, ...]:
        # A distance of zero has no negative power.
        if any(not 0 <= exponent < float("inf") for exponent in exponents):
            raise ValueError(f"the exponents must be 0 or more, and are {list(exponents)}")
        return tuple(sorted(set(exponents)))

    @field_validator("cut_tokens")
    @classmethod
    def _cuts_are_lengths(cls, cut_tokens: tuple[int, ...]) -> tuple[int, ...]:
        if any(tokens < 1 for tokens in cut_tokens):
            raise ValueError(f"texts are cut to 1 token or more, and not to {min(cut_tokens)}")
        return tuple(sorted(set(cut_tokens)))

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        from embaudit.corpora import CORPORA

        is_list = corpus in CORPORA and CORPORA[corpus].kind == "pairs"
        return Draw.of(self.listed_pairs if is_list else self.texts, rows, self.draw, seed)

    def work(self, readable: Readable) -> Iterator[Work]:
        from embaudit.corpora import CORPORA

        for corpus in self.corpora:
            is_list = corpus in CORPORA and CORPORA[corpus].kind == "pairs"
            read = readable.read(corpus, self.listed_pairs if is_list else self.texts, times=2 if is_list else 1)
            pairs = read.texts / 2 if is_list else read.texts**2 / 2
            yield replace(read, core_seconds=pairs * PAIR_SECONDS * read.tokens**2)
            for cut in () if is_list else self.cut_tokens:
                few = readable.read(corpus, min(self.cut_texts, self.texts), up_to=cut)
                yield replace(few, core_seconds=few.texts**2 / 2 * PAIR_SECONDS * few.tokens**2)
            if not is_list:
                yield readable.read(corpus, min(self.pooling_texts, self.texts))

    def requested(self, request: Asked) -> SocmSettings:
        """A list of related pairs that was given is one that SOCM is to read; graded pairs are the sticky measure's."""
        from embaudit.corpora import CORPORA

        given = [name for name in request.corpora if name in CORPORA and CORPORA[name].kind == "pairs"]
        asked = [name for name in given if CORPORA[name].relation != "sts" and name not in self.corpora]
        return super().requested(request).model_copy(update={"corpora": (*self.corpora, *asked)})
