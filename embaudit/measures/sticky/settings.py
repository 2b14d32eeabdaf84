"""Settings of the sticky-token measure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from embaudit.measures.measure import MeasureSettings

if TYPE_CHECKING:
    from embaudit.request import AuditSettings


class Rung(BaseModel):
    """One step of successive halving: bring every remaining token to ``draws`` draws, then keep the worst."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    draws: int = Field(ge=1)
    keep: float | None = Field(
        default=None, gt=0, le=1, description="share of the scanned tokens; none: all that remain"
    )


class StickySettings(MeasureSettings):
    """Settings of the sticky-token measure (``docs/measures.md``)."""

    corpora: tuple[Literal["sts"]] = Field(default=("sts",), description="where sentence pairs are drawn from")
    copies: int = Field(default=8, ge=1, description="n, copies of the token inserted")
    sentences: int = Field(default=1_000, ge=8, description="distinct sentences that pairs are chosen from")
    scoring_pairs: int = Field(default=15, ge=3)
    validation_pairs: int = Field(default=250, ge=10)
    rotate_operators: bool = Field(default=False, description="one operator a validation pair instead of all three")
    search: Literal["sequential", "exhaustive"] = Field(
        default="exhaustive", description="exhaustive: every token all draws, every candidate all points"
    )
    pilot_share: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description="random tokens that get all draws: they order the draws and tell the misses",
    )
    rungs: tuple[Rung, ...] = Field(default=(Rung(draws=15),), min_length=1, description="of the sequential search")
    common_pairs: int = Field(default=120, ge=10, description="pairs that every candidate gets in a sequential search")
    scan_dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="precision of the scan; auto: float32 on CPU, bfloat16 or float16 on GPU"
    )
    shortlist_share: float = Field(default=0.02, gt=0, le=1, description="share of scanned tokens, per protocol")
    longest_shortlist: int | None = Field(default=None, ge=1, description="per protocol, whatever the share says")
    controls: int = Field(default=200, ge=10)
    resamples: int = Field(default=1_000, ge=100)
    most_encodes: int | None = Field(default=None, ge=1, description="budget of scan and validation together")
    dose_tokens: int = Field(default=10, ge=0, description="worst tokens, and as many controls, measured at each dose")
    doses: tuple[int, ...] = Field(default=(1, 2, 4, 8, 16), min_length=1, description="n of the dose curve")
    dose_pairs: int = Field(default=60, ge=10, description="validation pairs of the dose curve")
    shift_tokens: int = Field(
        default=10, ge=0, description="sticky and ordinary tokens of the paper's first experiment"
    )
    shift_pairs: int = Field(default=1_000, ge=10, description="its fixed set of pairs")
    attention_tokens: int = Field(
        default=50, ge=0, description="sticky and ordinary tokens whose attention is compared"
    )
    attention_sentences: int = Field(default=20, ge=1)
    permutations: int = Field(default=1_000, ge=100, description="of tokens, for the attention interval")
    reference: bool = Field(default=False, description="the published code's protocol too: 120 encodes a scanned token")
    reference_pairs: int = Field(default=5, ge=1, description="scoring pairs of the reference protocol")
    basis: Literal["screened", "validated"] = "validated"

    @model_validator(mode="after")
    def _rungs_rise(self) -> StickySettings:
        draws = [rung.draws for rung in self.rungs]
        if any(later <= earlier for earlier, later in pairwise(draws)):
            raise ValueError(f"the draws of the rungs must rise, and are {draws}")
        return self

    def everything(self) -> StickySettings:
        """The same with all draws, points and candidates: what ``--exhaustive`` asks for."""
        lifted = {"search": "exhaustive", "rotate_operators": False, "most_encodes": None, "longest_shortlist": None}
        return self.model_copy(update=lifted)

    def requested(self, request: AuditSettings) -> StickySettings:
        settings = self.everything() if request.exhaustive else self
        return settings.model_copy(update={"reference": True}) if request.reference else settings
