"""One τ per layer or head, as steps: which parts can have one, how a trial scores, and what a search found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.measures.task_material import read_vectors
from embaudit.measures.tempscale import MEASURE_VERSION, TempscaleSettings
from embaudit.measures.tempscale.search import Found, Part, report
from embaudit.measures.tempscale.steps.temperatures import scope_of, tasks_of, temperatures_of
from embaudit.measures.tempscale.tables import TempscaleSearchRow
from embaudit.remedies.temperature import plan_scalings
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable, UsageError


@dataclass(frozen=True)
class PartSupport:
    """Number of layers or heads; why they cannot have their own τ."""

    parts: int
    refused: str | None


@dataclass(frozen=True)
class TrialScores:
    """Each task's score; None if undefined."""

    scores: dict[str, float | None]


@step("tempscale", version=MEASURE_VERSION, tables=("tempscale_parts",), name="parts with a temperature")
def tempscale_parts(out: Outputs, spec: CheckpointSpec, part: Part) -> None:
    """Number of layers or heads, and if they cannot have their own τ, why."""
    anatomy = anatomy_of(checkpoint_of(spec).model)
    parts = len(anatomy.layers) if part == "layer" else anatomy.heads
    refused = None
    try:
        # Parts that share weights cannot have different τ.
        plan_scalings(anatomy, temperatures_of({part: [1 + place / parts for place in range(parts)]}))
    except (NotMeasurable, UsageError) as error:
        refused = error.happened
    support = PartSupport(parts, refused)
    out.rows("tempscale_parts", [asdict(support)], {"parts": "int64", "refused": "string"}, detail=support)


@step(
    "tempscale",
    version=MEASURE_VERSION,
    tables=("tempscale_trial",),
    name="score a trial",
    run_name="temperatures tried on {corpus}",
    not_in_key=("corpus",),
    reads=("folds", "neighbours", "starts"),
)
def tempscale_trial(
    out: Outputs, corpus: str, material: Staged, vectors: dict[str, Staged], settings: TempscaleSettings, seed: int
) -> None:
    """Each task's score on the choose half, which a search may see."""
    given = read_vectors(vectors)
    scores = {
        one.name: one.score(one.outcomes(given), ~one.items.is_report) for one in tasks_of(material, settings, seed)
    }
    rows = [{"task": task, "score": score} for task, score in scores.items()]
    out.rows("tempscale_trial", rows, {"task": "string", "score": "float64"}, detail=TrialScores(scores))


@step(
    "tempscale",
    version=MEASURE_VERSION,
    tables=(TempscaleSearchRow,),
    name="temperatures by part",
    run_name="temperatures by part on {corpus.name}",
    reads=("reads", "resamples", "folds", "neighbours", "starts"),
)
def tempscale_searched(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    material: Staged,
    found: list[dict[str, Any]],
    settings: TempscaleSettings,
    seed: int,
) -> None:
    """Table ``tempscale_search`` of the tasks of one corpus.

    Args:
        found: for each search, ``task``, ``part``, ``tau``, ``taus``, ``trials``, and ``vectors``: staged vectors by
            side at τ = 1, at the single ``tau``, and at ``taus``.
    """
    scope = scope_of(checkpoint_of(spec), corpus, settings)
    tasks = {one.name: one for one in tasks_of(material, settings, seed)}
    rows = []
    for one in found:
        task = tasks[one["task"]]
        untouched, single, several = (task.outcomes(read_vectors(sides)) for sides in one["vectors"])
        row = report(
            task,
            one["part"],
            one["tau"],
            Found(tuple(one["taus"]), one["trials"]),
            (untouched, single, several),
            resamples=settings.resamples,
            seed=seed,
        )
        rows.append({**asdict(row), **scope})
    out.rows(TempscaleSearchRow, rows)
