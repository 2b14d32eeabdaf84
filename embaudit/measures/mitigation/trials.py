"""What helps against sticky tokens, as steps: vectors under each remedy, losses, and scores of tasks.

Vectors without a remedy are those of ``impact``, encoded once for both measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.corpora.downstream import PairedScores, Vectors, unit_rows
from embaudit.measures.impact.arms import poison
from embaudit.measures.impact.steps import CLEAN, PoisonedSide
from embaudit.measures.mitigation import (
    MEASURE_VERSION,
    METRICS,
    NONE,
    MitigationLossRow,
    MitigationRow,
    MitigationSettings,
    MitigationTokenRow,
    Remedy,
)
from embaudit.measures.mitigation.remedies import (
    SPACES,
    Inserted,
    Transform,
    encode_with,
    fitted,
    insert_all,
    insert_with,
    losses,
)
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.verdicts import treatable
from embaudit.measures.sticky.tables import SEVERITY_FROM_LOSS
from embaudit.measures.task_material import (
    VECTOR_SCHEMA,
    kind_of,
    read_material,
    read_vectors,
    scored_tasks,
    texts_of,
    vector_rows,
)
from embaudit.statistics import exact_share
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

# Side -> staged vectors; ``Treated`` has them for clean texts, and for texts with each token by its id.
Sides = dict[str, Staged]
Treated = dict[str, Sides]
# A token with at least this loss is moderate or strong.
LOSSY = min(least for least, name in SEVERITY_FROM_LOSS if name in ("strong", "moderate"))


class MeasuredTokens(BaseModel):
    """Tokens whose losses are measured.

    Attributes:
        watched: the worst tokens, token id -> token.
        controls: ordinary tokens.
        drawn: random tokens of the vocabulary.
    """

    model_config = ConfigDict(frozen=True)

    watched: dict[str, str]
    controls: list[int]
    drawn: list[int]


@dataclass(frozen=True)
class TreatedTexts:
    """Number of texts that have a severe token, and so other vectors under a remedy."""

    touched: int


@step(
    "mitigation",
    version=MEASURE_VERSION,
    tables=("mitigated_vectors",),
    name="encode under a remedy",
    run_name="{one.side} of {one.corpus}, {one.token}, {remedy}",
)
def mitigated_vectors(
    out: Outputs, spec: CheckpointSpec, one: PoisonedSide, untreated: Staged, severe: list[int], remedy: Remedy
) -> None:
    """Vectors of one side under a remedy; texts without a severe token keep their vectors."""
    encoder = encoder_of(spec, kind_of(one.side), as_a_whole=True)
    texts, token_id = texts_of(one.material, one.side), one.token_id
    sequences = encoder.tokenize(texts) if token_id is None else poison(encoder, texts, token_id, one.seed).sequences
    ids = treatable(encoder.checkpoint, severe)
    held = [place for place, sequence in enumerate(sequences) if not ids.isdisjoint(sequence)]
    vectors = read_vectors({"": untreated})[""].copy()
    with tracked(f"{one.corpus}, {one.side}: {one.token}, {remedy}", len(held)) as advance:
        if held:
            vectors[held] = encode_with(encoder, [sequences[place] for place in held], ids, remedy)
        advance(len(held))
    treated = TreatedTexts(len(held))
    out.rows("mitigated_vectors", vector_rows(vectors), VECTOR_SCHEMA, encodes=encoder.texts, detail=treated)


@step(
    "mitigation",
    version=MEASURE_VERSION,
    tables=(MitigationRow,),
    name="tasks under remedies",
    run_name="tasks under remedies, {corpus.name}",
    reads=("resamples", "folds", "neighbours", "starts"),
)
def mitigation_scores(
    out: Outputs,
    corpus: StagedCorpus,
    material: Staged,
    by_remedy: dict[str, Treated],
    spaces: list[Remedy],
    fitted_on: list[Staged],
    settings: MitigationSettings,
    seed: int,
) -> None:
    """Table ``mitigation``.

    Args:
        by_remedy: ``none`` first, then the remedies under which texts were encoded again.
        spaces: the remedies that transform the vectors of ``none``.
        fitted_on: vectors of clean texts of all corpora, on which ``spaces`` are fitted.
    """
    found, lengths = read_material(material)
    tasks = {name: task for name, task in scored_tasks(found, lengths, settings, seed).items() if name in METRICS}
    transforms = _fitted(spaces, fitted_on)
    vectors = {remedy: _arms(treated) for remedy, treated in by_remedy.items()}
    untreated = vectors[NONE]
    vectors |= {
        remedy: [{side: transform(unit_rows(rows)) for side, rows in arm.items()} for arm in untreated]
        for remedy, transform in transforms.items()
    }
    sides = by_remedy[NONE][CLEAN]
    texts = sum(part.rows for part in sides.values())
    touched = dict.fromkeys(vectors, texts) | {NONE: 0}
    for remedy, treated in by_remedy.items():
        if remedy != NONE:
            touched[remedy] = sum(part.found(TreatedTexts).touched for part in treated[CLEAN].values())
    rows: list[dict[str, Any]] = []
    with tracked(f"{corpus.name}, remedies", len(tasks)) as advance:
        for metric, task in tasks.items():
            arms = [task.outcomes(arm) for of_remedy in vectors.values() for arm in of_remedy]
            paired = PairedScores(task, arms, settings.resamples, seed)
            count = len(untreated)
            for place, remedy in enumerate(vectors):
                clean, poisoned = place * count, range(place * count + 1, (place + 1) * count)
                is_none = remedy == NONE
                changes = (
                    Estimate(None) if is_none else paired.difference([clean], [0]),
                    Estimate(None) if is_none else paired.difference(poisoned, range(1, count)),
                )
                rows.append(
                    {
                        **{"corpus": corpus.name, "corpus_id": corpus.corpus_id, "metric": metric, "remedy": remedy},
                        **{"clean": paired.score([clean]), **changes[0].columns("clean_change")},
                        **{"poisoned": paired.score(poisoned), **changes[1].columns("poisoned_change")},
                        **{"tokens": count - 1, "items": len(task.items.units)},
                        **{"units": len(np.unique(task.items.units)), "texts": texts, "touched": touched[remedy]},
                    }
                )
            advance(1)
    out.rows(MitigationRow, rows)


@step(
    "mitigation",
    version=MEASURE_VERSION,
    tables=(MitigationLossRow, MitigationTokenRow),
    name="losses under remedies",
    reads=("draws", "resamples"),
)
def mitigation_losses(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    severe: list[int],
    measured: MeasuredTokens,
    remedies: list[Remedy],
    fitted_on: list[Staged],
    settings: MitigationSettings,
) -> None:
    """Tables ``mitigation_loss`` and ``mitigation_token``."""
    encoder = encoder_of(spec, as_a_whole=True)
    points = sample.points(encoder, "validation", draws=settings.draws)
    ids = treatable(encoder.checkpoint, severe)
    watched, drawn = measured.watched, measured.drawn
    tokens = np.array(sorted({*map(int, watched), *measured.controls, *drawn}), dtype=np.int64)
    transforms = _fitted(remedies, fitted_on)
    with tracked("losses under remedies", len(remedies) + 1) as advance:
        untreated = insert_all(encoder, points, tokens)
        advance(1)
        by_remedy: dict[str, tuple[Inserted, Transform | None]] = {NONE: (untreated, None)}
        for remedy in remedies:
            if remedy in transforms:
                by_remedy[remedy] = untreated, transforms[remedy]
            else:
                by_remedy[remedy] = insert_with(encoder, points, untreated, ids, remedy), None
            advance(1)
    found = losses(points, by_remedy, list(map(int, watched)), measured.controls, settings.resamples, sample.seed)
    random = np.isin(tokens, drawn)
    rows, of_tokens = [], []
    for name, lost in found.items():
        lossy = int((lost.losses[random] >= LOSSY).sum())
        share = Estimate(lossy / len(drawn), *exact_share(lossy, len(drawn)))
        rows.append(
            {
                **{"remedy": name, **lost.mean.columns(), "severe": len(ids), "tokens": len(watched)},
                **{"draws": len(points.draws), "copies": sample.copies},
                "fitted_on": sum(part.rows for part in fitted_on) if name in transforms else None,
                **{"vocabulary": len(drawn), "lossy": lossy, **share.columns("lossy_share")},
            }
        )
        of_tokens += [
            {"remedy": name, "token_id": token, "token": watched[str(token)], **loss.columns()}
            for token, loss in lost.tokens.items()
        ]
    out.rows(MitigationLossRow, rows, encodes=encoder.texts)
    out.rows(MitigationTokenRow, of_tokens)


def possible_remedies(spec: CheckpointSpec, severe: list[int], remedies: list[Remedy], texts: int) -> dict[Remedy, str]:
    """The remedies that are impossible with this checkpoint, each with the reason.

    Args:
        texts: number of clean texts that a change of the output space is fitted on.
    """
    encoder = encoder_of(spec, as_a_whole=True)
    ids = treatable(encoder.checkpoint, severe)
    one = [encoder.checkpoint.with_special_tokens([min(ids)])]
    refused: dict[Remedy, str] = {}
    for remedy in remedies:
        try:
            if remedy in SPACES:
                fitted(remedy, np.eye(texts, encoder.checkpoint.dimension))
            else:
                encode_with(encoder, one, ids, remedy)
        except NotMeasurable as error:
            refused[remedy] = error.happened
    return refused


def _fitted(remedies: list[Any], fitted_on: list[Staged]) -> dict[str, Transform]:
    wanted = [remedy for remedy in remedies if remedy in SPACES]
    if not wanted:
        return {}
    clean = unit_rows(np.concatenate([read_vectors({"": part})[""] for part in fitted_on]))
    return {remedy: fitted(remedy, clean) for remedy in wanted}


def _arms(treated: Treated) -> list[Vectors]:
    """Clean vectors of all sides first, then those with each token; a side without copies keeps its clean vectors."""
    clean = read_vectors(treated[CLEAN])
    return [clean, *({**clean, **read_vectors(sides)} for token, sides in treated.items() if token != CLEAN)]
