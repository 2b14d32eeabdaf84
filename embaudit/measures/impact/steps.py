"""The steps of impact: what sticky tokens do to tasks. Tokens -> texts with copies -> scores, for each corpus.

Vectors are staged per side and token, and not published. A half-poisoned collection combines vectors with and without
copies, so nothing more is encoded for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.corpora.downstream import Scored, Vectors
from embaudit.corpora.downstream.material import Judgements
from embaudit.corpora.downstream.retrieval import Similarity
from embaudit.measures.impact import (
    MEASURE_VERSION,
    ImpactDataSetRow,
    ImpactQueryRow,
    ImpactRow,
    ImpactSettings,
    ImpactTokenRow,
)
from embaudit.measures.impact.arms import (
    ArmEffect,
    ArmName,
    Cell,
    CellEffects,
    clean_and_poisoned,
    found_arms,
    poison,
    poisoned_half,
    with_ordinary,
)
from embaudit.measures.run import Run
from embaudit.measures.sticky.inspect import find_token
from embaudit.measures.sticky.steps.sentences import read_tokens
from embaudit.measures.task_material import (
    VECTOR_SCHEMA,
    Material,
    corpora_of,
    kind_of,
    notes_of,
    read_material,
    read_vectors,
    scored_tasks,
    sides_of,
    task_material,
    texts_of,
    vector_rows,
)
from embaudit.steps.progress import tracked
from embaudit.steps.results import NOT_IN_KEY, CheckpointSpec, Staged, StagedCorpus, checkpoint_of, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable, UsageError
from embaudit.words.estimate import Estimate

# Copies are inserted into the texts of a collection, not into its queries.
NEVER_POISONED = "query"
# Stands for a token's name where texts have no copies.
CLEAN = "clean"
# Arm -> token -> side -> staged vectors.
ByArm = dict[str, dict[str, dict[str, Staged]]]
Outcomes = dict[Cell, list[np.ndarray]]
_UNCHANGED = {**Estimate().columns("change"), **Estimate().columns("beyond")}


@dataclass(frozen=True)
class Insertions:
    """Number of texts; by share of them (all, half), how many hold copies, how many copies, and how many were cut."""

    texts: int
    held: dict[str, dict[str, int]]


class PoisonedSide(BaseModel):
    """The texts of one side of a task with copies of a token; unchanged if there is no token."""

    model_config = ConfigDict(frozen=True)

    material: Staged
    side: str
    token_id: int | None
    seed: int
    corpus: Annotated[str, NOT_IN_KEY]
    token: Annotated[str, NOT_IN_KEY]

    @classmethod
    def of(
        cls, material: Staged, side: str, token_id: int | None, names: Mapping[int, str], corpus: str, seed: int
    ) -> PoisonedSide:
        token = CLEAN if token_id is None else names[token_id]
        return cls(material=material, side=side, token_id=token_id, seed=seed, corpus=corpus, token=token)


@step(
    "impact",
    version=MEASURE_VERSION,
    tables=("impact_vectors",),
    name="encode with copies",
    run_name="{one.side} of {one.corpus}, {one.token}",
)
def impact_vectors(out: Outputs, spec: CheckpointSpec, one: PoisonedSide) -> None:
    """Vectors of one side, each text with copies of a token; unchanged texts if there is no token."""
    encoder = encoder_of(spec, kind_of(one.side))
    texts = texts_of(one.material, one.side)
    held: dict[str, dict[str, int]] = {}
    with tracked(f"{one.corpus}, {one.side}: {one.token}", len(texts)) as advance:
        if one.token_id is None:
            vectors = encoder.encode_texts(texts, advance)
        else:
            poisoned = poison(encoder, texts, one.token_id, one.seed)
            vectors = encoder.encode_ids(poisoned.sequences, advance)
            for share, mask in (("all", np.ones(len(texts), dtype=bool)), ("half", poisoned_half(texts, one.seed))):
                copies, shortened = poisoned.copies[mask], poisoned.shortened[mask]
                held[share] = {
                    "held": int((copies > 0).sum()),
                    "copies": int(copies.sum()),
                    "shortened": int(shortened.sum()),
                }
    inserted = Insertions(len(texts), held)
    out.rows("impact_vectors", vector_rows(vectors), VECTOR_SCHEMA, encodes=encoder.texts, detail=inserted)


@step(
    "impact",
    version=MEASURE_VERSION,
    tables=(ImpactRow, ImpactDataSetRow, ImpactTokenRow, ImpactQueryRow),
    name="impact of tokens",
    run_name="impact of tokens on {corpus.name}",
    reads=("resamples", "folds", "neighbours", "starts"),
)
def impact_scores(
    out: Outputs,
    corpus: StagedCorpus,
    material: Staged,
    clean: dict[str, Staged],
    poisoned: ByArm,
    names: dict[str, str],
    settings: ImpactSettings,
    seed: int,
) -> None:
    """Tables ``impact``, ``impact_token``; of several data sets ``impact_data_set``; of a collection ``impact_query``.

    Args:
        clean: side -> staged vectors without copies.
        names: token id -> the token as written in the vocabulary.
    """
    found, lengths = read_material(material)
    tasks = scored_tasks(found, lengths, settings, seed)
    without = read_vectors(clean)
    halves = {side: poisoned_half(texts_of(material, side), seed) for side in without if side != NEVER_POISONED}
    arms = {arm: [{**without, **read_vectors(sides)} for sides in of_arm.values()] for arm, of_arm in poisoned.items()}
    rows: list[dict[str, Any]] = []
    tokens: list[dict[str, Any]] = []
    data_sets: list[dict[str, Any]] = []
    outcomes: dict[str, tuple[np.ndarray, Outcomes]] = {}
    with tracked(f"{corpus.name}, impact", len(tasks)) as advance:
        for metric, task in tasks.items():
            as_is = task.outcomes(without)
            by_cell: Outcomes = {}
            for arm, of_arm in arms.items():
                by_cell[arm, "all"] = [task.outcomes(one) for one in of_arm]
                by_cell[arm, "half"] = [task.outcomes(_mixed(without, one, halves)) for one in of_arm]
            score, effects = clean_and_poisoned(task, as_is, by_cell, settings.resamples, seed)
            outcomes[metric] = as_is, by_cell
            units = task.items.units
            shared = {
                "corpus": corpus.name,
                "corpus_id": corpus.corpus_id,
                "metric": metric,
                "items": len(units),
                "units": len(np.unique(units)),
            }
            rows.append(shared | _clean_row(score, poisoned))
            for (arm, share), cell in effects.items():
                rows.append(shared | _arm_row(arm, share, cell, poisoned[arm]))
                tokens += [
                    {
                        **{"corpus": corpus.name, "metric": metric, "arm": arm, "poisoned": share},
                        **{"token_id": int(token), "token": names[token], **_effect(effect)},
                    }
                    for token, effect in zip(poisoned[arm], cell.tokens, strict=True)
                ]
            data_sets += _by_data_set(corpus.name, metric, task, as_is, by_cell, settings.resamples, seed)
            advance(1)
    out.rows(ImpactRow, rows)
    out.rows(ImpactDataSetRow, data_sets)
    out.rows(ImpactTokenRow, tokens)
    out.rows(ImpactQueryRow, _queries(corpus.name, found, outcomes))


def _by_data_set(
    corpus: str, metric: str, task: Scored, clean: np.ndarray, by_cell: Outcomes, resamples: int, seed: int
) -> Iterator[dict[str, Any]]:
    """The effects within each data set of scored pairs; nothing if there is only one."""
    if not isinstance(task, Similarity):
        return
    for name, (part, places) in task.by_data_set().items():
        inside = {cell: [outcome[places] for outcome in tokens] for cell, tokens in by_cell.items()}
        score, effects = clean_and_poisoned(part, clean[places], inside, resamples, seed)
        units = len(np.unique(part.items.units))
        shared = {"corpus": corpus, "metric": metric, "data_set": name, "items": len(places), "units": units}
        yield shared | {"arm": "clean", "poisoned": "none", "score": score, **_UNCHANGED}
        for (arm, share), cell in effects.items():
            yield shared | {"arm": arm, "poisoned": share, **_effect(cell.arm)}


def _mixed(clean: Vectors, poisoned: Vectors, halves: Mapping[str, np.ndarray]) -> Vectors:
    """Vectors with copies only in the texts selected by ``halves``."""
    return {
        side: np.where(halves[side][:, None], poisoned[side], clean[side]) if side in halves else clean[side]
        for side in clean
    }


def _clean_row(score: float | None, poisoned: ByArm) -> dict[str, Any]:
    return {
        **{"arm": "clean", "poisoned": "none", "tokens": 0, "score": score, "texts": _texts(poisoned)},
        **{"held": 0, "copies": 0.0, "shortened": 0},
        **_UNCHANGED,
    }


def _arm_row(arm: str, share: str, cell: CellEffects, by_token: dict[str, dict[str, Staged]]) -> dict[str, Any]:
    # Numbers and positions of copies, and what is cut, are the same for every token.
    sides = [side.found(Insertions) for side in next(iter(by_token.values())).values()]
    held = [side.held[share] for side in sides]
    texts = sum(one["held"] for one in held)
    return {
        **{"arm": arm, "poisoned": share, "tokens": len(by_token)},
        **{"texts": sum(side.texts for side in sides), "held": texts},
        **{"copies": sum(one["copies"] for one in held) / max(texts, 1)},
        **{"shortened": sum(one["shortened"] for one in held)},
        **_effect(cell.arm),
    }


def _effect(effect: ArmEffect) -> dict[str, float | None]:
    return {"score": effect.score, **effect.change.columns("change"), **(effect.beyond or Estimate()).columns("beyond")}


def _texts(poisoned: ByArm) -> int:
    sides = next(iter(next(iter(poisoned.values())).values())).values()
    return sum(side.found(Insertions).texts for side in sides)


def _queries(
    corpus: str, material: Material, outcomes: Mapping[str, tuple[np.ndarray, Outcomes]]
) -> Iterator[dict[str, Any]]:
    """Each query's metrics in each cell, averaged over the cell's tokens."""
    if not isinstance(material, Judgements):
        return
    as_is = {metric: clean for metric, (clean, _) in outcomes.items()}
    cells = {("clean", "none"): as_is}
    for cell in next(iter(outcomes.values()))[1]:
        cells[cell] = {metric: np.mean(found[cell], axis=0) for metric, (_, found) in outcomes.items()}
    for (arm, share), of_cell in cells.items():
        for place, query in enumerate(material.queries):
            yield {
                **{"corpus": corpus, "query": query, "arm": arm, "poisoned": share},
                **{metric: float(values[place]) for metric, values in of_cell.items()},
            }


def measure(run: Run) -> list[Staged]:
    """Scores of every arm of every task; a corpus that allows no task is left out with a note.

    The tokens are those that were given, or those that the measure ``sticky`` found.
    """
    settings = run.settings(ImpactSettings)
    (vocabulary,) = run(read_tokens, run.spec)
    entries = {row["token_id"]: row for row in read_rows([vocabulary.path])}
    if settings.tokens:
        arms, staged = _given(run, settings.tokens, entries)
    else:
        arms, staged = _found(run, settings.tokens_per_arm)
    arms = with_ordinary(arms, list(entries.values()), settings.tokens_per_arm, run.seed)
    names = {token: entries[token]["token"] for tokens in arms.values() for token in tokens}
    for name in settings.corpora:
        corpora = corpora_of(name, run.corpora)
        try:
            staged += _one_corpus(run, corpora, arms, names)
        except NotMeasurable as error:
            staged.append(run.skipped(f"impact on {name}", error))
    return [vocabulary, *staged]


def _given(
    run: Run, wanted: tuple[str, ...], entries: dict[int, dict[str, Any]]
) -> tuple[dict[ArmName, list[int]], list[Staged]]:
    """The requested tokens, and a note about those that no text can contain.

    Raises:
        UsageError: if the checkpoint has no such token, or no text can contain any of them.
    """
    checkpoint = checkpoint_of(run.spec)
    asked = list(dict.fromkeys(find_token(checkpoint, one) for one in wanted))
    unreachable = [token for token in asked if not entries[token]["is_reachable"]]
    tokens = [token for token in asked if entries[token]["is_reachable"]]
    named = ", ".join(repr(entries[token]["token"]) for token in unreachable)
    if not tokens:
        raise UsageError(
            f"No text can contain {named}: the tokenizer never produces {'it' if len(asked) == 1 else 'them'}.",
            next_step="See what is reachable: embaudit query vocabulary",
        )
    notes = [run.note(f"Left out of the impact: {named}, which no text can contain.")] if unreachable else []
    return {"given": tokens}, notes


def _found(run: Run, tokens_per_arm: int) -> tuple[dict[ArmName, list[int]], list[Staged]]:
    def rows(table: str) -> list[dict[str, Any]]:
        return read_rows(list(dict.fromkeys(part.path for part in run.earlier if part.table == table)))

    arms = found_arms(rows, tokens_per_arm)
    if not arms:
        return arms, [run.note("Impact of ordinary tokens alone: the search found no sticky ones.")]
    return arms, []


def _one_corpus(
    run: Run, corpora: list[StagedCorpus], arms: dict[ArmName, list[int]], names: dict[int, str]
) -> list[Staged]:
    settings, corpus = run.settings(ImpactSettings), corpora[0]
    (material,) = run(task_material, run.spec, corpora, settings, run.seed)
    vectors = untreated_vectors(run, corpus, material, names)
    files = [material, *(part for sides in vectors.values() for part in sides.values())]
    poisoned: ByArm = {arm: {str(token): vectors[str(token)] for token in tokens} for arm, tokens in arms.items()}
    of_tokens = {str(token): name for token, name in names.items()}
    scored = run(impact_scores, corpus, material, vectors[CLEAN], poisoned, of_tokens, settings, run.seed)
    # A corpus without queries has no rows about queries, one data set none about data sets.
    return [*files, *(part for part in scored if part.rows), *notes_of(run, corpora, material, settings)]


def untreated_vectors(
    run: Run, corpus: StagedCorpus, material: Staged, names: Mapping[int, str]
) -> dict[str, dict[str, Staged]]:
    """Vectors of all sides without copies, and, of the sides that may have copies, with each token."""

    def encode(side: str, token: int | None) -> Staged:
        one = PoisonedSide.of(material, side, token, names, corpus.name, run.seed)
        return run(impact_vectors, run.spec, one)[0]

    sides = sides_of(material)
    held = [side for side in sides if side != NEVER_POISONED]
    return {
        CLEAN: {side: encode(side, None) for side in sides},
        **{str(token): {side: encode(side, token) for side in held} for token in names},
    }
