"""The texts of a corpus's tasks as a step: picked once, by side, with the label or score of each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.corpora.downstream import Scored
from embaudit.corpora.downstream.labelled import Classification, Clustering
from embaudit.corpora.downstream.material import (
    MIN_ITEMS,
    GradedPairs,
    Judgements,
    LabelledTexts,
    pick_graded,
    pick_judged,
    pick_labelled,
)
from embaudit.corpora.downstream.retrieval import METRICS, Retrieval, Similarity
from embaudit.corpora.golden import GOLDEN, GOLDEN_QUERIES
from embaudit.corpora.judged import DOCUMENTS, QUERIES, label_of, own_of, relevant_of
from embaudit.measures.impact import ImpactSettings
from embaudit.measures.measure import DownstreamSettings, Size
from embaudit.measures.run import Run
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step

MATERIAL_SCHEMA = {"side": "string", "place": "int64", "text": "string", "label": "string", "tokens": "int64"}
VECTOR_SCHEMA = {"place": "int64", "vector": "binary"}
Material = LabelledTexts | Judgements | GradedPairs
# The corpora of documents, and those of their queries.
QUERIES_OF = {DOCUMENTS: QUERIES, GOLDEN: GOLDEN_QUERIES}
# Increase this when other texts are picked.
VERSION = 2


@dataclass(frozen=True)
class MaterialFound:
    """The sides of the picked texts, and the classes or data sets that were too small."""

    sides: list[str]
    left_out: list[str]


@step(
    "downstream",
    version=VERSION,
    tables=("task_material",),
    name="texts of tasks",
    run_name="texts of {corpora[0].name} for its tasks",
    reads=("texts", "documents", "queries", "pairs", "folds"),
)
def task_material(
    out: Outputs, spec: CheckpointSpec, corpora: list[StagedCorpus], settings: DownstreamSettings, seed: int
) -> None:
    """The texts that a corpus's tasks use, by side, with their lengths.

    Args:
        corpora: the corpus; for a retrieval collection, its documents and queries.

    Raises:
        NotMeasurable: if the corpus allows no task.
    """
    sides, left_out = _pick(corpora, settings, seed)
    rows = [
        {"side": side, "place": place, "text": text, "label": label, "tokens": tokens}
        for side, texts in sides.items()
        for place, ((text, label), tokens) in enumerate(zip(texts, _own_tokens(spec, side, texts), strict=True))
    ]
    out.rows("task_material", rows, MATERIAL_SCHEMA, detail=MaterialFound(list(sides), left_out))


def sides_of(material: Staged) -> list[str]:
    """The sides of the picked texts: query and document, first and second, or text."""
    return material.found(MaterialFound).sides


def corpora_of(name: str, ingested: Mapping[str, StagedCorpus]) -> list[StagedCorpus]:
    """The staged corpora that a task reads: documents come with their queries."""
    return [ingested[one] for one in (name, QUERIES_OF.get(name, "")) if one]


def notes_of(run: Run, corpora: Sequence[StagedCorpus], material: Staged, settings: DownstreamSettings) -> list[Staged]:
    """A note for the audit's end if classes or data sets had to be left out."""
    found, corpus = material.found(MaterialFound), corpora[0].name
    left_out = found.left_out
    if not left_out:
        return []
    named = ", ".join(left_out[:5]) + (" …" if len(left_out) > 5 else "")
    what = (
        f"data sets of fewer than {MIN_ITEMS} scored pairs, or with one score for all"
        if "first" in found.sides
        else f"classes of fewer than {2 * settings.folds} texts"
    )
    return [run.note(f"Tasks on {corpus} leave out {what}: {named}.")]


def read_material(material: Staged) -> tuple[Material, dict[str, np.ndarray]]:
    """The picked texts, and by side the number of tokens of each text before truncation, (texts,)."""
    rows = read_rows([material.path])
    sides = {side: [row for row in rows if row["side"] == side] for side in sides_of(material)}
    texts = {side: tuple(row["text"] for row in of_side) for side, of_side in sides.items()}
    labels = {side: [row["label"] for row in of_side] for side, of_side in sides.items()}
    lengths = {side: np.array([row["tokens"] for row in of_side]) for side, of_side in sides.items()}
    if "query" in sides:
        relevant, own = tuple(map(relevant_of, labels["query"])), tuple(map(own_of, labels["query"]))
        return Judgements(texts["document"], texts["query"], relevant, own), lengths
    if "first" in sides:
        scores, data_sets = tuple(map(float, labels["first"])), tuple(filter(None, labels["second"]))
        return GradedPairs(texts["first"], texts["second"], scores, data_sets), lengths
    return LabelledTexts(texts["text"], tuple(labels["text"])), lengths


