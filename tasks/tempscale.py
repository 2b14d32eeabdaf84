"""Does a lower temperature help, as steps: pick the texts, encode them at each τ, score every arm.

Vectors are staged per side and temperature, so that an interrupted grid continues where it stopped; they are not
published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import numpy as np

from embaudit.anatomy import anatomy_of
from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.tokenizer import position_limit
from embaudit.corpora.judged import DOCUMENTS, label_of, relevant_of
from embaudit.errors import NotMeasurable
from embaudit.measures.tempscale import MEASURE_VERSION
from embaudit.measures.tempscale.baselines import average_pieces, pieces_of
from embaudit.measures.tempscale.classification import Classification
from embaudit.measures.tempscale.compare import compare
from embaudit.measures.tempscale.material import (
    GradedPairs,
    Judgements,
    LabelledTexts,
    pick_graded,
    pick_judged,
    pick_labelled,
)
from embaudit.measures.tempscale.retrieval import Retrieval
from embaudit.measures.tempscale.settings import TempscaleSettings
from embaudit.measures.tempscale.similarity import Similarity
from embaudit.measures.tempscale.tables import TempscaleChoiceRow, TempscaleRow
from embaudit.measures.tempscale.task import Task
from embaudit.tempscale import support_of, temperature
from embaudit.warehouse.stage import read_rows
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of, encoder_of
from embaudit_tasks.steps import Outputs, step

# More tokens than any text has: content_ids cuts at a number.
WHOLE = 2**31
MATERIAL_SCHEMA = {"side": "string", "place": "int64", "text": "string", "label": "string", "tokens": "int64"}
VECTOR_SCHEMA = {"place": "int64", "vector": "binary"}


@step(
    "tempscale",
    version=MEASURE_VERSION,
    tables=("tempscale_material",),
    name="temperature material",
    run_name="texts of {corpora[0].name} for the temperatures",
    reads=("texts", "documents", "queries", "pairs", "folds"),
)
def tempscale_material(
    out: Outputs, spec: CheckpointSpec, corpora: list[StagedCorpus], settings: TempscaleSettings, seed: int
) -> None:
    """The texts that a corpus' tasks take, side by side, with their lengths; and whether τ can be set at all.

    Args:
        corpora: the corpus; for a collection of documents its queries too.

    Raises:
        NotMeasurable: if the corpus allows no such task.
    """
    checkpoint = checkpoint_of(spec)
    sides, left_out = _pick(corpora, settings, seed)
    rows = [
        {"side": side, "place": place, "text": text, "label": label, "tokens": len(checkpoint.content_ids(text, WHOLE))}
        for side, texts in sides.items()
        for place, (text, label) in enumerate(texts)
    ]
    detail = {"sides": list(sides), "unsupported": _why_unsupported(checkpoint), "left_out": left_out}
    out.rows("tempscale_material", rows, MATERIAL_SCHEMA, detail=detail)


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
    tau: float,
    in_pieces: bool,
    settings: TempscaleSettings,
) -> None:
    """Vectors of one side at one temperature; ``in_pieces``: of its pieces of the configured limit, averaged."""
    encoder = encoder_of(spec)
    checkpoint = encoder.checkpoint
    texts = [row["text"] for row in read_rows([material.path]) if row["side"] == side]
    label = f"{corpus}, {side}: pieces averaged" if in_pieces else f"{corpus}, {side}: τ = {tau:g}"
    with tracked(label, len(texts)) as advance:
        if in_pieces:
            vectors = _averaged(encoder, texts, advance)
        else:
            limit = content_limit(checkpoint, settings.reads)
            ids = [checkpoint.with_special_tokens(checkpoint.content_ids(text, limit)) for text in texts]
            with temperature(checkpoint, tau) if tau != 1 else nullcontext():
                vectors = encoder.encode_ids(ids, advance)
    rows = [{"place": i, "vector": row.tobytes()} for i, row in enumerate(vectors.astype(np.float32))]
    out.rows("tempscale_vectors", rows, VECTOR_SCHEMA, encodes=encoder.texts)


@step(
    "tempscale",
    version=MEASURE_VERSION,
    tables=(TempscaleRow, TempscaleChoiceRow),
    name="compare temperatures",
    run_name="temperatures on {corpus.name}",
    reads=("reads", "resamples", "folds", "neighbours"),
)
def tempscale_scores(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    material: Staged,
    by_tau: dict[str, dict[str, Staged]],
    in_pieces: dict[str, Staged],
    settings: TempscaleSettings,
    seed: int,
) -> None:
    """Tables ``tempscale`` and ``tempscale_choice`` of the tasks of one corpus.

    Args:
        by_tau: τ -> side -> staged vectors.
        in_pieces: side -> staged vectors of averaged pieces.
    """
    checkpoint = checkpoint_of(spec)
    scope = {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "reads": settings.reads,
        "max_tokens": content_limit(checkpoint, settings.reads) + len(checkpoint.with_special_tokens([])),
    }
    temperatures = {float(tau): _vectors(sides) for tau, sides in by_tau.items()}
    pieces, unsupported = _vectors(in_pieces), material.detail["unsupported"]
    rows: list[dict[str, Any]] = []
    choices: list[dict[str, Any]] = []
    tasks = _tasks(read_rows([material.path]), settings, seed)
    with tracked(f"{corpus.name}, scores", len(tasks)) as advance:
        for one in tasks:
            found, chosen = compare(
                one, temperatures, pieces, resamples=settings.resamples, seed=seed, unsupported=unsupported
            )
            rows += [{**asdict(row), **scope} for row in found]
            choices += [{**asdict(choice), **scope} for choice in chosen]
            advance(1)
    out.rows(TempscaleRow, rows)
    out.rows(TempscaleChoiceRow, choices)


def content_limit(checkpoint: Checkpoint, reads: str) -> int:
    """How many of its own tokens are read of a text: as served, or as many as the model has positions for."""
    positions = position_limit(checkpoint.model)
    if reads == "limit" or positions is None:
        return checkpoint.content_limit
    return max(positions - len(checkpoint.with_special_tokens([])), checkpoint.content_limit)


def _pick(
    corpora: Sequence[StagedCorpus], settings: TempscaleSettings, seed: int
) -> tuple[dict[str, list[tuple[str, str | None]]], list[str]]:
    """Texts by side, each with its class, its relevant documents or its pair's score; and classes too small to take."""
    staged = [read_rows([corpus.content_path]) for corpus in corpora]
    if corpora[0].name == DOCUMENTS:
        documents, queries = ([(row["text"], row["label"]) for row in rows] for rows in staged)
        judged = pick_judged(
            [text for text, _ in documents],
            [(text, relevant_of(label)) for text, label in queries],
            settings.documents,
            settings.queries,
            seed,
        )
        return {
            "document": [(text, None) for text in judged.documents],
            "query": [(text, label_of(one)) for text, one in zip(judged.queries, judged.relevant, strict=True)],
        }, []
    if "first" in staged[0][0]:
        graded = pick_graded([(row["first"], row["second"], row["score"]) for row in staged[0]], settings.pairs, seed)
        return {
            "first": [(text, repr(score)) for text, score in zip(graded.firsts, graded.scores, strict=True)],
            "second": [(text, None) for text in graded.seconds],
        }, []
    labelled = pick_labelled([(row["text"], row["label"]) for row in staged[0]], settings.texts, settings.folds, seed)
    return {"text": list(zip(labelled.texts, labelled.labels, strict=True))}, list(labelled.left_out)


