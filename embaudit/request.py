"""What one audit is asked: one object for the command line, the flow, its deployment, a watch list and the plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from embaudit.draw import How
from embaudit.errors import UsageError
from embaudit.keys import content_key
from embaudit.masking import has_credentials
from embaudit.measures import DEFAULT_MEASURES, MEASURES, MeasureName
from embaudit.profile import load_profile
from embaudit.toml import complaint

if TYPE_CHECKING:
    from embaudit.checkpoint import LoadOptions

OTHER_MEASURES = [name for name in MEASURES if name not in DEFAULT_MEASURES]
PROMPTS = ("prompt", "query_prompt", "document_prompt")
# Where an audit runs, and what is made of its figures, is no part of what it asks.
NOT_ASKED = {"device", "policy", "gate", "notify"}
Purpose = Literal["scoring", "validation"]


class AuditSettings(BaseModel):
    """Everything that an audit can be told, but for its checkpoint and its warehouse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str = Field(default="quick", description="quick, standard, paper, or a TOML file.")
    measures: list[MeasureName] | None = Field(
        default=None,
        min_length=1,
        description=f"{', '.join(DEFAULT_MEASURES)} (the default), {', '.join(OTHER_MEASURES)}.",
    )
    corpora: dict[str, str] = Field(
        default={},
        description="Where a corpus comes from: sample, hub, hub:owner/name[config]/split@revision:column, a file or "
        "a folder (docs/corpora.md); hard negatives also from mined:bm25:FOLDER or mined:checkpoint:FOLDER.",
    )
    pairs: dict[Purpose, str] = Field(
        default={},
        description="Sentence pairs of your own, kept as they are: csv, tsv, json, jsonl or Parquet with sentence1 and "
        "sentence2.",
    )
    exhaustive: bool = Field(
        default=False, description="Every token gets all draws, and shortlists have no longest length: no saving."
    )
    reference: bool = Field(
        default=False, description="The published code's protocol too: 120 encodes per scanned token."
    )
    draw: How | None = Field(
        default=None,
        description="Which texts of a larger corpus are read: random, drawn by the seed, or its first. "
        "[default: the profile's: random]",
    )
    limit_tokens: int | None = Field(default=None, ge=1, description="Scan only N tokens, drawn by the seed.")
    measure_settings: dict[MeasureName, dict[str, Any]] = Field(
        default={}, description="Settings of the profile to change, by measure."
    )
    policy: str | None = Field(default=None, description="A gate's policy (TOML), applied once the audit is published.")
    gate: Literal["fail", "mark"] = Field(
        default="fail", description="Where the gate trips: fail with exit code 1, or only mark the run."
    )
    notify: str | None = Field(
        default=None,
        description="A Prefect notification block to tell of a failure or a tripped gate, such as slack-webhook/ops.",
    )
    device: str = Field(default="auto", description="auto, cpu, cuda, cuda:1, mps.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="Precision; auto: float32."
    )
    scan_dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = Field(
        default=None,
        description="Precision of the scan for sticky tokens, which only ranks; auto: half precision where a "
        "measurement shows it to be clearly faster. [default: the profile's: auto]",
    )
    pooling: str | None = Field(
        default=None, description="Override the declared pooling: mean, cls, lasttoken, max, weightedmean."
    )
    max_length: int | None = Field(default=None, ge=1, description="Override the length limit, in tokens.")
    prompt: str | None = Field(
        default=None,
        description="What stands before every text, queries and documents too: the name of a declared prompt, or a "
        "text as it stands ('query: '); '' for nothing.  [default: what the checkpoint declares]",
    )
    query_prompt: str | None = Field(
        default=None, description="What stands before queries instead, where a measure has queries and documents."
    )
    document_prompt: str | None = Field(
        default=None, description="What stands before documents instead, where a measure has queries and documents."
    )
    seed: int = Field(default=0, ge=0, description="Of every draw.")
    allow_pickle: bool = Field(default=False, description="Read pickled weights, which can run any code.")
    trust_remote_code: bool = Field(default=False, description="Run model code that comes with the checkpoint.")

    @field_validator("corpora")
    @classmethod
    def _no_source_holds_a_password(cls, corpora: dict[str, str]) -> dict[str, str]:
        named = [name for name, source in corpora.items() if has_credentials(source)]
        if named:
            raise ValueError(f"the corpus {named[0]} is an address with a password in it, and sources are shown")
        return corpora

    def overridden_by(self, other: AuditSettings) -> Self:
        """The same, but for what ``other`` was given explicitly."""
        return self.model_copy(update={name: getattr(other, name) for name in other.model_fields_set})

    @property
    def chosen_measures(self) -> tuple[str, ...]:
        return tuple(self.measures or DEFAULT_MEASURES)

    @property
    def key(self) -> str:
        """The same settings have the same key, in whatever words; an edited profile file has another.

        Raises:
            UsageError: if the profile does not exist or fit.
        """
        asked = self.model_dump(mode="json", exclude=NOT_ASKED | set(PROMPTS)) | self.asked_prompts
        asked["profile"] = load_profile(self.profile).asked_of(self.chosen_measures)
        asked["measures"] = sorted(self.chosen_measures)
        return content_key(**asked)

    @property
    def asked_prompts(self) -> dict[str, str]:
        """The prompts that were given: where none was, keys are what they were before there were any."""
        return {name: given for name in PROMPTS if (given := getattr(self, name)) is not None}

    @property
    def load_options(self) -> LoadOptions:
        """How the checkpoint is loaded."""
        # It brings numpy, and most commands only print their help.
        from embaudit.checkpoint import AskedPrompts, LoadOptions

        return LoadOptions(
            device=self.device,
            dtype=self.dtype,
            pooling=self.pooling,
            max_length=self.max_length,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
            prompts=AskedPrompts(self.prompt, self.query_prompt, self.document_prompt),
        )

    def relative_to(self, folder: Path) -> Self:
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


