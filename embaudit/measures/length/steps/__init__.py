"""The steps of length: how it changes similarity in each corpus of long texts, and σ_a by layer, head and length."""

from __future__ import annotations

from embaudit.corpora.judged import QUERIES
from embaudit.measures.length import DOCUMENTS, LengthSettings
from embaudit.measures.length.steps.curve import length_curve, length_sigma
from embaudit.measures.length.steps.ranking import length_ranking
from embaudit.measures.run import Run
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.words.errors import NotMeasurable


def measure(run: Run) -> list[Staged]:
    """The length curve with its controls, σ_a, and rankings of documents; what cannot be measured gets a note."""
    settings = run.settings(LengthSettings)
    staged: list[Staged] = []
    for corpus in (run.corpora[name] for name in settings.corpora):
        curve = run(length_curve, run.spec, corpus, settings, run.seed)
        # For example, there is no rise if all texts have the same length.
        staged += [part for part in curve if part.rows]
        staged.append(_sigma(run, corpus, settings))
        if corpus.name == DOCUMENTS:
            staged += _ranking(run, corpus, run.corpora[QUERIES], settings)
    return staged


def _ranking(run: Run, documents: StagedCorpus, queries: StagedCorpus, settings: LengthSettings) -> list[Staged]:
    try:
        (found,) = run(length_ranking, run.spec, documents, queries, settings, run.seed)
    except NotMeasurable as error:
        reason = error.happened
    else:
        if found.rows:
            return [found]
        reason = "all documents are of one length."
    return [run.note(f"Skipped length in rankings of {documents.name}: {reason}")]


def _sigma(run: Run, corpus: StagedCorpus, settings: LengthSettings) -> Staged:
    try:
        (sigma,) = run(length_sigma, run.spec, corpus, settings, run.seed)
    except NotMeasurable as error:
        reason = error.happened
    else:
        if sigma.rows:
            return sigma
        reason = f"fewer than two texts have {min(settings.sigma_lengths)} tokens."
    return run.note(f"Skipped sigma_a by length over {corpus.name}: {reason}")
