"""The sentences that sticky tokens are measured on, as steps: drawn from a corpus, or pairs given by the user."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embaudit.corpora.chosen_pairs import read_chosen_pairs
from embaudit.measures.sticky import MEASURE_VERSION, StickySettings
from embaudit.measures.sticky.pairs import (
    SentencePair,
    SentenceSet,
    distinct_sentences,
    named_pairs,
    split_sentences,
    spread_pairs,
)
from embaudit.measures.sticky.points import unit_rows
from embaudit.measures.sticky.steps.files import Purpose, pair_rows, read_pairs, sentence_rows
from embaudit.measures.sticky.tables import StickyPairRow, StickySentenceRow
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import CorpusError


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=(StickySentenceRow, StickyPairRow),
    name="choose sentences",
    reads=("sentences", "draws", "validation_draws"),
)
def choose_sentences(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    given: dict[str, Staged],
    settings: StickySettings,
    shift_pairs: int,
    seed: int,
) -> None:
    """Draws and anchors for search and validation (``sticky_sentence``), and pairs (``sticky_pair``).

    Args:
        given: the user's own pairs by purpose (``scoring``, ``validation``), which replace the sentences.
        shift_pairs: number of pairs in the paper's first experiment; 0 leaves it out.
    """
    texts = [row[side] for row in read_rows([corpus.content_path]) for side in ("first", "second")]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    scoring, validation = split_sentences(sentences, settings.draws, settings.validation_draws, seed)
    drawn: dict[Purpose, SentenceSet] = {"scoring": scoring, "validation": validation}
    rows = [row for purpose, chosen in drawn.items() if purpose not in given for row in sentence_rows(purpose, chosen)]
    out.rows(StickySentenceRow, rows)
    pairs = {purpose: read_pairs(staged, purpose) for purpose, staged in given.items()}
    encoder = encoder_of(spec)
    if shift_pairs:
        with tracked("encode sentences", len(sentences)) as advance:
            unit = unit_rows(encoder.encode_texts(sentences, advance)).astype(np.float64)
        similarity = unit @ unit.T
        above = similarity[np.triu_indices(len(similarity), 1)]
        spread = spread_pairs(similarity, above.min(), above.max(), shift_pairs, np.random.default_rng([seed, 2]))
        pairs["shift"] = list(named_pairs(sentences, similarity, spread))
    rows = [row for purpose, chosen in pairs.items() for row in pair_rows(purpose, chosen)]
    out.rows(StickyPairRow, rows, encodes=encoder.texts)


@step("sticky", version=1, tables=("given_pair",), name="read given pairs", not_in_key=("source",))
def given_pairs(out: Outputs, spec: CheckpointSpec, source: str, content: str, purpose: str) -> None:
    """The pairs in a user's file, with their similarities under the checkpoint.

    Args:
        content: a hash of what the file held when the audit was planned.

    Raises:
        CorpusError: if a row is not a pair, or the file has changed since the audit was planned.
    """
    found = read_chosen_pairs(Path(source))
    if found.content != content:
        raise CorpusError(f"{source} changed while it was being read.", next_step="Run the command again.")
    encoder = encoder_of(spec)
    firsts, seconds = (unit_rows(encoder.encode_texts([pair[side] for pair in found.pairs])) for side in (0, 1))
    similarity = np.einsum("pd,pd->p", firsts, seconds, dtype=np.float64)
    pairs = [SentencePair(*pair, float(value)) for pair, value in zip(found.pairs, similarity, strict=True)]
    out.rows("given_pair", pair_rows(purpose, pairs), StickyPairRow.table.schema)
