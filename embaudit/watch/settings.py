"""What a watch list says of its audits: the parameters of the flow ``audit``, checked when the list is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from embaudit.checkpoint import LoadOptions
from embaudit.keys import content_key
from embaudit.masking import has_credentials
from embaudit.profile import DEFAULT_MEASURES, Measure, load_profile

# Where an audit runs, and what is made of its figures, is no part of what it asks.
NOT_ASKED = {"device", "policy", "gate", "notify"}


class AuditSettings(BaseModel):
    """The parameters of the flow ``audit``, but for the checkpoint and the warehouse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str = "quick"
    measures: list[Measure] | None = Field(default=None, min_length=1)
    corpora: dict[str, str] = {}
    limit_tokens: int | None = Field(default=None, ge=1)
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    pooling: str | None = None
    max_length: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    allow_pickle: bool = False
    trust_remote_code: bool = False
    pairs: dict[Literal["scoring", "validation"], str] = {}
    exhaustive: bool = False
    reference: bool = False
    temperatures: dict[str, Any] | None = None
    policy: str | None = None
    gate: Literal["fail", "mark"] = "fail"
    notify: str | None = None

    @field_validator("corpora")
    @classmethod
    def _no_source_holds_a_password(cls, corpora: dict[str, str]) -> dict[str, str]:
        named = [name for name, source in corpora.items() if has_credentials(source)]
        if named:
            raise ValueError(f"the corpus {named[0]} is an address with a password in it, and sources are shown")
        return corpora

    @property
    def parameters(self) -> dict[str, Any]:
        """What the flow ``audit`` is called with."""
        return self.model_dump(mode="json")

    @property
    def key(self) -> str:
        """The same settings have the same key, in whatever words; an edited profile file has another.

        Raises:
            UsageError: if the profile does not exist or fit.
        """
        asked = self.model_dump(mode="json", exclude=NOT_ASKED)
        asked["profile"] = load_profile(self.profile).model_dump(mode="json", exclude={"description"})
        asked["measures"] = sorted(self.measures or DEFAULT_MEASURES)
        return content_key(**asked)

    @property
    def load_options(self) -> LoadOptions:
        """How the checkpoint is loaded, in as far as that decides which checkpoint it is."""
        return LoadOptions(
            pooling=self.pooling,
            max_length=self.max_length,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )

    def overridden_by(self, other: AuditSettings) -> AuditSettings:
        """The same, but for what ``other`` was given explicitly."""
        return self.model_copy(update={name: getattr(other, name) for name in other.model_fields_set})

    def relative_to(self, folder: Path) -> AuditSettings:
        """The same with file names that are relative to the watch list, wherever the flow runs."""
        profile = str(folder / self.profile) if self.profile.endswith(".toml") else self.profile
        return self.model_copy(
            update={
                "profile": profile,
                "policy": None if self.policy is None else str(folder / Path(self.policy).expanduser()),
                "corpora": {name: _source(folder, source) for name, source in self.corpora.items()},
                "pairs": {purpose: str(folder / file) for purpose, file in self.pairs.items()},
            }
        )


def _source(folder: Path, source: str) -> str:
    """A corpus comes from a file, or from words that are none (``sample``, ``hub``, ``mined:bm25:FOLDER``)."""
    kind, separator, rest = source.rpartition(":")
    if kind.startswith("mined:"):
        return f"{kind}{separator}{folder / rest}"
    return str(folder / source) if (folder / source).exists() else source
