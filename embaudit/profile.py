"""What an audit computes: profiles (``quick``, ``standard``, ``paper``) as one typed, versioned object.

Where things are (warehouse, staging, caches) is the other layer of settings: ``embaudit.settings``.
"""

from __future__ import annotations

import difflib
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from embaudit.errors import UsageError

MEASURES = ("sticky", "socm")
Measure = Literal["sticky", "socm"]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rung(_Settings):
    """One step of narrowing: bring every remaining token to ``draws`` draws, then keep the best ``keep``."""

    draws: int = Field(ge=1)
    keep: int | None = Field(default=None, ge=1)


class StickySettings(_Settings):
    """Settings of the sticky-token measure (``docs/measures.md``)."""

    copies: int = Field(default=8, ge=1, description="n, copies of the token inserted")
    sentences: int = Field(default=1_000, ge=8, description="distinct sentences that pairs are chosen from")
    scoring_pairs: int = Field(default=15, ge=3)
    validation_pairs: int = Field(default=250, ge=10)
    rotate_operators: bool = Field(default=False, description="one operator a validation pair instead of all three")
    rungs: tuple[Rung, ...] = Field(default=(Rung(draws=15),), description="narrowing of the scan")
    shortlist_share: float = Field(default=0.02, gt=0, le=1, description="share of scanned tokens, per protocol")
    longest_shortlist: int | None = Field(default=None, ge=1, description="per protocol, whatever the share says")
    controls: int = Field(default=200, ge=10)
    resamples: int = Field(default=1_000, ge=100)
    most_encodes: int | None = Field(default=None, ge=1, description="budget of scan and validation together")
    basis: Literal["screened", "validated"] = "validated"


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