def _tasks(material: list[dict[str, Any]], settings: TempscaleSettings, seed: int) -> list[Task]:
    sides: dict[str, list[dict[str, Any]]] = {}
    for row in material:
        sides.setdefault(row["side"], []).append(row)
    texts = {side: tuple(row["text"] for row in rows) for side, rows in sides.items()}
    lengths = {side: np.array([row["tokens"] for row in rows]) for side, rows in sides.items()}
    labels = {side: [row["label"] for row in rows] for side, rows in sides.items()}
    if "query" in sides:
        relevant = tuple(relevant_of(label) for label in labels["query"])
        return [Retrieval(Judgements(texts["document"], texts["query"], relevant), lengths["document"], seed=seed)]
    if "first" in sides:
        graded = GradedPairs(texts["first"], texts["second"], tuple(float(label) for label in labels["first"]))
        return [Similarity(graded, np.stack([lengths["first"], lengths["second"]]), seed=seed)]
    labelled = LabelledTexts(texts["text"], tuple(labels["text"]))
    options = {"folds": settings.folds, "neighbours": settings.neighbours, "seed": seed}
    return [
        Classification("classification_knn", labelled, lengths["text"], **options),
        Classification("classification_logistic", labelled, lengths["text"], **options),
    ]


def _averaged(encoder: Encoder, texts: Sequence[str], advance: Callable[[int], None]) -> np.ndarray:
    """Text by text in pieces of the configured limit, each encoded alone, weighted by its tokens."""
    checkpoint = encoder.checkpoint
    pieces = [pieces_of(checkpoint.content_ids(text, WHOLE), checkpoint.content_limit) for text in texts]
    flat = [(owner, piece) for owner, own in enumerate(pieces) for piece in own]
    vectors = encoder.encode_ids([checkpoint.with_special_tokens(piece) for _, piece in flat])
    advance(len(texts))
    weights = np.array([max(len(piece), 1) for _, piece in flat], dtype=np.float64)
    return average_pieces(vectors, np.array([owner for owner, _ in flat]), weights)


def _why_unsupported(checkpoint: Checkpoint) -> str | None:
    """Why no temperature can be set; None where one can."""
    try:
        support = support_of(anatomy_of(checkpoint.model))
    except NotMeasurable as error:
        return error.happened
    return support.reason if support.kind == "unsupported" else None


def _vectors(sides: Mapping[str, Staged]) -> dict[str, np.ndarray]:
    """Side -> (texts, d) float32."""
    return {
        side: np.stack([np.frombuffer(row["vector"], dtype=np.float32) for row in read_rows([part.path])])
        for side, part in sides.items()
    }
