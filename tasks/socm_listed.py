"""SOCM of a list of pairs (queries with their hard negatives) as a step: each shard embeds the texts that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import pyarrow.parquet as pq

from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import UndefinedText, clouds_of
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import CHECKED_PAIRS, Accuracy, checked, given_pairs
from embaudit.measures.socm.tables import SocmListedPairRow, SocmTextRow
from embaudit.warehouse.stage import opened
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, StagedCorpus, encoder_of
from embaudit_tasks.socm import accuracy_detail, are_truncated, repeated, text_rows, undefined_detail
from embaudit_tasks.steps import Outputs, step

# Pairs whose texts are embedded together: at 2 · 80 tokens and d = 384 their token embeddings are 120 MB.
PAIRS_PER_CHUNK = 500


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmTextRow, SocmListedPairRow),
    name="SOCM of listed pairs",
    run_name="SOCM of {corpus.name}, pairs {start} to {stop}",
)
def socm_listed(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, pairs: int, start: int, stop: int) -> None:
    """d_μ, d_Σ and SOCM of the pairs start … stop−1 of the first ``pairs``, and the texts that appear first among them.

    Tables ``socm_text`` and ``socm_listed_pair``. Texts are numbered in the order in which the whole list names them.
    A pair with an undefined text has no row.
    """
    listed, numbers = numbered_texts(corpus.content_path, pairs)
    contents = list(numbers)
    seen = {numbers[text] for pair in listed[:start] for text in pair}
    encoder, norms, accuracy = encoder_of(spec), nuclear_norms_on(spec.device), Accuracy()
    texts: list[dict[str, Any]] = []
    left_out: list[UndefinedText] = []

    def chunks() -> Iterator[dict[str, Any]]:
        for begin in range(start, stop, PAIRS_PER_CHUNK):
            chunk = range(begin, min(begin + PAIRS_PER_CHUNK, stop))
            needed = sorted({numbers[text] for position in chunk for text in listed[position]})
            embedded = encoder.token_embeddings([contents[number] for number in needed])
            clouds, undefined = clouds_of((needed[index], X.copy()) for index, X in embedded)
            truncated = dict(zip(needed, are_truncated(spec, [contents[number] for number in needed]), strict=True))
            new = set(needed) - seen
            seen.update(new)
            texts.extend(row for row in text_rows(corpus, clouds, undefined, truncated) if row["position"] in new)
            left_out.extend(text for text in undefined if text.position in new)
            by_number = {cloud.position: cloud for cloud in clouds}
            kept = [position for position in chunk if all(numbers[text] in by_number for text in listed[position])]
            sides = [[numbers[listed[position][side]] for position in kept] for side in (0, 1)]
            block = given_pairs(by_number, *sides, norms=norms)
            # Every chunk is checked on its share of the sample.
            share = ceil(CHECKED_PAIRS * len(chunk) / (stop - start))
            for same in checked([block], by_number, len(kept), accuracy, sample=share):
                yield {"corpus": repeated(corpus.name, len(kept)), "position": kept, **vars(same)}
            advance(len(chunk))

    with tracked(f"SOCM, listed pairs of {corpus.name}", stop - start, of_all=len(listed)) as advance:
        out.columns(SocmListedPairRow, chunks(), detail=lambda: accuracy_detail(norms.name, accuracy))
    out.rows(SocmTextRow, texts, encodes=encoder.texts, detail=undefined_detail(left_out))


def numbered_texts(corpus_path: str, pairs: int) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """The first pairs of a staged list, and each distinct text's number, in the order of first appearance."""
    with opened(corpus_path) as source:
        rows = pq.read_table(source, columns=["first", "second"]).slice(0, pairs)
    listed = list(zip(rows.column("first").to_pylist(), rows.column("second").to_pylist(), strict=True))
    numbers: dict[str, int] = {}
    for pair in listed:
        for text in pair:
            numbers.setdefault(text, len(numbers))
    return listed, numbers