def texts_of(material: Staged, side: str) -> list[str]:
    """The texts of one side, in their order."""
    return [row["text"] for row in read_rows([material.path]) if row["side"] == side]


def scored_tasks(
    material: Material, lengths: Mapping[str, np.ndarray], settings: ImpactSettings, seed: int
) -> dict[str, Scored]:
    """Metric -> the task whose score it is."""
    if isinstance(material, Judgements):
        return {metric: Retrieval(material, lengths["document"], seed=seed, metric=metric) for metric in METRICS}
    if isinstance(material, GradedPairs):
        return {"spearman": Similarity(material, np.stack([lengths["first"], lengths["second"]]), seed=seed)}
    options = {"folds": settings.folds, "neighbours": settings.neighbours, "seed": seed}
    return {
        "accuracy": Classification("classification_knn", material, lengths["text"], **options),
        "v_measure": Clustering(material, lengths["text"], starts=settings.starts, seed=seed),
    }


def vector_rows(vectors: np.ndarray) -> Iterable[dict[str, object]]:
    """Rows of ``VECTOR_SCHEMA`` from (texts, d) vectors."""
    return ({"place": i, "vector": row.tobytes()} for i, row in enumerate(vectors.astype(np.float32)))


def read_vectors(sides: Mapping[str, Staged]) -> dict[str, np.ndarray]:
    """Side -> (texts, d) float32."""
    return {
        side: np.stack([np.frombuffer(row["vector"], dtype=np.float32) for row in read_rows([part.path])])
        for side, part in sides.items()
    }


def kind_of(side: str) -> TextKind:
    """The kind of a side's texts: queries and documents have their own prompts; both sides of a pair are texts."""
    return "query" if side == "query" else "document" if side == "document" else "text"


def _own_tokens(spec: CheckpointSpec, side: str, texts: Sequence[tuple[str, str | None]]) -> list[int]:
    return [len(ids) for ids in encoder_of(spec, kind_of(side)).own_ids([text for text, _ in texts])]


def _pick(
    corpora: Sequence[StagedCorpus], settings: DownstreamSettings, seed: int
) -> tuple[dict[str, list[tuple[str, str | None]]], list[str]]:
    """Texts by side, and the classes or data sets that are too small to use.

    A text comes with its class, its judged documents, or (first side) its pair's score and (second side) data set.
    """
    staged = [read_rows([corpus.content_path]) for corpus in corpora]
    if corpora[0].name == DOCUMENTS:
        documents, queries = ([(row["text"], row["label"]) for row in rows] for rows in staged)
        judged = pick_judged(
            [text for text, _ in documents],
            [(text, relevant_of(label)) for text, label in queries],
            _most(settings.documents),
            _most(settings.queries),
            seed,
            [own_of(label) for _, label in queries],
        )
        labels = map(label_of, judged.relevant, judged.own)
        return {
            "document": [(text, None) for text in judged.documents],
            "query": list(zip(judged.queries, labels, strict=True)),
        }, []
    if "first" in staged[0][0]:
        graded = pick_graded(
            [(row["first"], row["second"], row["score"]) for row in staged[0]],
            settings.pairs,
            seed,
            [row["data_set"] for row in staged[0]],
        )
        data_sets = graded.data_sets or (None,) * len(graded.seconds)
        return {
            "first": [(text, repr(score)) for text, score in zip(graded.firsts, graded.scores, strict=True)],
            "second": list(zip(graded.seconds, data_sets, strict=True)),
        }, list(graded.left_out)
    labelled = pick_labelled([(row["text"], row["label"]) for row in staged[0]], settings.texts, settings.folds, seed)
    return {"text": list(zip(labelled.texts, labelled.labels, strict=True))}, list(labelled.left_out)


def _most(size: Size) -> int:
    return sys.maxsize if size == "all" else size