class AuditRequest(AuditSettings):
    """One audit: of which checkpoint, with which settings, into which warehouse."""

    checkpoint: str = Field(description="packaged:NAME, a local folder, or owner/name@revision on the hub.")
    warehouse: str | None = Field(
        default=None,
        description="DuckDB file, or a DuckLake's address.  "
        "[default: EMBAUDIT_WAREHOUSE, or warehouse.duckdb in EMBAUDIT_HOME (.embaudit)]",
    )

    @classmethod
    def of(cls, **asked: Any) -> AuditRequest:
        """A request from what a person typed.

        Raises:
            UsageError: if a setting does not exist or fit.
        """
        try:
            return cls(**asked)
        except ValidationError as error:
            raise _misfit(error) from error

    @classmethod
    def with_settings(cls, settings: AuditSettings, checkpoint: str, warehouse: str | None) -> AuditRequest:
        """A watch's settings, asked of one checkpoint."""
        return cls(checkpoint=checkpoint, warehouse=warehouse, **settings.model_dump())

    def changed(self, **changes: Any) -> AuditRequest:
        """The same request but for some fields, checked like any other."""
        return AuditRequest.of(**{**self.model_dump(), **changes})


def _misfit(error: ValidationError) -> UsageError:
    first = error.errors()[0]
    name, *_ = (str(part) for part in first["loc"])
    if name == "pairs" and first["type"] == "literal_error":
        return UsageError(
            f"Pairs are for {' or '.join(get_args(Purpose))}, not for {first['input']!r}.",
            next_step="Write --pairs FILE for both, or --pairs validation=FILE.",
        )
    login = "Name a file, or hub:owner/name; for a private one log in with: hf auth login"
    return UsageError(
        f"The audit's settings do not fit: {complaint(dict(first), AuditRequest)}.",
        next_step=login if name == "corpora" else "",
    )


def _source(folder: Path, source: str) -> str:
    """A corpus comes from a file, or from words that are none (``sample``, ``hub``, ``mined:bm25:FOLDER``)."""
    kind, separator, rest = source.rpartition(":")
    if kind.startswith("mined:"):
        return f"{kind}{separator}{folder / rest}"
    return str(folder / source) if (folder / source).exists() else source
