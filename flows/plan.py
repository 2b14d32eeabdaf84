"""What one audit is: its checkpoint by content, its settings, and the id that follows from them."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from embaudit.address import warehouse_at
from embaudit.corpora.chosen_pairs import read_chosen_pairs
from embaudit.errors import UsageError
from embaudit.keys import content_key
from embaudit.profile import Profile, TempscaleSettings, load_profile
from embaudit.request import AuditRequest
from embaudit.settings import Settings
from embaudit_flows.server import require_lasting_home
from embaudit_tasks.results import CheckpointSpec, StagedCorpus

LIBRARIES = (
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "scipy",
    "scikit-learn",
    "duckdb",
    "prefect",
    "great-expectations",
)
# The corpus that the sticky-token measure takes its sentence pairs from.
STICKY_CORPUS = "sts"


class AuditPlan(BaseModel):
    """Everything the sub-flows need; JSON, so that it shows in the Prefect UI."""

    model_config = ConfigDict(frozen=True)

    source: str
    spec: CheckpointSpec
    profile: Profile
    measures: tuple[str, ...]
    limit_tokens: int | None
    seed: int
    # Pairs of the user's own by purpose (scoring, validation): the file, and a hash of what it holds.
    pair_sources: dict[str, str] = {}
    pair_contents: dict[str, str] = {}
    pair_paths: dict[str, str] = {}
    is_dtype_given: bool = False
    # Content keys of the steps that every later step's values hang on.
    upstream: dict[str, str] = {}
    staging: str
    warehouse: str
    started: datetime

    def key(self, measure: str, measure_version: int, **inputs: Any) -> str:
        """A cache key of one step: the checkpoint, its inputs, the seed and the version of the code."""
        parts = {"measure": measure, "version": measure_version, "seed": self.seed, **self.spec.key_parts}
        return content_key(**parts, **inputs, **({"upstream": self.upstream} if self.upstream else {}))

    def unseeded_key(self, step: str, measure_version: int, **inputs: Any) -> str:
        """The same for a step that draws nothing at random: the seed is no part of its key."""
        return self.model_copy(update={"seed": 0}).key(step, measure_version, **inputs)

    def audit_id(self, corpora: dict[str, StagedCorpus]) -> str:
        """The same question has the same id: a rerun finishes or confirms an audit, and never doubles it."""
        return content_key(
            **self.spec.key_parts,
            profile=self.profile.model_dump(mode="json", exclude={"description"}),
            measures=sorted(self.measures),
            corpora={name: corpus.corpus_id for name, corpus in corpora.items()},
            limit_tokens=self.limit_tokens,
            seed=self.seed,
            pairs=self.pair_contents,
            # The key parts hold the scan's precision: the rest may have another, as the request says.
            measured_in=self.in_float32().spec.dtype,
        )

    def in_float32(self) -> AuditPlan:
        """Half precision is for the scan alone, unless the user asks for it everywhere."""
        if self.is_dtype_given:
            return self
        return self.model_copy(update={"spec": self.spec.model_copy(update={"dtype": "float32"})})

    @property
    def corpus_names(self) -> tuple[str, ...]:
        """The corpora that the chosen measures read."""
        names: list[str] = []
        if "sticky" in self.measures:
            names.append(STICKY_CORPUS)
        if "socm" in self.measures:
            names += self.profile.socm.corpora
        if "layers" in self.measures:
            names += self.profile.layers.corpora
        if "length" in self.measures:
            names += self.profile.length.corpora
        if "tempscale" in self.measures:
            names += self.profile.tempscale.corpora
        return tuple(dict.fromkeys(names))


def plan_audit(request: AuditRequest) -> AuditPlan:
    """Resolve names to content: after this nothing depends on what a name will mean tomorrow.

    Raises:
        UsageError: if a profile, device or file does not exist or fit.
        CheckpointError: if the checkpoint cannot be found or trusted.
    """
    from embaudit.checkpoint import resolve
    from embaudit.checkpoint.load import choose_device, choose_dtype, describe

    require_lasting_home()
    settings = Settings()
    sources = {purpose: str(Path(source).expanduser().absolute()) for purpose, source in request.pairs.items()}
    contents = {purpose: read_chosen_pairs(Path(source)).content for purpose, source in sources.items()}
    profile = _profile(request)
    resolved = resolve(
        request.checkpoint, allow_pickle=request.allow_pickle, trust_remote_code=request.trust_remote_code
    )
    recipe, identity = describe(resolved, request.load_options)
    device = choose_device(request.device)
    # A hub revision is pinned to the commit that it stood for now, so that tasks elsewhere load the same.
    pinned = f"{resolved.ref.name}@{resolved.revision}" if resolved.revision else str(resolved.ref)
    return AuditPlan(
        source=str(resolved.ref),
        spec=CheckpointSpec(
            reference=pinned,
            checkpoint_id=identity.checkpoint_id,
            device=device,
            dtype=choose_dtype(resolved.folder / recipe.transformer_path / "config.json", device, request.dtype),
            pooling=request.pooling,
            max_length=request.max_length,
            allow_pickle=request.allow_pickle,
            trust_remote_code=request.trust_remote_code,
        ),
        profile=profile,
        measures=request.chosen_measures,
        limit_tokens=request.limit_tokens,
        seed=request.seed,
        is_dtype_given=request.dtype != "auto",
        pair_sources=sources,
        pair_contents=contents,
        staging=str(settings.staging),
        warehouse=str(warehouse_at(request.warehouse) if request.warehouse else settings.warehouse_path),
        started=datetime.now(UTC),
    )


def _profile(request: AuditRequest) -> Profile:
    """The profile with what the request changes of it."""
    profile = load_profile(request.profile)
    sticky = profile.sticky.everything() if request.exhaustive else profile.sticky
    if request.reference:
        sticky = sticky.model_copy(update={"reference": True})
    profile = profile.model_copy(update={"sticky": sticky})
    if request.temperatures:
        profile = _with_temperatures(profile, request.temperatures)
    return _with_pair_corpora(profile, request.corpora) if "socm" in request.chosen_measures else profile


def _with_temperatures(profile: Profile, changes: dict[str, Any]) -> Profile:
    """The profile with other settings of the temperature grid.

    Raises:
        UsageError: if one does not fit.
    """
    from pydantic import ValidationError

    try:
        settings = TempscaleSettings.model_validate({**profile.tempscale.model_dump(), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"The temperatures' {where} does not fit: {first['msg']}.") from error
    return profile.model_copy(update={"tempscale": settings})


def _with_pair_corpora(profile: Profile, sources: dict[str, str]) -> Profile:
    """A list of related pairs that was given is one that SOCM is to read; graded pairs are the sticky measure's."""
    from embaudit.corpora import CORPORA

    given = [name for name in sources if name in CORPORA and CORPORA[name].kind == "pairs"]
    asked = [name for name in given if CORPORA[name].relation != "sts" and name not in profile.socm.corpora]
    named = {"corpora": (*profile.socm.corpora, *asked)}
    return profile.model_copy(update={"socm": profile.socm.model_copy(update=named)})


def library_versions() -> dict[str, str]:
    """Versions that results were computed with, for the audit log."""
    return {name: version(name) for name in LIBRARIES}
