"""Settings of the length measure."""

from __future__ import annotations

from pydantic import Field, field_validator

from embaudit.measures.measure import DrawnSettings


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

    @field_validator("sigma_lengths")
    @classmethod
    def _a_length_has_a_token(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if min(lengths) < 1:
            raise ValueError(f"a length is 1 or more, and these are {list(lengths)}")
        return tuple(sorted(set(lengths)))
