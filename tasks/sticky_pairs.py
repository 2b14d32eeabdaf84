"""The sentence pairs that sticky tokens are measured on, as steps: drawn from a corpus, or given by the user."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embaudit.corpora.chosen_pairs import read_chosen_pairs
from embaudit.errors import CorpusError
from embaudit.measures.sticky import scan
from embaudit.measures.sticky.pairs import SentencePair, distinct_sentences, named_pairs, sample_pairs, spread_pairs
from embaudit.measures.sticky.scan import unit_rows
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyPairRow
from embaudit.warehouse.stage import read_rows
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit_tasks.steps import Outputs, step
from embaudit_tasks.sticky_files import pair_rows, read_pairs


@step(
    "sticky",
    version=scan.MEASURE_VERSION,
    tables=(StickyPairRow,),
    name="choose pairs",
    reads=("sentences", "scoring_pairs", "validation_pairs"),
)
def choose_pairs(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    given: dict[str, Staged],
    settings: StickySettings,
    shift_pairs: int,
    seed: int,
) -> None:
    """The balanced scoring and validation pairs, and those of the first experiment (table ``sticky_pair``).

    Args:
        given: pairs of the user's own by purpose (``scoring``, ``validation``): they are taken as they are.
        shift_pairs: of the first experiment; 0 leaves it out.
    """
    encoder = encoder_of(spec)
    texts = [row[side] for row in read_rows([corpus.content_path]) for side in ("first", "second")]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    with tracked("encode sentences", len(sentences)) as advance:
        vectors = encoder.encode_texts(sentences, advance)
    sample = sample_pairs(sentences, vectors, settings.scoring_pairs, settings.validation_pairs, seed)
    chosen = {"scoring": sample.scoring, "validation": sample.validation}
    if shift_pairs:
        unit = unit_rows(vectors).astype(np.float64)
        similarity = unit @ unit.T
        above = similarity[np.triu_indices(len(similarity), 1)]
        spread = spread_pairs(similarity, above.min(), above.max(), shift_pairs, np.random.default_rng([seed, 2]))
        chosen["shift"] = named_pairs(sentences, similarity, spread)
    chosen |= {purpose: tuple(read_pairs(pairs, purpose)) for purpose, pairs in given.items()}
    rows = [row for purpose, pairs in chosen.items() for row in pair_rows(purpose, pairs)]
    counts = {purpose: len(pairs) for purpose, pairs in chosen.items()}
    out.rows(StickyPairRow, rows, encodes=encoder.texts, detail=counts)


@step("sticky", version=1, tables=("given_pair",), name="read given pairs", not_in_key=("source",))
def given_pairs(out: Outputs, spec: CheckpointSpec, source: str, content: str, purpose: str) -> None:
    """The pairs of a file of the user's own, with their similarities under the checkpoint.

    Args:
        content: a hash of what the file held when the audit was planned.

    Raises:
        CorpusError: if a row is no pair, or the file is no longer what the audit was planned with.
    """
    found = read_chosen_pairs(Path(source))
    if found.content != content:
        raise CorpusError(f"{source} changed while it was being read.", next_step="Run the command again.")
    encoder = encoder_of(spec)
    firsts, seconds = (unit_rows(encoder.encode_texts([pair[side] for pair in found.pairs])) for side in (0, 1))
    similarity = np.einsum("pd,pd->p", firsts, seconds, dtype=np.float64)
    pairs = [SentencePair(*pair, float(value)) for pair, value in zip(found.pairs, similarity, strict=True)]
    out.rows("given_pair", pair_rows(purpose, pairs), StickyPairRow.table.schema)
