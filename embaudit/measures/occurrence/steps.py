"""Occurrence as a step: counts the audit's severe tokens in a corpus, and measures the effect of removing them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import log, log10
from typing import Any

import numpy as np

from embaudit.corpora.draw import Draw, content_order
from embaudit.measures.occurrence import (
    MEASURE_VERSION,
    OccurrenceCorpusRow,
    OccurrenceRow,
    OccurrenceSettings,
    OccurrenceTextRow,
)
from embaudit.measures.occurrence.counts import CorpusCounts, DenseText, count_corpus, dense_texts
from embaudit.measures.occurrence.removal import ALL, measure_removals, plan_removals
from embaudit.measures.run import Run
from embaudit.remedies.screening.count import encoder_of_tokens
from embaudit.remedies.screening.tokens import severe_rows
from embaudit.statistics.intervals import exact_share
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.estimate import Estimate

DENSE_KEPT = 100


@step(
    "occurrence",
    version=MEASURE_VERSION,
    tables=(OccurrenceCorpusRow, OccurrenceRow, OccurrenceTextRow),
    name="occurrence",
    run_name="occurrence in {corpus.name}",
    reads=("severity", "removal_texts", "anchors"),
)
def corpus_occurrence(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    tokens: Staged,
    verdicts: Staged,
    draw: Draw,
    settings: OccurrenceSettings,
    seed: int,
) -> None:
    """Tables ``occurrence_corpus``, ``occurrence`` and ``occurrence_text`` for the drawn texts of a corpus.

    Args:
        tokens, verdicts: the files of ``token`` and ``sticky_validation`` of the same audit.
    """
    encoder = encoder_of(spec)
    checkpoint = encoder.checkpoint
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = {row["token_id"]: row for row in severe_rows(read_rows([verdicts.path]), settings.severity)}
    listed = {token_id: row for token_id, row in severe.items() if entries[token_id]["is_reachable"]}
    losses = {token_id: max(row["loss"], 0.0) for token_id, row in listed.items()}
    drawn = drawn_texts(corpus.content_path, draw)
    encode = encoder_of_tokens(checkpoint.tokenizer)
    with tracked(f"severe tokens in {corpus.name}", len(drawn.texts)) as advance:
        size = max(len(entries), len(checkpoint.tokenizer))
        limit, side = checkpoint.content_limit, checkpoint.tokenizer.truncation_side
        counts = count_corpus(drawn.texts, encode, frozenset(listed), limit, size, side)
        advance(len(drawn.texts))
    dense = dense_texts(counts, losses)

    def own_ids(places: Sequence[int]) -> list[list[int]]:
        ids = checkpoint.own_ids([drawn.texts[place] for place in places])
        return [checkpoint.cut(one, checkpoint.content_limit) for one in ids]

    # By content, so that every checkpoint uses the same texts.
    order = content_order(drawn.texts, seed)
    planned = plan_removals(counts, listed, order, own_ids, settings.removal_texts, seed)
    anchors = order[: settings.anchors] if any(planned.values()) else []
    with tracked(f"without them, {corpus.name}", len(planned)) as advance:
        movements = measure_removals(encoder, planned, list(zip(anchors, own_ids(anchors), strict=True)))
        advance(len(planned))

    about = {"unreachable": len(severe) - len(listed), "dense_texts": len(dense), **movements[ALL].columns()}
    out.rows(OccurrenceCorpusRow, [_corpus_row(corpus, counts, listed, about)], encodes=encoder.texts)
    reachable = np.array([token_id for token_id, entry in entries.items() if entry["is_reachable"]])
    rows = [
        {**_token_row(counts, token_id, row, reachable), "corpus": corpus.name, **movements[token_id].columns()}
        for token_id, row in sorted(listed.items())
    ]
    out.rows(OccurrenceRow, rows)
    out.rows(OccurrenceTextRow, _dense_rows(corpus.name, dense[:DENSE_KEPT], drawn.places, counts))


def _corpus_row(
    corpus: StagedCorpus, counts: CorpusCounts, listed: Collection[int], about: dict[str, Any]
) -> dict[str, Any]:
    affected, texts = len(counts.severe_texts), counts.texts
    share = Estimate(affected / texts, *exact_share(affected, texts)) if texts else Estimate()
    return {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "texts": texts,
        "tokens": counts.tokens,
        "listed": len(listed),
        "met": sum(counts.histogram[token_id] > 0 for token_id in listed),
        "severe": counts.severe,
        "severe_texts": affected,
        **share.columns("severe_share"),
        **about,
    }


def _token_row(counts: CorpusCounts, token_id: int, row: Mapping[str, Any], reachable: np.ndarray) -> dict[str, Any]:
    occurrences = int(counts.histogram[token_id])
    return {
        "token_id": token_id,
        "severity": row["severity"],
        "loss": row["loss"],
        "occurrences": occurrences,
        "texts": len(counts.texts_with(token_id)),
        "per_million": 1e6 * occurrences / max(counts.tokens, 1),
        "less_frequent": counts.less_frequent(token_id, reachable),
    }


def _dense_rows(
    corpus: str, dense: Sequence[DenseText], places: Sequence[int], counts: CorpusCounts
) -> list[dict[str, Any]]:
    return [
        {
            "corpus": corpus,
            "rank": rank,
            "position": places[one.text.place],
            "tokens": one.text.read,
            "severe": one.text.counts.total(),
            "score": one.score,
            "log10_p": min(one.log_tail / log(10) + log10(counts.texts), 0.0),
            "worst_token_id": min(one.text.counts, key=lambda token_id: (-one.text.counts[token_id], token_id)),
        }
        for rank, one in enumerate(dense, start=1)
    ]


def measure(run: Run) -> list[Staged]:
    """Count the tokens that ``sticky`` found in each corpus, and measure how removing them moves texts."""
    settings = run.settings(OccurrenceSettings)
    searched = {part.table: part for part in run.earlier if part.table in ("token", "sticky_validation")}
    if "sticky_validation" not in searched:
        return [run.note("Skipped occurrence: sticky tokens could not be looked for.")]
    tokens, verdicts = searched["token"], searched["sticky_validation"]
    staged: list[Staged] = []
    for corpus, draw in run.drawn(settings):
        parts = run(corpus_occurrence, run.spec, corpus, tokens, verdicts, draw, settings=settings, seed=run.seed)
        # Without severe tokens there is nothing to count, and no text is dense in them.
        staged += [part for part in parts if part.rows]
    return staged
