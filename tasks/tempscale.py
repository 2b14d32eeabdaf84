"""Does a lower temperature help, as tasks: pick the texts, encode them at each τ, score every arm.

Vectors are staged per side and temperature, so that an interrupted grid continues where it stopped; they are not
published.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from prefect import task

from embaudit.measures.tempscale.tables import TempscaleChoiceRow, TempscaleRow
from embaudit_tasks.corpora import stage_corpus
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, StagedCorpus, checkpoint_of

if TYPE_CHECKING:
    import numpy as np

    from embaudit.checkpoint import Checkpoint, Encoder
    from embaudit.measures.tempscale.task import Task

MEASURE = "tempscale"
# More tokens than any text has: content_ids cuts at a number.
WHOLE = 2**31
MATERIAL_SCHEMA = {"side": "string", "place": "int64", "text": "string", "label": "string", "tokens": "int64"}
VECTOR_SCHEMA = {"place": "int64", "vector": "binary"}
_SCOPE = {"corpus": "string", "corpus_id": "string", "reads": "string", "max_tokens": "int32"}
_BIN = {"bin": "int32", "bin_low": "int64", "bin_high": "int64"}
_DIFFERENCE = dict.fromkeys(("difference", "low", "high"), "float64")


@task(name="ingest retrieval", task_run_name="ingest retrieval from {source}", persist_result=False)
def ingest_judged(source: str, staging: str) -> dict[str, StagedCorpus]:
    """Stage a retrieval collection as its two corpora, by name; a source is always read, since it may have changed."""
    from embaudit.corpora.judged import load_judged

    judged = load_judged(source)
    return {corpus.name: stage_corpus(corpus, staging) for corpus in (judged.documents, judged.queries)}


@task(name="temperature material", task_run_name="texts of {corpus} for the temperatures", **CACHED)
def tempscale_material(
    spec: CheckpointSpec,
    corpus: str,
    paths: Sequence[str],
    limits: Mapping[str, int],
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The texts that a corpus' tasks take, side by side, with their lengths; and whether τ can be set at all.

    Raises:
        NotMeasurable: if the corpus allows no such task.
    """
    from embaudit.warehouse.stage import staged_path, write_rows

    started = time.perf_counter()
    checkpoint = checkpoint_of(spec)
    sides, left_out = _pick(corpus, paths, limits, seed)
    path = staged_path(staging, MEASURE, key, "tempscale_material")
    rows = [
        {"side": side, "place": place, "text": text, "label": label, "tokens": len(checkpoint.content_ids(text, WHOLE))}
        for side, texts in sides.items()
        for place, (text, label) in enumerate(texts)
    ]
    return Staged(
        table="tempscale_material",
        path=str(path),
        rows=write_rows(path, rows, MATERIAL_SCHEMA),
        seconds=time.perf_counter() - started,
        detail={"sides": list(sides), "unsupported": _why_unsupported(checkpoint), "left_out": left_out},
    )


