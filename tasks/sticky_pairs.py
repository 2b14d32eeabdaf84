"""The sentence pairs that sticky tokens are measured on, as tasks: drawn from a corpus, or given by the user."""

from __future__ import annotations

import time
from pathlib import Path

from prefect import task

from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyPairRow
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import pair_rows, read_pairs, stage


@task(name="choose pairs", **CACHED)
def choose_pairs(
    spec: CheckpointSpec,
    corpus_path: str,
    given: dict[str, str],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Stage the balanced scoring and validation pairs, and those of the first experiment (table ``sticky_pair``).

    Args:
        given: staged pairs of the user's own by purpose (``scoring``, ``validation``): they are taken as they are.
    """
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.pairs import distinct_sentences, named_pairs, sample_pairs, spread_pairs
    from embaudit.measures.sticky.scan import unit_rows
    from embaudit.warehouse.stage import read_rows

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    texts = [row[side] for row in read_rows([corpus_path]) for side in ("first", "second")]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    with tracked("encode sentences", len(sentences)) as advance:
        vectors = encoder.encode_texts(sentences, advance)
    sample = sample_pairs(sentences, vectors, settings.scoring_pairs, settings.validation_pairs, seed)
    chosen = {"scoring": sample.scoring, "validation": sample.validation}
    if settings.shift_tokens:
        unit = unit_rows(vectors).astype(np.float64)
        similarity = unit @ unit.T
        above = similarity[np.triu_indices(len(similarity), 1)]
        spread = spread_pairs(
            similarity, above.min(), above.max(), settings.shift_pairs, np.random.default_rng([seed, 2])
        )
        chosen["shift"] = named_pairs(sentences, similarity, spread)
    chosen |= {purpose: tuple(read_pairs(path, purpose)) for purpose, path in given.items()}
    rows = [row for purpose, pairs in chosen.items() for row in pair_rows(purpose, pairs)]
    counts = {purpose: len(pairs) for purpose, pairs in chosen.items()}
    return stage(
        "sticky_pair",
        rows,
        StickyPairRow.table.schema,
        key,
        staging,
        started=started,
        encodes=encoder.texts,
        detail=counts,
    )


@task(name="read given pairs", persist_result=False)
def stage_given_pairs(spec: CheckpointSpec, source: str, content: str, purpose: str, staging: str) -> Staged:
    """Stage the pairs of a file of the user's own, with their similarities under the checkpoint.

    Raises:
        CorpusError: if a row is no pair, or the file is no longer what the audit was planned with.
    """
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.corpora.chosen_pairs import read_chosen_pairs
    from embaudit.errors import CorpusError
    from embaudit.keys import content_key
    from embaudit.measures.sticky.pairs import SentencePair
    from embaudit.measures.sticky.scan import unit_rows

    found = read_chosen_pairs(Path(source))
    if found.content != content:
        raise CorpusError(f"{source} changed while it was being read.", next_step="Run the command again.")
    encoder = Encoder(checkpoint_of(spec))
    firsts, seconds = (unit_rows(encoder.encode_texts([pair[side] for pair in found.pairs])) for side in (0, 1))
    similarity = np.einsum("pd,pd->p", firsts, seconds, dtype=np.float64)
    pairs = [SentencePair(*pair, float(value)) for pair, value in zip(found.pairs, similarity, strict=True)]
    key = content_key(content=content, purpose=purpose, **spec.key_parts)
    return stage("given_pair", pair_rows(purpose, pairs), StickyPairRow.table.schema, key, staging)
