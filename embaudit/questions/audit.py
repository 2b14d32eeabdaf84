"""An audit request: one object for the command line, the flow, its deployment, a watch list and the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from embaudit.checkpoint.loading import DTYPE, PROMPTS, Loading
from embaudit.corpora.draw import How
from embaudit.measures import DEFAULT_MEASURES, MEASURES, MeasureName
from embaudit.measures.listed import load_profile, profile_names
from embaudit.system.installed import content_key
from embaudit.system.settings import Settings, Warehouse, warehouse_at
from embaudit.system.small_files import complaint
from embaudit.words.errors import UsageError
from embaudit.words.masking import has_credentials

OTHER_MEASURES = [name for name in MEASURES if name not in DEFAULT_MEASURES]
# Where an audit runs and what happens to its results is not part of the question it asks.
NOT_ASKED = {"device", "policy", "gate", "notify"}
# These stood among an audit's own settings before the first release.
OF_STICKY = ("exhaustive", "reference", "scan_dtype", "limit_tokens")
Purpose = Literal["scoring", "validation"]


class AuditSettings(Loading):
    """All settings of an audit except its checkpoint and warehouse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str = Field(default="quick", description=f"Profile: {', '.join(profile_names())}, or a TOML file.")
    measures: list[MeasureName] | None = Field(
        default=None,
        min_length=1,
        description=f"{', '.join(DEFAULT_MEASURES)} (the default of quick and paper), {', '.join(OTHER_MEASURES)}.",
    )
    corpora: dict[str, str] = Field(
        default={},
        description="Source of a corpus: sample, hub, hub:owner/name[config]/split@revision:column, a file or "
        "a folder (docs/corpora.md); hard negatives also from mined:bm25:FOLDER or mined:checkpoint:FOLDER.",
    )
    pairs: dict[Purpose, str] = Field(
        default={},
        description="Your own sentence pairs, used as they are: csv, tsv, json, jsonl or Parquet with sentence1 and "
        "sentence2.",
    )
    draw: How | None = Field(
        default=None,
        description="Which texts of a larger corpus to read: a random draw, or the first ones. "
        "[default: the profile's: random]",
    )
    measure_settings: dict[MeasureName, dict[str, Any]] = Field(
        default={}, description="Changes to the profile's settings, by measure (docs/settings.md)."
    )
    policy: str | None = Field(default=None, description="Gate policy (TOML) to check the published audit against.")
    gate: Literal["fail", "mark"] = Field(
        default="fail", description="If the gate trips: fail with exit code 1, or only mark the run."
    )
    notify: str | None = Field(
        default=None,
        description="Prefect notification block to notify of a failure or a tripped gate, such as slack-webhook/ops.",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(default="auto", description=DTYPE.description)
    seed: int = Field(default=0, ge=0, description="Random seed of every draw.")

    @model_validator(mode="before")
    @classmethod
    def _name_what_is_a_measures_own(cls, asked: Any) -> Any:
        moved = [name for name in OF_STICKY if isinstance(asked, dict) and name in asked]
        if moved:
            raise ValueError(
                f"{moved[0]} is a setting of the measure sticky: --set sticky.{moved[0]}=VALUE, or "
                f"measure_settings.sticky.{moved[0]}"
            )
        return asked

    @field_validator("corpora")
    @classmethod
    def _refuse_passwords_in_sources(cls, corpora: dict[str, str]) -> dict[str, str]:
        named = [name for name, source in corpora.items() if has_credentials(source)]
        if named:
            raise ValueError(f"the source of corpus {named[0]} contains a password, and sources are shown in output")
        return corpora

    def overridden_by(self, other: AuditSettings) -> Self:
        """These settings, with those that ``other`` sets explicitly."""
        return self.model_copy(update={name: getattr(other, name) for name in other.model_fields_set})

    @property
    def chosen_measures(self) -> tuple[str, ...]:
        """Those named, or else the profile's.

        Raises:
            UsageError: if the profile does not exist or is invalid.
        """
        return tuple(self.measures or load_profile(self.profile).measures)

    @property
    def key(self) -> str:
        """A key of what the settings mean; editing the profile file changes it.

        Raises:
            UsageError: if the profile does not exist or is invalid.
        """
        asked = self.model_dump(mode="json", exclude=NOT_ASKED | set(PROMPTS)) | self.asked_prompts
        profile = load_profile(self.profile)
        measures = self.measures or profile.measures
        asked["profile"] = profile.asked_of(measures)
        asked["measures"] = sorted(measures)
        return content_key(**asked)

    def relative_to(self, folder: Path) -> Self:
        """The same with file names relative to a folder (of the watch list), wherever the flow runs."""

        def below(name: str) -> str:
            return str(folder / Path(name).expanduser())

        profile = below(self.profile) if self.profile.endswith(".toml") else self.profile
        return self.model_copy(
            update={
                "profile": profile,
                "policy": None if self.policy is None else below(self.policy),
                "corpora": {name: _source(source, below) for name, source in self.corpora.items()},
                "pairs": {purpose: below(file) for purpose, file in self.pairs.items()},
            }
        )


class AuditRequest(AuditSettings):
    """One audit: checkpoint, settings and warehouse."""

    checkpoint: str = Field(description="packaged:NAME, a local folder, or owner/name@revision on the hub.")
    warehouse: str | None = Field(
        default=None,
        description="DuckDB file or DuckLake address.  "
        "[default: EMBAUDIT_WAREHOUSE, or warehouse.duckdb in EMBAUDIT_HOME (.embaudit)]",
    )

    @property
    def published_to(self) -> Warehouse:
        """The warehouse, or the configured one."""
        return warehouse_at(self.warehouse) if self.warehouse else Settings().warehouse_path

    @classmethod
    def of(cls, **asked: Any) -> AuditRequest:
        """A request from user input.

        Raises:
            UsageError: if a setting does not exist or is invalid.
        """
        try:
            return cls(**asked)
        except ValidationError as error:
            raise _invalid_settings(error) from error

    @classmethod
    def with_settings(cls, settings: AuditSettings, checkpoint: str, warehouse: str | None) -> AuditRequest:
        """A request for one checkpoint with the settings of a watch list."""
        return cls(checkpoint=checkpoint, warehouse=warehouse, **settings.model_dump())

    def changed(self, **changes: Any) -> AuditRequest:
        """The same request with some fields changed and validated."""
        return AuditRequest.of(**{**self.model_dump(), **changes})


def _invalid_settings(error: ValidationError) -> UsageError:
    first = error.errors()[0]
    # What is said of the settings as a whole names none of them.
    name = str((*first["loc"], "")[0])
    if name == "pairs" and first["type"] == "literal_error":
        return UsageError(
            f"Pairs are for {' or '.join(get_args(Purpose))}, not for {first['input']!r}.",
            next_step="Write --pairs FILE for both, or --pairs validation=FILE.",
        )
    login = "Name a file, or hub:owner/name; for a private data set log in with: hf auth login"
    return UsageError(
        f"The audit's settings are invalid: {complaint(dict(first), AuditRequest)}.",
        next_step=login if name == "corpora" else "Options: embaudit audit --help; settings: docs/settings.md",
    )


def _source(source: str, below: Callable[[str], str]) -> str:
    """A corpus source, below a folder if it is a file there (not ``sample``, ``hub`` and the like)."""
    if source.startswith("mined:"):
        *how, rest = source.split(":", 2)
        return ":".join((*how, below(rest)))
    return below(source) if Path(below(source)).exists() else source
