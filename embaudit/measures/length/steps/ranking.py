"""How short and long documents rank for queries, as a step on a collection with judged queries."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from embaudit.corpora.downstream.material import pick_judged
from embaudit.corpora.judged import own_of, relevant_of
from embaudit.measures.length import MEASURE_VERSION, LengthSettings
from embaudit.measures.length.ranking import CUT_QUANTILE, outranked
from embaudit.measures.length.tables import LengthRankingRow
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step


@step(
    "length",
    version=MEASURE_VERSION,
    tables=(LengthRankingRow,),
    name="length ranking",
    run_name="length in rankings of {documents.name}",
    reads=("ranked_documents", "ranking_queries"),
)
def length_ranking(
    out: Outputs,
    spec: CheckpointSpec,
    documents: StagedCorpus,
    queries: StagedCorpus,
    settings: LengthSettings,
    seed: int,
) -> None:
    """Table ``length_ranking``; empty if all documents have the same length.

    Raises:
        NotMeasurable: if there are too few queries or documents.
    """
    known = read_rows([queries.content_path])
    judged = pick_judged(
        [row["text"] for row in read_rows([documents.content_path])],
        [(row["text"], relevant_of(row["label"])) for row in known],
        settings.ranked_documents,
        settings.ranking_queries,
        seed,
        [own_of(row["label"]) for row in known],
    )
    reader, asker = encoder_of(spec, "document"), encoder_of(spec, "query")
    own = reader.own_ids(judged.documents)
    lengths = np.array([len(ids) for ids in own])
    boundary = float(np.median(lengths))
    limit = reader.checkpoint.content_limit
    cut = int(min(max(np.quantile(lengths, CUT_QUANTILE), 1), limit))
    rows: list[dict[str, Any]] = []
    with tracked(f"length in rankings of {documents.name}", 2 * len(own) + len(judged.queries)) as advance:
        asked = asker.encode_texts(judged.queries, advance)
        for condition, most in (("natural", limit), ("cut", cut)):
            sequences = [reader.checkpoint.with_special_tokens(ids[:most]) for ids in own]
            vectors = reader.encode_ids(sequences, advance)
            found = outranked(vectors, asked, judged.relevant, lengths > boundary, seed, judged.own)
            shared = {"corpus": documents.name, "condition": condition, "boundary": boundary, "read": most}
            rows += [{**shared, "documents": len(own), **asdict(one)} for one in found]
    out.rows(LengthRankingRow, rows, encodes=reader.texts + asker.texts)
