"""What a measure is given to work with: one audit's checkpoint, corpora and settings, and a way to run steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from embaudit.corpora.draw import Draw
from embaudit.measures.measure import MeasureSettings
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, note
from embaudit.steps.step import Step
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from embaudit.measures.listed import Profile

P = ParamSpec("P")
S = TypeVar("S", bound=MeasureSettings)


class Engine(Protocol):
    """How steps are computed: in an audit as Prefect tasks (``embaudit_flows.measure``)."""

    def call(self, step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]: ...

    def call_shards(
        self, step: Step[...], staging: str, shards: Sequence[dict[str, Any]], **shared: Any
    ) -> list[Staged]: ...


class InThisProcess:
    """Computes one step after another, without Prefect."""

    def call(self, step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
        return step.compute(staging, *args, **kwargs)

    def call_shards(
        self, step: Step[...], staging: str, shards: Sequence[dict[str, Any]], **shared: Any
    ) -> list[Staged]:
        return [part for shard in shards for part in step.compute(staging, **shared, **shard)]


@dataclass(frozen=True)
class Run:
    """One run of a measure; call it with a step and the step's arguments.

    Attributes:
        staging: where steps stage their tables.
        profile: the settings of all measures.
        widths: hidden and intermediate width: the shapes of the model's matrix products.
        corpora: the ingested corpora by name.
        earlier: what the measures before this one staged, for one that builds on them.
        pair_sources, pair_contents: the user's own pairs by purpose: their file, and a hash of its content.
    """

    spec: CheckpointSpec
    staging: str
    seed: int
    profile: Profile
    widths: tuple[int, int]
    corpora: Mapping[str, StagedCorpus]
    earlier: Sequence[Staged] = ()
    pair_sources: Mapping[str, str] = field(default_factory=dict)
    pair_contents: Mapping[str, str] = field(default_factory=dict)
    engine: Engine = field(default_factory=InThisProcess)

    def __call__(self, step: Step[P], *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
        """The step's staged files, in the order of its tables; some may have no rows."""
        return self.engine.call(step, self.staging, *args, **kwargs)

    def sharded(self, step: Step[...], shards: Sequence[dict[str, Any]], **shared: Any) -> list[Staged]:
        """Call a step once per shard, perhaps on other processes; the staged files are in the order of the shards.

        No value depends on another shard, so the results are the same wherever they are computed.

        Args:
            shards: the arguments that differ between calls.
        """
        return self.engine.call_shards(step, self.staging, shards, **shared)

    def settings(self, kind: type[S]) -> S:
        """The profile's settings of a measure."""
        return self.profile.of(kind)

    def drawn(self, settings: MeasureSettings) -> Iterator[tuple[StagedCorpus, Draw]]:
        """The corpora that a measure reads, each with the rows that it draws from it."""
        for name in settings.corpora:
            corpus = self.corpora[name]
            yield corpus, settings.draw_from(name, corpus.rows, self.seed)

    def note(self, text: str) -> Staged:
        """A message for the audit's end."""
        return note(text, self.staging)

    def skipped(self, what: str, error: NotMeasurable) -> Staged:
        """A message for the audit's end about something that could not be measured, and why."""
        return self.note(f"Skipped {what}: {error.happened}")