@task(name="encode at temperature", task_run_name="{side} of {corpus} at τ = {tau}", **CACHED)
def tempscale_vectors(
    spec: CheckpointSpec,
    corpus: str,
    side: str,
    material_path: str,
    tau: float,
    in_pieces: bool,
    reads: str,
    key: str,
    staging: str,
) -> Staged:
    """Vectors of one side at one temperature; ``in_pieces``: of its pieces of the configured limit, averaged."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.tempscale import temperature
    from embaudit.warehouse.stage import staged_path, write_rows

    started = time.perf_counter()
    checkpoint = checkpoint_of(spec)
    encoder = Encoder(checkpoint)
    texts = [row["text"] for row in _material(material_path) if row["side"] == side]
    label = f"{corpus}, {side}: pieces averaged" if in_pieces else f"{corpus}, {side}: τ = {tau:g}"
    with tracked(label, len(texts)) as advance:
        if in_pieces:
            vectors = _averaged(encoder, texts, advance)
        else:
            limit = content_limit(checkpoint, reads)
            ids = [checkpoint.with_special_tokens(checkpoint.content_ids(text, limit)) for text in texts]
            with temperature(checkpoint, tau) if tau != 1 else nullcontext():
                vectors = encoder.encode_ids(ids, advance)
    path = staged_path(staging, MEASURE, key, "tempscale_vectors")
    rows = [{"place": i, "vector": row.tobytes()} for i, row in enumerate(vectors.astype(np.float32))]
    return Staged(
        table="tempscale_vectors",
        path=str(path),
        rows=write_rows(path, rows, VECTOR_SCHEMA),
        seconds=time.perf_counter() - started,
        encodes=encoder.texts,
    )


@task(name="compare temperatures", task_run_name="temperatures on {corpus}", **CACHED)
def tempscale_scores(
    spec: CheckpointSpec,
    corpus: str,
    corpus_id: str,
    material_path: str,
    by_tau: Mapping[str, Mapping[str, str]],
    in_pieces: Mapping[str, str],
    unsupported: str | None,
    reads: str,
    settings: Mapping[str, Any],
    seed: int,
    key: str,
    staging: str,
) -> list[Staged]:
    """Tables ``tempscale`` and ``tempscale_choice`` of the tasks of one corpus.

    Args:
        by_tau: τ -> side -> staged vectors.
        in_pieces: side -> staged vectors of averaged pieces.
    """
    from embaudit.measures.tempscale.compare import compare
    from embaudit.warehouse.stage import staged_path, write_rows

    started = time.perf_counter()
    checkpoint = checkpoint_of(spec)
    scope = {
        "corpus": corpus,
        "corpus_id": corpus_id,
        "reads": reads,
        "max_tokens": content_limit(checkpoint, reads) + len(checkpoint.with_special_tokens([])),
    }
    temperatures = {float(tau): _vectors(paths) for tau, paths in by_tau.items()}
    pieces = _vectors(in_pieces)
    rows: list[dict[str, Any]] = []
    choices: list[dict[str, Any]] = []
    tasks = _tasks(corpus, _material(material_path), settings, seed)
    with tracked(f"{corpus}, scores", len(tasks)) as advance:
        for one in tasks:
            found, chosen = compare(
                one, temperatures, pieces, resamples=settings["resamples"], seed=seed, unsupported=unsupported
            )
            rows += [{**asdict(row), **scope} for row in found]
            choices += [{**asdict(choice), **scope} for choice in chosen]
            advance(1)
    paths = {table: staged_path(staging, MEASURE, key, table) for table in ("tempscale", "tempscale_choice")}
    counts = {
        "tempscale": write_rows(paths["tempscale"], rows, TempscaleRow.table.schema),
        "tempscale_choice": write_rows(paths["tempscale_choice"], choices, TempscaleChoiceRow.table.schema),
    }
    seconds = time.perf_counter() - started
    return [
        Staged(table=table, path=str(path), rows=counts[table], seconds=seconds if table == "tempscale" else 0.0)
        for table, path in paths.items()
    ]


def content_limit(checkpoint: Checkpoint, reads: str) -> int:
    """How many of its own tokens are read of a text: as served, or as many as the model has positions for."""
    from embaudit.checkpoint.tokenizer import position_limit

    positions = position_limit(checkpoint.model)
    if reads == "limit" or positions is None:
        return checkpoint.content_limit
    return max(positions - len(checkpoint.with_special_tokens([])), checkpoint.content_limit)


def _pick(
    corpus: str, paths: Sequence[str], limits: Mapping[str, int], seed: int
) -> tuple[dict[str, list[tuple[str, str | None]]], list[str]]:
    """Texts by side, each with its class, its relevant documents or its pair's score; and classes too small to take."""
    from embaudit.corpora.judged import DOCUMENTS, label_of, relevant_of
    from embaudit.measures.tempscale.material import pick_graded, pick_judged, pick_labelled
    from embaudit.warehouse.stage import read_rows

    staged = [read_rows([path]) for path in paths]
    if corpus == DOCUMENTS:
        documents, queries = ([(row["text"], row["label"]) for row in rows] for rows in staged)
        judged = pick_judged(
            [text for text, _ in documents],
            [(text, relevant_of(label)) for text, label in queries],
            limits["documents"],
            limits["queries"],
            seed,
        )
        return {
            "document": [(text, None) for text in judged.documents],
            "query": [(text, label_of(one)) for text, one in zip(judged.queries, judged.relevant, strict=True)],
        }, []
    if "first" in staged[0][0]:
        graded = pick_graded([(row["first"], row["second"], row["score"]) for row in staged[0]], limits["pairs"], seed)
        return {
            "first": [(text, repr(score)) for text, score in zip(graded.firsts, graded.scores, strict=True)],
            "second": [(text, None) for text in graded.seconds],
        }, []
    labelled = pick_labelled([(row["text"], row["label"]) for row in staged[0]], limits["texts"], limits["folds"], seed)
    return {"text": list(zip(labelled.texts, labelled.labels, strict=True))}, list(labelled.left_out)


