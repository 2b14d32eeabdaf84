"""SOCM: how much of the difference between two texts mean pooling discards (arXiv 2604.27398).

``clouds`` scales a text's tokens, ``pairs`` compares them (by ``nuclear`` norms), ``summary`` averages streams of
pairs, ``lengths`` controls for length, ``tightness`` checks the Gaussian approximation, ``contrast`` finds hard
negatives and compares them with random pairs, ``poolings`` compares the mean with other poolings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field, field_validator

from embaudit.corpora.draw import Draw
from embaudit.measures.measure import Asked, DrawnSettings, Measure, Readable, Work, parts_of
from embaudit.measures.socm.tables import ROWS

# Time per pair of texts of n tokens, divided by n² (benchmarks/README.md).
PAIR_SECONDS = 40e-9


class SocmSettings(DrawnSettings):
    """Settings of the SOCM measure."""

    corpora: tuple[str, ...] = Field(
        default=("wikipedia", "msmarco"),
        description="corpora of texts, of which all pairs are compared, and corpora of listed pairs",
    )
    texts: int = Field(default=1_000, ge=2, description="texts of each corpus")
    listed_pairs: int = Field(default=50_000, ge=1, description="pairs of each corpus of pairs")
    exponents: tuple[float, ...] = Field(
        default=(0.0, 0.5, 1.0, 2.0),
        min_length=1,
        description="values of alpha and beta in the generalised SOCM, in every combination",
    )
    tightness_pairs: int = Field(
        default=200, ge=0, description="random pairs per corpus for exact transport and SIF weights"
    )
    cut_tokens: tuple[int, ...] = Field(
        default=(16, 32, 64),
        description="fixed lengths that the texts of a corpus are cut to; none: ()",
    )
    cut_texts: int = Field(default=300, ge=2, description="texts of each corpus that are cut")
    pooling_texts: int = Field(
        default=300,
        ge=0,
        description="texts of each corpus on which other poolings are compared with the mean; none: 0",
    )
    contrast_pairs: int = Field(
        default=1_000, ge=0, description="pairs of each corpus of pairs to compare with random ones"
    )
    negatives: int = Field(default=1, ge=1, description="passages per query if hard negatives are mined")

    @property
    def mined_negatives(self) -> int:
        return self.negatives

    @field_validator("exponents")
    @classmethod
    def _no_exponent_is_negative(cls, exponents: tuple[float, ...]) -> tuple[float, ...]:
        # A distance of zero has no negative power.
        if any(not 0 <= exponent < float("inf") for exponent in exponents):
            raise ValueError(f"exponents must be 0 or more, not {list(exponents)}")
        return tuple(sorted(set(exponents)))

    @field_validator("cut_tokens")
    @classmethod
    def _cuts_are_lengths(cls, cut_tokens: tuple[int, ...]) -> tuple[int, ...]:
        if any(tokens < 1 for tokens in cut_tokens):
            raise ValueError(f"texts must be cut to at least 1 token, not to {min(cut_tokens)}")
        return tuple(sorted(set(cut_tokens)))

    def draw_from(self, corpus: str, rows: int, seed: int) -> Draw:
        from embaudit.corpora.catalog import CORPORA

        is_list = corpus in CORPORA and CORPORA[corpus].kind == "pairs"
        return Draw.of(self.listed_pairs if is_list else self.texts, rows, self.draw, seed)

    def work(self, readable: Readable) -> Iterator[Work]:
        from embaudit.corpora.catalog import CORPORA

        for corpus in self.corpora:
            is_list = corpus in CORPORA and CORPORA[corpus].kind == "pairs"
            read = readable.read(corpus, self.listed_pairs if is_list else self.texts, times=2 if is_list else 1)
            pairs = read.texts / 2 if is_list else read.texts**2 / 2
            yield replace(read, core_seconds=pairs * PAIR_SECONDS * read.tokens**2)
            for cut in () if is_list else self.cut_tokens:
                # What the checkpoint does not read to that length is not cut to it.
                if cut > readable.max_length:
                    continue
                few = readable.read(corpus, min(self.cut_texts, self.texts), up_to=cut)
                yield replace(few, core_seconds=few.texts**2 / 2 * PAIR_SECONDS * few.tokens**2)
            if not is_list:
                yield readable.read(corpus, min(self.pooling_texts, self.texts))

    def requested(self, request: Asked) -> SocmSettings:
        """Adds corpora of related pairs that the request gives; graded pairs are for the sticky measure."""
        from embaudit.corpora.catalog import CORPORA

        given = [name for name in request.corpora if name in CORPORA and CORPORA[name].kind == "pairs"]
        asked = [name for name in given if CORPORA[name].relation != "sts" and name not in self.corpora]
        return super().requested(request).model_copy(update={"corpora": (*self.corpora, *asked)})


MEASURE_VERSION = 6

MEASURE = Measure(
    name="socm",
    package=__name__,
    question="How much of a text does mean pooling discard?",
    parts=parts_of(__name__),
    settings=SocmSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"socm_summary": ("socm_mean", "d_mu_mean", "d_sigma_mean", "share_trace_above_bound")},
    is_sharded=True,
    shown_tables=("socm_summary", "socm_cut"),
)
