"""Meaning as a step: the sentences are encoded once, and compared in triples."""

from __future__ import annotations

from embaudit.measures.meaning import MEASURE_VERSION, MeaningRow
from embaudit.measures.meaning.triples import CONTRASTS, REWORDINGS, SENTENCE, sentences, told, words_nearer
from embaudit.measures.run import Run
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of, encoder_of
from embaudit.steps.step import Outputs, step


@step("meaning", version=MEASURE_VERSION, tables=(MeaningRow,), name="meaning")
def meaning_of_sentences(out: Outputs, spec: CheckpointSpec) -> None:
    """Table ``meaning``, by the declared similarity."""
    from embaudit.embedders.checkpoint import declared_similarity
    from embaudit.measures.quality.passes import of_pairs

    encoder = encoder_of(spec)
    vectors = {name: encoder.encode_texts(texts) for name, texts in sentences().items()}
    kind = declared_similarity(checkpoint_of(spec))
    similarities = {name: of_pairs(vectors[SENTENCE], vectors[name], kind) for name in (*REWORDINGS, *CONTRASTS)}
    words = words_nearer()
    rows = []
    for contrast in CONTRASTS:
        for rewording in REWORDINGS:
            found = told(similarities[rewording], similarities[contrast])
            rows.append(
                {
                    "contrast": contrast,
                    "rewording": rewording,
                    "triples": found.triples,
                    **found.nearer.columns("nearer"),
                    "words_nearer": words[contrast, rewording],
                    **found.margin.columns("margin"),
                    "rewording_similarity": float(similarities[rewording].mean()),
                    "contrast_similarity": float(similarities[contrast].mean()),
                }
            )
    out.rows(MeaningRow, rows, encodes=encoder.texts)


def measure(run: Run) -> list[Staged]:
    return run(meaning_of_sentences, run.spec)
