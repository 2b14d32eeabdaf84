"""Settings of the length measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field, field_validator

from embaudit.measures.measure import Asked, DrawnSettings
from embaudit.measures.workload import Readable, Work

# The corpus whose documents are ranked by queries, as embaudit.corpora.judged (which needs numpy) names it.
DOCUMENTS = "retrieval"
# sigma_a of one head at 512 tokens (benchmarks/README.md).
HEAD_SECONDS = 2e-3


class LengthSettings(DrawnSettings):
    """Settings of the length measure: lengths are in a text's own tokens, without special tokens."""

    corpora: tuple[str, ...] = Field(default=("longdocs",), description="corpora of long texts")
    texts: int = Field(default=500, ge=1, le=5_000, description="texts of each corpus")
    bin_width: int = Field(default=100, ge=1, description="tokens from one point of the curve to the next")
    longest: int = Field(default=2_048, ge=1, description="where to stop, whatever the model has positions for")
    control_texts: int = Field(
        default=150, ge=2, description="texts that truncations, windows and input embeddings are made of"
    )
    window: int = Field(default=16, ge=1, description="pieces that are encoded alone and averaged")
    neighbours: int = Field(default=10, ge=1, description="k of the neighbour lists")
    sigma_texts: int = Field(default=100, ge=1, description="texts that sigma_a is measured on, at every length")
    sigma_lengths: tuple[int, ...] = Field(
        default=(16, 64, 128, 256, 512), min_length=1, description="what the model cannot read is cut to what it can"
    )

    ranked_documents: int = Field(
        default=1_000, ge=2, description="of a collection that is given, relevant ones first, ranked by its queries"
    )
    ranking_queries: int = Field(default=500, ge=4, description="of these")

    def work(self, readable: Readable) -> Iterator[Work]:
        for corpus in self.corpora:
            yield readable.read(corpus, self.texts, up_to=self.longest)
            # Truncations at up to eight lengths, half as long on average; and pieces, with two special tokens each.
            controls = readable.read(corpus, self.control_texts, times=4, up_to=self.longest)
            yield controls
            yield Work(controls.texts / 4 * controls.tokens / self.window, self.window + 2)
            for length in self.sigma_lengths:
                heads = readable.read(corpus, self.sigma_texts, up_to=length)
                yield replace(heads, core_seconds=heads.texts * readable.heads * HEAD_SECONDS * length / 512)
        if DOCUMENTS in self.corpora:
            yield readable.read(DOCUMENTS, self.ranked_documents, times=2)

    def requested(self, request: Asked) -> LengthSettings:
        """A collection with judged queries that was given is one that lengths are compared in."""
        asked = (DOCUMENTS,) if DOCUMENTS in request.corpora and DOCUMENTS not in self.corpora else ()
        return super().requested(request).model_copy(update={"corpora": (*self.corpora, *asked)})

    @field_validator("sigma_lengths")
    @classmethod
    def _a_length_has_a_token(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if min(lengths) < 1:
            raise ValueError(f"a length is 1 or more, and these are {list(lengths)}")
        return tuple(sorted(set(lengths)))
