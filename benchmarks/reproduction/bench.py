"""What a stage is given: the checkpoint, the real data, a place for staged steps, and the paper's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.reproduction.engine import Shards
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.precision import widths_of
from embaudit.corpora.records import read_chosen_pairs
from embaudit.measures import MEASURES
from embaudit.measures.listed import load_profile
from embaudit.measures.run import Run
from embaudit.steps.corpora import stage_source
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.words.errors import UsageError

CHECKPOINT = "packaged:all-MiniLM-L6-v2"
SEED = 0
T = TypeVar("T")


@dataclass(frozen=True)
class Bench:
    """One run of the reproduction.

    Attributes:
        out: folder of the stages' figures; staged steps are in its folder ``staging``.
        data: the real data, as its README describes it (``std``, ``sts``, ``wikipedia`` …).
        device: where the model runs, in float32.
        limit: at most so many tokens, pairs and texts, to try it out; None: all.
        processes: how many compute the shards of the published protocol at once.
    """

    out: Path
    data: Path
    device: str = "cpu"
    limit: int | None = None
    processes: int = 1
    checkpoint: str = CHECKPOINT

    @property
    def staging(self) -> str:
        return str((self.out / "staging").absolute())

    @cached_property
    def spec(self) -> CheckpointSpec:
        loaded = load_checkpoint(self.checkpoint, LoadOptions(device=self.device, dtype="float32"))
        return CheckpointSpec(
            reference=self.checkpoint, checkpoint_id=loaded.checkpoint_id, device=self.device, dtype="float32"
        )

    @property
    def encoder(self) -> Encoder:
        return encoder_of(self.spec)

    def most(self, count: int) -> int:
        """So many texts or tokens, or fewer if there is a limit."""
        return count if self.limit is None else min(count, self.limit)

    def file(self, place: str) -> Path:
        """A file or folder of the real data.

        Raises:
            UsageError: if it is not there.
        """
        path = self.data / place
        if not path.exists():
            raise UsageError(
                f"There is no {place} in {self.data}.",
                kept="The stages that are done are kept.",
                next_step="Say where the real data is: --data FOLDER, or leave this stage out with --only.",
            )
        return path

    def run(
        self, corpora: Mapping[str, str] | None = None, pairs: Mapping[str, Path] | None = None, **settings: Any
    ) -> Run:
        """A run of measures with the settings of the profile ``paper``, but for those given.

        Args:
            corpora: sources by name.
            pairs: files of pairs by purpose, for the measure of sticky tokens.
            settings: a dictionary of changes for each measure that has any.
        """
        profile = load_profile("paper")
        if self.limit is not None:
            settings = {**settings, "sticky": {**settings.get("sticky", {}), "limit_tokens": self.limit}}
        changed = {
            name: MEASURES[name].settings.model_validate({**getattr(profile, name).model_dump(), **changes})
            for name, changes in settings.items()
        }
        resolved = self.encoder.checkpoint
        staged = [
            corpus for name, source in (corpora or {}).items() for corpus in stage_source(name, source, self.staging)
        ]
        sources = {purpose: str(path) for purpose, path in (pairs or {}).items()}
        return Run(
            spec=self.spec,
            staging=self.staging,
            seed=SEED,
            profile=profile.model_copy(update=changed),
            widths=widths_of(resolved.resolved.folder / resolved.recipe.transformer_path),
            corpora={corpus.name: corpus for corpus in staged},
            pair_sources=sources,
            pair_contents={purpose: read_chosen_pairs(Path(path)).content for purpose, path in sources.items()},
            engine=Shards(self.processes),
        )


def rows_of(staged: Sequence[Staged], table: str) -> list[dict[str, Any]]:
    """All rows that were staged for a table."""
    return read_rows([part.path for part in staged if part.table == table and part.rows])


def only(rows: Sequence[T]) -> T:
    (row,) = rows
    return row
