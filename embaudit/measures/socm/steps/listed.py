"""SOCM of a list of pairs (queries with their hard negatives) as steps.

Each shard embeds the texts that it needs; a part of the list is compared with random pairs of the same queries and
passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import ceil
from typing import Any, TypeAlias

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.corpora import CORPORA
from embaudit.corpora.draw import Draw, content_order, pair_text
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import UndefinedText, clouds_of
from embaudit.measures.socm.contrast import contrasts, strangers
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import CHECKED_PAIRS, Accuracy, checked, given_pairs
from embaudit.measures.socm.steps.texts import NormAccuracy, UndefinedTexts, are_truncated, repeated, text_rows
from embaudit.measures.socm.tables import SocmContrastRow, SocmListedPairRow, SocmTextRow
from embaudit.steps.corpora import drawn_pairs
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, StagedCorpus, checkpoint_of, encoder_of
from embaudit.steps.step import Outputs, step

# Pairs whose texts are embedded together: at 2 · 80 tokens and d = 384 their token embeddings take 120 MB.
PAIRS_PER_CHUNK = 500
Prompted: TypeAlias = tuple[TextKind, str]


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmTextRow, SocmListedPairRow),
    name="SOCM of listed pairs",
    run_name="SOCM of {corpus.name}, pairs {start} to {stop}",
)
def socm_listed(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, start: int, stop: int) -> None:
    """d_μ, d_Σ and SOCM of the drawn pairs start … stop−1, and the texts that first appear in them.

    Tables ``socm_text`` and ``socm_listed_pair``. Texts are numbered in the order of their first appearance in the
    drawn pairs. A pair with an undefined text has no row. Queries and passages are encoded with their own prompts.
    """
    drawn = drawn_pairs(corpus.content_path, draw)
    kinds = kinds_of(spec, corpus.name)
    places = drawn.places
    listed = [((kinds[0], first), (kinds[1], second)) for first, second in drawn.pairs]
    numbers = numbered_texts(listed)
    contents = list(numbers)
    seen = {numbers[text] for pair in listed[:start] for text in pair}
    encoders = {kind: encoder_of(spec, kind) for kind in dict.fromkeys(kinds)}
    norms, accuracy = nuclear_norms_on(spec.device), Accuracy()
    texts: list[dict[str, Any]] = []
    left_out: list[UndefinedText] = []

    def embedded(needed: list[int]) -> Iterator[tuple[int, np.ndarray]]:
        for kind, encoder in encoders.items():
            own = [number for number in needed if contents[number][0] == kind]
            for index, X in encoder.token_embeddings([contents[number][1] for number in own]):
                yield own[index], X.copy()

    def truncated_of(needed: list[int]) -> dict[int, bool]:
        found: dict[int, bool] = {}
        for kind in encoders:
            own = [number for number in needed if contents[number][0] == kind]
            found |= zip(own, are_truncated(spec, [contents[number][1] for number in own], kind), strict=True)
        return found

    def chunks() -> Iterator[dict[str, Any]]:
        for begin in range(start, stop, PAIRS_PER_CHUNK):
            chunk = range(begin, min(begin + PAIRS_PER_CHUNK, stop))
            needed = sorted({numbers[text] for position in chunk for text in listed[position]})
            clouds, undefined = clouds_of(embedded(needed))
            truncated = truncated_of(needed)
            new = set(needed) - seen
            seen.update(new)
            texts.extend(row for row in text_rows(corpus, clouds, undefined, truncated) if row["position"] in new)
            left_out.extend(text for text in undefined if text.position in new)
            by_number = {cloud.position: cloud for cloud in clouds}
            kept = [position for position in chunk if all(numbers[text] in by_number for text in listed[position])]
            sides = [[numbers[listed[position][side]] for position in kept] for side in (0, 1)]
            block = given_pairs(by_number, *sides, norms=norms)
            # Each chunk is checked on its share of the sample.
            share = ceil(CHECKED_PAIRS * len(chunk) / (stop - start))
            for same in checked([block], by_number, len(kept), accuracy, sample=share):
                yield {
                    "corpus": repeated(corpus.name, len(kept)),
                    "position": [places[pair] for pair in kept],
                    **vars(same),
                }
            advance(len(chunk))

    with tracked(f"SOCM, listed pairs of {corpus.name}", stop - start, of_all=len(listed)) as advance:
        out.columns(SocmListedPairRow, chunks(), detail=lambda: NormAccuracy.of(norms.name, accuracy))
    encodes = sum(encoder.texts for encoder in encoders.values())
    out.rows(SocmTextRow, texts, encodes=encodes, detail=UndefinedTexts.of(left_out))


def kinds_of(spec: CheckpointSpec, corpus: str) -> tuple[TextKind, TextKind]:
    """The kinds of text that the two sides of a list's pairs are encoded as; one kind if their prompts are the same."""
    if CORPORA[corpus].relation == "sts":
        return "text", "text"
    prompts = checkpoint_of(spec).prompts
    return ("query", "query") if prompts["query"] == prompts["document"] else ("query", "document")


def numbered_texts(listed: Sequence[tuple[Prompted, Prompted]]) -> dict[Prompted, int]:
    """A number for each distinct text and kind, in the order of first appearance."""
    numbers: dict[Prompted, int] = {}
    for pair in listed:
        for text in pair:
            numbers.setdefault(text, len(numbers))
    return numbers


# Fixed, so that audits with other seeds use the same part of a list, unless they draw other pairs.
SAMPLE_SEED = 0


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmContrastRow,),
    name="SOCM contrast",
    run_name="SOCM of {corpus.name} against random pairs",
)
def socm_contrast(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, pairs: int) -> None:
    """Means of listed and of random pairs, and their paired difference (table ``socm_contrast``).

    Empty if one query has over half of the pairs, or fewer than two pairs have two defined texts.
    """
    drawn = drawn_pairs(corpus.content_path, draw).pairs
    kinds = kinds_of(spec, corpus.name)
    chosen = content_order([pair_text(*pair) for pair in drawn], SAMPLE_SEED)[:pairs]
    listed = [((kinds[0], drawn[place][0]), (kinds[1], drawn[place][1])) for place in chosen]
    numbers = numbered_texts(listed)
    contents = list(numbers)
    embedded: list[tuple[int, np.ndarray]] = []
    with tracked(f"SOCM, random pairs of {corpus.name}", len(contents)) as advance:
        for kind in dict.fromkeys(kinds):
            own = [number for number, text in enumerate(contents) if text[0] == kind]
            for index, X in encoder_of(spec, kind).token_embeddings([contents[number][1] for number in own]):
                embedded.append((own[index], X.copy()))
                advance(1)
    clouds = {cloud.position: cloud for cloud in clouds_of(embedded)[0]}
    numbered = [(numbers[first], numbers[second]) for first, second in listed]
    defined = [pair for pair in numbered if pair[0] in clouds and pair[1] in clouds]
    first, second = [pair[0] for pair in defined], [pair[1] for pair in defined]
    partner = strangers(first)
    found = [] if partner is None else contrasts(clouds, first, second, partner)
    rows = [{"corpus": corpus.name, **asdict(one)} for one in found]
    out.rows(SocmContrastRow, rows, encodes=len(contents))
