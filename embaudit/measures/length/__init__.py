"""Length collapse (arXiv 2410.24200): how much more alike long texts are, and how much of that needs no attention.

``curve`` measures similarity by length under four conditions and compares them, ``bias`` measures the effect of length
on neighbours, on unrelated pairs and on rankings of a collection, and ``heads`` measures σ_a by layer, head and length,
beside its published bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field, field_validator

from embaudit.measures.length.tables import ROWS
from embaudit.measures.measure import Asked, DrawnSettings, Measure, Readable, Work, parts_of

# The corpus with queries, as named in embaudit.corpora.judged (which imports numpy).
DOCUMENTS = "retrieval"
# Time for sigma_a of one head at 512 tokens (benchmarks/README.md).
HEAD_SECONDS = 2e-3


class LengthSettings(DrawnSettings):
    """Settings of the length measure; lengths are in tokens, without special tokens."""

    corpora: tuple[str, ...] = Field(default=("longdocs",), description="corpora of long texts")
    texts: int = Field(default=500, ge=1, le=5_000, description="texts of each corpus")
    bin_width: int = Field(default=100, ge=1, description="width of a length bin, in tokens")
    longest: int = Field(default=2_048, ge=1, description="longest text, even if the model has more positions")
    control_texts: int = Field(
        default=150, ge=2, description="texts for the controls: truncations, windows and input embeddings"
    )
    window: int = Field(default=16, ge=1, description="tokens per window that is encoded separately and averaged")
    neighbours: int = Field(default=10, ge=1, description="k of the neighbour lists")
    sigma_texts: int = Field(default=100, ge=1, description="texts on which sigma_a is measured, at every length")
    sigma_lengths: tuple[int, ...] = Field(
        default=(16, 64, 128, 256, 512),
        min_length=1,
        description="lengths at which sigma_a is measured; capped at what the model can read",
    )

    ranked_documents: int = Field(
        default=1_000, ge=2, description="documents to rank if a collection is given, relevant ones first"
    )
    ranking_queries: int = Field(default=500, ge=4, description="queries of this collection")

    def work(self, readable: Readable) -> Iterator[Work]:
        for corpus in self.corpora:
            yield readable.read(corpus, self.texts, up_to=self.longest)
            # Truncations at up to eight lengths, half as long on average, of the three texts in four that reach all of
            # them; and windows, with two special tokens each.
            controls = readable.read(corpus, self.control_texts, times=3, up_to=self.longest)
            yield controls
            yield Work(controls.texts / 4 * controls.tokens / self.window, self.window + 2)
            for length in self.sigma_lengths:
                heads = readable.read(corpus, self.sigma_texts, up_to=length)
                yield replace(heads, core_seconds=heads.texts * readable.heads * HEAD_SECONDS * length / 512)
        if DOCUMENTS in self.corpora:
            yield readable.read(DOCUMENTS, self.ranked_documents, times=2)

    def requested(self, request: Asked) -> LengthSettings:
        """Adds a collection with judged queries if the request gives one."""
        asked = (DOCUMENTS,) if DOCUMENTS in request.corpora and DOCUMENTS not in self.corpora else ()
        return super().requested(request).model_copy(update={"corpora": (*self.corpora, *asked)})

    @field_validator("sigma_lengths")
    @classmethod
    def _a_length_has_a_token(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if min(lengths) < 1:
            raise ValueError(f"lengths must be 1 or more, not {list(lengths)}")
        return tuple(sorted(set(lengths)))


MEASURE_VERSION = 4

MEASURE = Measure(
    name="length",
    package=__name__,
    question="Do the vectors of texts become more alike the longer the texts are?",
    parts=parts_of(__name__),
    settings=LengthSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    shown_tables=("length_bin", "length_rise", "length_summary"),
)
