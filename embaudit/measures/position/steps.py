"""Position as a step: the evidence of a collection's queries is moved through documents of one length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.measures.collection import Searched, best_of, collection_of, is_written, read_collection, start_of
from embaudit.measures.position import (
    ALONE,
    BEYOND,
    DEPTHS,
    MEASURE_VERSION,
    START,
    PositionRow,
    PositionSettings,
    PositionSummaryRow,
)
from embaudit.measures.run import Run
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

if TYPE_CHECKING:
    from embaudit.checkpoint import Encoder
    from embaudit.measures.position.depths import Duel

SEED = 0


@step(
    "position",
    version=MEASURE_VERSION,
    tables=(PositionRow, PositionSummaryRow),
    name="position of evidence",
    reads=("moved", "tokens", "evidence_tokens"),
)
def moved_evidence(out: Outputs, spec: CheckpointSpec, collection: Staged, settings: PositionSettings) -> None:
    """Tables ``position`` and ``position_summary``.

    Raises:
        NotMeasurable: if no two queries have evidence and filler, or the checkpoint reads too few tokens.
    """
    from embaudit.measures.position.depths import MOST_EVIDENCE, draw_duels, is_lost

    searched = read_collection(collection)
    encoder = encoder_of(spec, "document")
    limit = encoder.checkpoint.content_limit
    tokens = min(settings.tokens, limit)
    length = min(settings.evidence_tokens, tokens // MOST_EVIDENCE)
    if length < 1:
        raise NotMeasurable(f"documents are read up to {limit} tokens only.")
    own = encoder.own_ids(searched.collection.documents)
    evidence = _evidence(encoder, searched, length)
    drawn = draw_duels(searched.collection, evidence, own, tokens, settings.moved, SEED)
    if not drawn.duels:
        raise NotMeasurable(
            f"no two queries have evidence that the tokenizer can write, and irrelevant texts of {tokens} tokens."
        )
    rows = _rows(encoder, searched, drawn.duels)
    out.rows(PositionRow, rows, encodes=encoder.texts)
    lost = [row["depth"] for row in rows if row["depth"] in DEPTHS and is_lost(row["gain_low"], row["kept"])]
    summary = {
        "data_set": searched.collection.name,
        "length_limit": limit,
        "tokens": tokens,
        "evidence_tokens": float(np.mean([duel.length for duel in drawn.duels])),
        "queries": 2 * len(drawn.duels),
        "unwritten": drawn.unwritten,
        "left_out": drawn.left_out,
        "documents": len(own),
        "truncated": sum(len(ids) > limit for ids in own),
        "lost_from": lost[0] if lost else None,
    }
    out.rows(PositionSummaryRow, [summary])


def _evidence(encoder: Encoder, searched: Searched, length: int) -> dict[int, list[int]]:
    """The beginning of each query's best document, if the tokenizer can write it."""
    unknown = encoder.checkpoint.tokenizer.unk_token_id
    found = {}
    for place in sorted({best_of(relevant) for relevant in searched.collection.relevant}):
        ids = start_of(searched.collection.documents[place], length, encoder.own_ids)
        if is_written(ids, unknown):
            found[place] = ids
    return found


def _rows(encoder: Encoder, searched: Searched, duels: Sequence[Duel]) -> list[dict[str, Any]]:
    from embaudit.measures.position.depths import Gains, is_lost

    words = _words(encoder, searched, duels)
    made = {ALONE: [list(ids) for duel in duels for ids in duel.evidence]}
    made |= {name: [duel.document(side, depth) for duel in duels for side in (0, 1)] for name, depth in DEPTHS.items()}
    flat = [encoder.checkpoint.with_special_tokens(ids) for of_depth in made.values() for ids in of_depth]
    with tracked("position", len(flat)) as advance:
        vectors = encoder.encode_ids(flat, advance).reshape(len(made), len(duels), 2, -1)
    gains = {
        name: Gains.of(similarities_of(searched, duels, of_depth)) for name, of_depth in zip(made, vectors, strict=True)
    }
    rows = []
    for name, gain in gains.items():
        moved = name != ALONE
        row: dict[str, Any] = {
            "depth": name,
            "is_read": True,
            "tokens_before": float(np.mean([duel.before(DEPTHS[name]) for duel in duels])) if moved else None,
            "queries": 2 * len(duels),
            "score": gain.score,
            **gain.mean.columns("gain"),
            **(gain.change(gains[START]) if moved else Estimate()).columns("change"),
            "kept": gain.kept(gains[START]),
            **gain.won.columns("won"),
            "words_gain": words[ALONE if name == ALONE else START],
        }
        rows.append(row | {"is_lost": is_lost(row["gain_low"], row["kept"])})
    return [*rows, _beyond(encoder, rows[1], words[START])]


def _beyond(encoder: Encoder, start: dict[str, Any], words_gain: float | None) -> dict[str, Any]:
    """Whatever the evidence is, the tokens that are read are those of the filler: nothing is encoded to know this."""
    return start | {
        "depth": BEYOND,
        "is_read": False,
        "tokens_before": float(encoder.checkpoint.content_limit),
        "score": None,
        **Estimate(0.0).columns("gain"),
        **Estimate(-start["gain"]).columns("change"),
        **Estimate(0.5).columns("won"),
        "kept": None if start["kept"] is None else 0.0,
        "words_gain": words_gain,
        "is_lost": True,
    }


def similarities_of(searched: Searched, duels: Sequence[Duel], documents: np.ndarray) -> np.ndarray:
    """(duels, 2, 2) similarities of each query of a duel to its (duels, 2, d) documents."""
    from embaudit.measures.quality.passes import of_all

    queries = searched.queries[np.array([duel.queries for duel in duels])]
    return np.stack(
        [of_all(asked, known, searched.similarity) for asked, known in zip(queries, documents, strict=True)]
    )


def _words(encoder: Encoder, searched: Searched, duels: Sequence[Duel]) -> dict[str, float | None]:
    """The mean gain by TF-IDF, which knows no order: in a document, and of the evidence alone."""
    from embaudit.measures.position.depths import Gains
    from embaudit.measures.quality.measured import TFIDF, pair_overlap

    def written(ids: Sequence[int]) -> str:
        return str(encoder.checkpoint.tokenizer.decode(list(ids), skip_special_tokens=True))

    asked = [searched.collection.queries[query] for duel in duels for query in duel.queries for _ in (0, 1)]
    found: dict[str, float | None] = {}
    for name, filler in ((ALONE, False), (START, True)):
        texts = [
            f"{written(duel.evidence[side])} {written(duel.filler) if filler else ''}"
            for duel in duels
            for _ in duel.queries
            for side in (0, 1)
        ]
        overlap = pair_overlap(asked, texts).get(TFIDF)
        found[name] = None if overlap is None else Gains.of(overlap.reshape(-1, 2, 2)).mean.value
    return found


def measure(run: Run) -> list[Staged]:
    """The evidence at each depth; a collection that cannot tell gets a note."""
    settings = run.settings(PositionSettings)
    try:
        return run(moved_evidence, run.spec, collection_of(run, settings), settings)
    except NotMeasurable as error:
        return [run.skipped("position", error)]
