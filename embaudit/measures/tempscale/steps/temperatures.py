"""Whether a lower attention temperature helps, as steps: encode a task's texts at each τ, score every arm.

Vectors are staged per side and temperature, so an interrupted grid continues where it stopped; they are not published.

One τ per layer or head, as steps: which parts can have one, how a trial scores, and what a search found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.checkpoint.tokenizer import position_limit
from embaudit.corpora.downstream import Task
from embaudit.corpora.downstream.labelled import Classification, Clustering
from embaudit.corpora.downstream.material import GradedPairs, Judgements
from embaudit.corpora.downstream.retrieval import Retrieval, Similarity
from embaudit.measures.task_material import VECTOR_SCHEMA, kind_of, read_material, read_vectors, texts_of, vector_rows
from embaudit.measures.tempscale import (
    MEASURE_VERSION,
    Part,
    TempscaleChoiceRow,
    TempscaleRow,
    TempscaleSearchRow,
    TempscaleSettings,
)
from embaudit.measures.tempscale.compare import Found, average_pieces, compare, pieces_of, report
from embaudit.remedies.temperature import Temperatures, plan_scalings, support_of, temperature
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable, UsageError

# More tokens than any text has: ``content_ids`` needs a limit.
WHOLE = 2**31


@dataclass(frozen=True)
class TemperatureSupport:
    """Why τ cannot be set; None if it can."""

    unsupported: str | None


@dataclass(frozen=True)
class BestTaus:
    """Each task's best single τ; None if it has none."""

    single: dict[str, float | None]


@step("tempscale", version=MEASURE_VERSION, tables=("tempscale_support",), name="temperature support")
def tempscale_support(out: Outputs, spec: CheckpointSpec) -> None:
    """Whether τ can be set at all, and if not, why."""
    reason = _why_unsupported(checkpoint_of(spec, as_a_whole=True))
    out.rows("tempscale_support", [{"reason": reason}], {"reason": "string"}, detail=TemperatureSupport(reason))


@step(
    "tempscale",
    version=MEASURE_VERSION,
    tables=("tempscale_vectors",),
    name="encode at temperature",
    run_name="{side} of {corpus} at τ = {tau}",
    not_in_key=("corpus",),
    reads=("reads",),
)
def tempscale_vectors(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: str,
    material: Staged,
    side: str,
    tau: float | dict[Part, list[float]],
    in_pieces: bool,
    settings: TempscaleSettings,
) -> None:
    """Vectors of one side at one temperature, or at one per layer or head.

    Args:
        in_pieces: instead, average the vectors of a text's pieces, each as long as the configured limit, at τ = 1.
    """
    encoder = encoder_of(spec, kind_of(side), as_a_whole=True)
    checkpoint = encoder.checkpoint
    texts = texts_of(material, side)
    label = f"{corpus}, {side}: pieces averaged" if in_pieces else f"{corpus}, {side}: τ = {temperatures_of(tau)}"
    with tracked(label, len(texts)) as advance:
        if in_pieces:
            vectors = _averaged(encoder, texts, advance)
        else:
            ids = encoder.tokenize(texts, content_limit(checkpoint, settings.reads))
            with temperature(checkpoint, temperatures_of(tau)) if tau != 1 else nullcontext():
                vectors = encoder.encode_ids(ids, advance)
    out.rows("tempscale_vectors", vector_rows(vectors), VECTOR_SCHEMA, encodes=encoder.texts)