def _tasks(corpus: str, material: list[dict[str, Any]], settings: Mapping[str, Any], seed: int) -> list[Task]:
    import numpy as np

    from embaudit.corpora.judged import relevant_of
    from embaudit.measures.tempscale.classification import Classification
    from embaudit.measures.tempscale.material import Graded, Judgements, Labelled
    from embaudit.measures.tempscale.retrieval import Retrieval
    from embaudit.measures.tempscale.similarity import Similarity

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
        graded = Graded(texts["first"], texts["second"], tuple(float(label) for label in labels["first"]))
        return [Similarity(graded, np.stack([lengths["first"], lengths["second"]]), seed=seed)]
    labelled = Labelled(texts["text"], tuple(labels["text"]))
    options = {"folds": settings["folds"], "neighbours": settings["neighbours"], "seed": seed}
    return [
        Classification("classification_knn", labelled, lengths["text"], **options),
        Classification("classification_logistic", labelled, lengths["text"], **options),
    ]


def _averaged(encoder: Encoder, texts: Sequence[str], advance: Callable[[int], None]) -> np.ndarray:
    """Text by text in pieces of the configured limit, each encoded alone, weighted by its tokens."""
    import numpy as np

    from embaudit.measures.tempscale.baselines import average_pieces, pieces_of

    checkpoint = encoder.checkpoint
    pieces = [pieces_of(checkpoint.content_ids(text, WHOLE), checkpoint.content_limit) for text in texts]
    flat = [(owner, piece) for owner, own in enumerate(pieces) for piece in own]
    vectors = encoder.encode_ids([checkpoint.with_special_tokens(piece) for _, piece in flat])
    advance(len(texts))
    weights = np.array([max(len(piece), 1) for _, piece in flat], dtype=np.float64)
    return average_pieces(vectors, np.array([owner for owner, _ in flat]), weights)


def _why_unsupported(checkpoint: Checkpoint) -> str | None:
    """Why no temperature can be set; None where one can."""
    from embaudit.anatomy import anatomy_of
    from embaudit.errors import NotMeasurable
    from embaudit.tempscale import support_of

    try:
        support = support_of(anatomy_of(checkpoint.model))
    except NotMeasurable as error:
        return error.happened
    return support.reason if support.kind == "unsupported" else None


def _material(path: str) -> list[dict[str, Any]]:
    from embaudit.warehouse.stage import read_rows

    return read_rows([path])


def _vectors(paths: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Side -> (texts, d) float32."""
    import numpy as np

    from embaudit.warehouse.stage import read_rows

    return {
        side: np.stack([np.frombuffer(row["vector"], dtype=np.float32) for row in read_rows([path])])
        for side, path in paths.items()
    }
