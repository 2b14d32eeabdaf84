"""The plan of one audit: its checkpoint by content, its settings, and the id that follows from them.

The outcome of a finished audit: the result of its flow, and what ``embaudit audit --json`` prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, PrivateAttr

from embaudit.checkpoint import resolve
from embaudit.checkpoint.load import choose_device, choose_dtype, describe
from embaudit.checkpoint.precision import widths_of
from embaudit.corpora.draw import Draw
from embaudit.corpora.records import read_chosen_pairs
from embaudit.declared.document import Page
from embaudit.measures import MEASURES
from embaudit.measures.listed import Profile, load_profile
from embaudit.measures.measure import MeasureSettings
from embaudit.measures.run import Engine, InThisProcess, Run
from embaudit.pages.write import audit_page, read_audit
from embaudit.questions.audit import AuditRequest
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, versions_here, versions_of
from embaudit.system.installed import content_key
from embaudit.system.settings import Settings
from embaudit.warehouse.gate import GateVerdict
from embaudit.words.errors import UsageError
from embaudit_flows.server.set_up import require_lasting_home

# Packages that check, publish and run; those that compute are recorded with what they computed.
PUBLISHING = ("duckdb", "prefect", "great-expectations")

# More than the profiles' measures read of a corpus, so that the kept corpus, and all that was computed on it, stays the
# same if a measure reads more texts.
KEPT_ROWS = 20_000
ANY_SIZE = sys.maxsize


class AuditPlan(BaseModel):
    """Everything that the sub-flows need; JSON, so that the Prefect UI can show it."""

    model_config = ConfigDict(frozen=True)

    source: str
    spec: CheckpointSpec
    # Hidden and intermediate width: the shapes of the model's matrix products.
    widths: tuple[int, int]
    profile: Profile
    measures: tuple[str, ...]
    seed: int
    # The user's own pairs by purpose (scoring, validation): their file, and a hash of its content.
    pair_sources: dict[str, str] = {}
    pair_contents: dict[str, str] = {}
    staging: str
    warehouse: str
    started: datetime

    def audit_id(self, corpora: dict[str, StagedCorpus]) -> str:
        """The same question has the same id: a rerun finishes or confirms an audit, and never duplicates it."""
        return content_key(
            **self.spec.key_parts,
            profile=self.profile.asked_of(self.measures),
            measures=sorted(self.measures),
            corpora={name: corpus.corpus_id for name, corpus in corpora.items()},
            seed=self.seed,
            pairs=self.pair_contents,
        )

    def run(
        self, ingested: Mapping[str, StagedCorpus], earlier: Sequence[Staged] = (), engine: Engine | None = None
    ) -> Run:
        """What it gives a measure: the fields that both have, and what is known only now.

        Args:
            earlier: what the measures before it staged.
            engine: computes the steps; by default, one after another in this process.
        """
        shared = {field.name for field in fields(Run)} & set(type(self).model_fields)
        given = {name: getattr(self, name) for name in shared}
        return Run(**given, corpora=ingested, earlier=earlier, engine=engine or InThisProcess())

    def draws_of(self, corpus: str, rows: int) -> list[Draw]:
        """What the chosen measures read of a corpus with ``rows`` rows, one draw per measure."""
        return [settings.draw_from(corpus, rows, self.seed) for settings in self._readers_of(corpus)]

    def negatives_of(self, corpus: str) -> int:
        """Number of passages per query to mine for a corpus of hard negatives."""
        return max(settings.mined_negatives for settings in self._readers_of(corpus))

    def kept_of(self, corpus: str) -> Draw | None:
        """The rows to keep of a source of unknown size, so that every measure finds the rows that it draws.

        None (all rows) if a measure may read all of them, or if one draws at random and another reads the first ones.
        """
        draws = self.draws_of(corpus, ANY_SIZE)
        seeds = {draw.seed for draw in draws}
        if len(seeds) != 1 or any(draw.rows == ANY_SIZE for draw in draws):
            return None
        return Draw(rows=max(KEPT_ROWS, *(draw.rows for draw in draws)), seed=seeds.pop())

    @property
    def corpus_names(self) -> tuple[str, ...]:
        """The corpora that the chosen measures read."""
        names = [name for settings in self._chosen for name in settings.corpora]
        return tuple(dict.fromkeys(names))

    @property
    def _chosen(self) -> list[MeasureSettings]:
        return [getattr(self.profile, measure) for measure in MEASURES if measure in self.measures]

    def _readers_of(self, corpus: str) -> list[MeasureSettings]:
        return [settings for settings in self._chosen if corpus in settings.corpora]


def plan_audit(request: AuditRequest) -> AuditPlan:
    """Resolve names to content: after this, nothing depends on what a name will refer to later.

    Raises:
        UsageError: if a profile, device or file does not exist or is not suitable.
        CheckpointError: if the checkpoint cannot be found or trusted.
    """
    require_lasting_home()
    settings = Settings()
    sources = {purpose: str(Path(source).expanduser().absolute()) for purpose, source in request.pairs.items()}
    contents = {purpose: read_chosen_pairs(Path(source)).content for purpose, source in sources.items()}
    profile = load_profile(request.profile).requested(request)
    measures = tuple(request.measures or profile.measures)
    _require_foundations(profile, measures)
    resolved = resolve(
        request.checkpoint, allow_pickle=request.allow_pickle, trust_remote_code=request.trust_remote_code
    )
    recipe, identity = describe(resolved, request.load_options)
    loading = {**request.loading, "device": choose_device(request.device), "dtype": choose_dtype(request.dtype)}
    return AuditPlan(
        source=str(resolved.ref),
        spec=CheckpointSpec(**loading, reference=resolved.pinned, checkpoint_id=identity.checkpoint_id),
        widths=widths_of(resolved.folder / recipe.transformer_path),
        profile=profile,
        measures=measures,
        seed=request.seed,
        pair_sources=sources,
        pair_contents=contents,
        staging=str(settings.staging),
        warehouse=str(request.published_to),
        started=datetime.now(UTC),
    )


def _require_foundations(profile: Profile, measures: tuple[str, ...]) -> None:
    for name in measures:
        missing = [one for one in getattr(profile, name).builds_on if one not in measures]
        if missing:
            raise UsageError(
                f"The measure {name} builds on {' and '.join(missing)}, which this audit leaves out.",
                next_step=f"Add it: --measures {','.join((*missing, *measures))}. What an earlier audit computed is "
                "not computed again.",
            )


def library_versions(staged: Iterable[Staged]) -> dict[str, str]:
    """For the audit log: versions of what computed the staged files, whenever that was, and publishes them now."""
    return {**versions_here(), **versions_of(staged), **{name: version(name) for name in PUBLISHING}}


class AuditOutcome(BaseModel):
    """The result of an audit flow; its figures are in the tables."""

    audit_id: str
    checkpoint_id: str
    source: str
    warehouse: str
    max_length: int
    # Prompts of texts, queries and documents; empty: none.
    prompts: dict[str, str] = {}
    rows: dict[str, int]
    corpora: dict[str, str]
    warnings: list[str]
    seconds: float
    # Whether the checkpoint may be served: the row of the table verdict.
    verdict: dict[str, Any] = {}
    # Rows of the table finding: the figures in words.
    findings: list[dict[str, Any]] = []
    # The verdict, if there is a policy; the paths of the page and the passport, if they could be written.
    gate: GateVerdict | None = None
    report: str | None = None
    passport: str | None = None
    # As the flow built it; other media show the same.
    _page: Page | None = PrivateAttr(default=None)

    def page(self, wait_seconds: float = 5.0) -> Page:
        """The audit's page: as the flow built it, or from the warehouse if it could not write it.

        Raises:
            UsageError, WarehouseError: as ``read_audit``.
        """
        return self._page or audit_page(read_audit(self.warehouse, self.audit_id, wait_seconds))