@step(
    "tempscale",
    version=MEASURE_VERSION,
    tables=(TempscaleRow, TempscaleChoiceRow),
    name="compare temperatures",
    run_name="temperatures on {corpus.name}",
    reads=("reads", "resamples", "folds", "neighbours", "starts"),
)
def tempscale_scores(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    material: Staged,
    by_tau: dict[str, dict[str, Staged]],
    in_pieces: dict[str, Staged],
    unsupported: str | None,
    settings: TempscaleSettings,
    seed: int,
) -> None:
    """Tables ``tempscale`` and ``tempscale_choice`` of the tasks of one corpus.

    Args:
        by_tau: τ -> side -> staged vectors.
        in_pieces: side -> staged vectors of averaged pieces.
    """
    scope = scope_of(checkpoint_of(spec, as_a_whole=True), corpus, settings)
    temperatures = {float(tau): read_vectors(sides) for tau, sides in by_tau.items()}
    pieces = read_vectors(in_pieces)
    rows: list[dict[str, Any]] = []
    choices: list[dict[str, Any]] = []
    tasks = tasks_of(material, settings, seed)
    with tracked(f"{corpus.name}, scores", len(tasks)) as advance:
        for one in tasks:
            found, chosen = compare(
                one, temperatures, pieces, resamples=settings.resamples, seed=seed, unsupported=unsupported
            )
            rows += [{**asdict(row), **scope} for row in found]
            choices += [{**asdict(choice), **scope} for choice in chosen]
            advance(1)
    single = {one["task"]: one["tau"] for one in choices if one["bin"] == 0}
    out.rows(TempscaleRow, rows)
    out.rows(TempscaleChoiceRow, choices, detail=BestTaus(single))


def temperatures_of(tau: float | dict[Part, list[float]]) -> Temperatures:
    """One temperature for the whole model, or one per layer or head."""
    if isinstance(tau, dict):
        ((part, taus),) = tau.items()
        return Temperatures.of(taus) if part == "layer" else Temperatures.per_head(taus)
    return Temperatures.of(tau)


def scope_of(checkpoint: Checkpoint, corpus: StagedCorpus, settings: TempscaleSettings) -> dict[str, Any]:
    """Columns of every row about what was read."""
    return {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "reads": settings.reads,
        "max_tokens": content_limit(checkpoint, settings.reads) + len(checkpoint.with_special_tokens([])),
    }


def content_limit(checkpoint: Checkpoint, reads: str) -> int:
    """How many of a text's own tokens are read: as served, or as many as the model has positions for."""
    positions = position_limit(checkpoint.model)
    if reads == "limit" or positions is None:
        return checkpoint.content_limit
    return max(positions - len(checkpoint.with_special_tokens([])), checkpoint.content_limit)


def tasks_of(staged: Staged, settings: TempscaleSettings, seed: int) -> list[Task]:
    """The tasks of the picked texts of one corpus."""
    material, lengths = read_material(staged)
    if isinstance(material, Judgements):
        return [Retrieval(material, lengths["document"], seed=seed)]
    if isinstance(material, GradedPairs):
        return [Similarity(material, np.stack([lengths["first"], lengths["second"]]), seed=seed)]
    options = {"folds": settings.folds, "neighbours": settings.neighbours, "seed": seed}
    return [
        Classification("classification_knn", material, lengths["text"], **options),
        Classification("classification_logistic", material, lengths["text"], **options),
        Clustering(material, lengths["text"], starts=settings.starts, seed=seed, in_halves=True),
    ]


def _averaged(encoder: Encoder, texts: Sequence[str], advance: Callable[[int], None]) -> np.ndarray:
    """Each text's mean vector over pieces of the configured limit, encoded separately and weighted by their tokens."""
    checkpoint = encoder.checkpoint
    pieces = [pieces_of(checkpoint.content_ids(text, WHOLE), checkpoint.content_limit) for text in texts]
    flat = [(owner, piece) for owner, own in enumerate(pieces) for piece in own]
    vectors = encoder.encode_ids([checkpoint.with_special_tokens(piece) for _, piece in flat])
    advance(len(texts))
    weights = np.array([max(len(piece), 1) for _, piece in flat], dtype=np.float64)
    return average_pieces(vectors, np.array([owner for owner, _ in flat]), weights)


def _why_unsupported(checkpoint: Checkpoint) -> str | None:
    """Why no temperature can be set; None if one can."""
    try:
        support = support_of(anatomy_of(checkpoint.model))
    except NotMeasurable as error:
        return error.happened
    return support.reason if support.kind == "unsupported" else None


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
    anatomy = anatomy_of(checkpoint_of(spec, as_a_whole=True).model)
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
    scope = scope_of(checkpoint_of(spec, as_a_whole=True), corpus, settings)
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
