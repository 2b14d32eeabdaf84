"""What an audit computes: profiles (``quick``, ``standard``, ``paper``) as one typed, versioned object.

Where things are (warehouse, staging, caches) is the other layer of settings: ``embaudit.settings``.
"""

from __future__ import annotations

from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from embaudit.errors import UsageError
from embaudit.suggest import did_you_mean
from embaudit.toml import read_toml

MEASURES = ("sticky", "socm", "layers", "length", "tempscale")
Measure = Literal["sticky", "socm", "layers", "length", "tempscale"]
# Only when named: a grid of temperatures encodes everything once for each of them.
ASKED_FOR = ("tempscale",)
DEFAULT_MEASURES = tuple(measure for measure in MEASURES if measure not in ASKED_FOR)


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rung(_Settings):
    """One step of successive halving: bring every remaining token to ``draws`` draws, then keep the worst."""

    draws: int = Field(ge=1)
    keep: float | None = Field(
        default=None, gt=0, le=1, description="share of the scanned tokens; none: all that remain"
    )


class StickySettings(_Settings):
    """Settings of the sticky-token measure (``docs/measures.md``)."""

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


class SocmSettings(_Settings):
    """Settings of the SOCM measure."""

    corpora: tuple[str, ...] = Field(
        default=("wikipedia", "msmarco"),
        description="all pairs of a corpus of texts; a corpus of pairs as it is listed",
    )
    texts: int = Field(default=1_000, ge=2, description="first texts of each corpus")
    listed_pairs: int = Field(default=50_000, ge=1, description="first pairs of each corpus of pairs")
    exponents: tuple[float, ...] = Field(
        default=(0.0, 0.5, 1.0, 2.0),
        min_length=1,
        description="alpha and beta of the generalised SOCM, every combination",
    )
    tightness_pairs: int = Field(
        default=200, ge=0, description="random pairs a corpus with exact transport and SIF weights beside"
    )
    negatives: int = Field(default=1, ge=1, description="passages a query where hard negatives are mined")

    @field_validator("exponents")
    @classmethod
    def _no_exponent_is_negative(cls, exponents: tuple[float, ...]) -> tuple[float, ...]:
        # A distance of zero has no negative power.
        if any(not 0 <= exponent < float("inf") for exponent in exponents):
            raise ValueError(f"the exponents must be 0 or more, and are {list(exponents)}")
        return tuple(sorted(set(exponents)))


class LayerSettings(_Settings):
    """Settings of the concentration measure, layer by layer."""

    corpora: tuple[str, ...] = ("wikipedia", "msmarco")
    texts: int = Field(default=1_000, ge=1, description="first texts of each corpus")


class LengthSettings(_Settings):
    """Settings of the length measure: lengths are in a text's own tokens, without special tokens."""

    corpora: tuple[str, ...] = ("longdocs",)
    texts: int = Field(default=500, ge=1, le=5_000, description="first texts of each corpus")
    bin_width: int = Field(default=100, ge=1)
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


class TempscaleSettings(_Settings):
    """Settings of the question whether a lower attention temperature helps."""

    corpora: tuple[Literal["longdocs", "retrieval", "sts"], ...] = Field(
        default=("longdocs", "retrieval", "sts"),
        description="labelled texts, a collection with judged queries, scored pairs",
    )
    grid: tuple[float, ...] = Field(
        default=(1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5), min_length=1, description="τ; 1 is always among them"
    )
    texts: int = Field(default=1_000, ge=4, description="labelled texts")
    documents: int = Field(default=1_200, ge=2, description="of the collection: relevant ones first")
    queries: int = Field(default=300, ge=4)
    pairs: int = Field(default=1_000, ge=4, description="scored pairs")
    folds: int = Field(default=5, ge=2, description="of the cross-validation, in each half")
    neighbours: int = Field(default=5, ge=1, description="k of the nearest neighbours")
    reads: Literal["limit", "positions"] = Field(
        default="limit", description="documents up to the configured limit, as served, or up to the position table"
    )
    resamples: int = Field(default=1_000, ge=100, description="of the paired bootstrap")

    @field_validator("grid")
    @classmethod
    def _every_temperature_is_positive(cls, grid: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < tau < float("inf") for tau in grid):
            raise ValueError(f"a temperature divides the logits and must be above 0, and these are {list(grid)}")
        return tuple(sorted({1.0, *grid}, reverse=True))


class Profile(_Settings):
    """Everything that decides what an audit computes, beside checkpoint, corpora, device and seed."""

    name: str
    version: int
    description: str
    sticky: StickySettings = StickySettings()
    socm: SocmSettings = SocmSettings()
    layers: LayerSettings = LayerSettings()
    length: LengthSettings = LengthSettings()
    tempscale: TempscaleSettings = TempscaleSettings()

    def settings_of(self, measure: str) -> dict[str, object]:
        """One measure's settings in JSON form, for cache keys and the audit log."""
        settings: _Settings = getattr(self, measure)
        return settings.model_dump(mode="json")


def profile_names() -> list[str]:
    """The profiles that come with embaudit, cheapest first."""
    return ["quick", "standard", "paper"]


def load_profile(name: str) -> Profile:
    """Read a profile by name, or from a TOML file of the user's own.

    Raises:
        UsageError: if there is none of that name, or the file does not fit.
    """
    packaged = files("embaudit.profiles")
    if name in profile_names():
        return read_toml(packaged.joinpath(f"{name}.toml"), Profile, what="profile")
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        example = f"Compare it with {packaged.joinpath('quick.toml')}."
        return read_toml(path, Profile, what="profile", next_step=example)
    raise UsageError(
        f"No profile is called {name!r}.",
        next_step=did_you_mean(name, profile_names()) + f"Choose {', '.join(profile_names())} or a .toml file.",
    )
