"""What an audit computes: profiles (``quick``, ``standard``, ``paper``) as one typed, versioned object.

Where things are (warehouse, staging, caches) is the other layer of settings: ``embaudit.settings``.
"""

from __future__ import annotations

import difflib
import tomllib
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from embaudit.errors import UsageError

MEASURES = ("sticky", "socm")
Measure = Literal["sticky", "socm"]


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

    corpora: tuple[str, ...] = ("wikipedia", "msmarco")
    texts: int = Field(default=1_000, ge=2, description="first texts of each corpus")


class Profile(_Settings):
    """Everything that decides what an audit computes, beside checkpoint, corpora, device and seed."""

    name: str
    version: int
    description: str
    sticky: StickySettings = StickySettings()
    socm: SocmSettings = SocmSettings()

    def settings_of(self, measure: str) -> dict[str, object]:
        """One measure's settings in JSON form, for cache keys and the audit log."""
        settings: StickySettings | SocmSettings = getattr(self, measure)
        return settings.model_dump(mode="json")


def profile_names() -> list[str]:
    """The profiles that come with embaudit, cheapest first."""
    return ["quick", "standard", "paper"]


def load_profile(name: str) -> Profile:
    """Read a profile by name, or from a TOML file of the user's own.

    Raises:
        UsageError: if there is none of that name, or the file does not fit.
    """
    path = Path(name)
    if name in profile_names():
        text = files("embaudit.profiles").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml" and path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        near = difflib.get_close_matches(name, profile_names(), n=1)
        raise UsageError(
            f"No profile is called {name!r}.",
            next_step=f"Did you mean {near[0]}?" if near else f"Choose {', '.join(profile_names())} or a .toml file.",
        )
    try:
        return Profile.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise UsageError(f"The profile {name} does not fit: {error}") from error
