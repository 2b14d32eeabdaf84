"""The steps of the sticky measure: u -> sentences -> search -> validation -> verdicts -> evidence."""

from __future__ import annotations

from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.moments import PROTOCOLS
from embaudit.measures.sticky.plan import SearchFound, choose_controls, choose_tokens, shortlist_length
from embaudit.measures.sticky.steps.candidates import SearchMaterial, search
from embaudit.measures.sticky.steps.evidence import StickyFiles, evidence
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.sentences import choose_sentences, given_pairs, read_tokens, token_similarity
from embaudit.measures.sticky.steps.verdicts import count_severities, judge, validate
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.steps.staging.stage import read_rows
from embaudit.system.settings import Settings
from embaudit.words.errors import NotMeasurable


def measure(run: Run) -> list[Staged]:
    """Find the tokens that pull similarities towards one value; a note if these sentences do not allow it.

    Raises:
        NotMeasurable: if the pairs that the user gave do not allow it.
    """
    try:
        return _measured(run)
    except NotMeasurable as error:
        if run.pair_sources:
            raise
        return [run.skipped("sticky tokens", error)]


def _measured(run: Run) -> list[Staged]:
    """Every staged file of the measure."""
    settings = run.settings(StickySettings)
    given = _given_pairs(run)
    corpus, tokens, sample, summed = measured_on(run, given)
    material = SearchMaterial(run, sample, Settings().tokens_per_shard)

    entries = read_rows([tokens.path])
    draws = len(sample.sentence_set("scoring").draws)
    chosen = choose_tokens(entries, settings.scan_encodes, draws, settings.limit_tokens, run.seed)
    found = search(material, chosen)
    scored, searched = found.scored, len(chosen.token_ids)

    shortlists = scored.found(SearchFound).shortlists
    candidates = np.array(sorted({token for listed in shortlists.values() for token in listed}), dtype=np.int64)
    controls = choose_controls(entries, candidates, settings.controls, run.seed)
    validated, compared, validated_in = validate(material, candidates, controls, found.precision)
    # For the cost of an exhaustive search: all draws of every token, and shortlists of unlimited length.
    listed = len(candidates)
    if settings.max_shortlist is not None:
        listed = max(listed, len(PROTOCOLS) * shortlist_length(settings.everything(), searched))
    known = {
        "vocabulary_size": len(entries),
        "eligible": chosen.eligible,
        "searched": searched,
        "controls": controls.tolist(),
        "draws": draws,
        "anchors": len(sample.sentence_set("scoring").anchors),
        "search": "exhaustive" if chosen.is_exhaustive else "sequential",
        "pilot": len(chosen.pilot),
        "scan_dtype": found.precision.dtype,
        "rank_correlation": found.rank_correlation,
        "encodes": sum(part.encodes for part in (*found.files, *validated, *compared)),
        "exhaustive_encodes": searched * draws + (listed + len(controls)) * material.draws("validation"),
    }
    verdicts = run(
        judge,
        scored=scored,
        validated=validated,
        plan=known,
        scan_speedup=found.precision.speedup,
        validated_in=asdict(validated_in),
        settings=settings,
        **material.shared,
    )
    severities = run(
        count_severities,
        tokens=tokens,
        pilot=list(found.pilot),
        scored=scored,
        verdicts=verdicts[0],
        searched=searched,
        **material.shared,
    )
    judged = StickyFiles(tokens, sample, scored, verdicts[0], corpus, chosen.token_ids, controls, given)
    # There are no sentences if pairs are given for both purposes, and no pairs without given ones and shifts.
    drawn = [one for one in (sample.sentences, sample.pairs) if one.rows]
    files = [tokens, *summed, sample.similarity, *drawn, *found.files, *validated, *compared, scored]
    return [*files, *verdicts, *severities, *evidence(run, judged)]


class MeasuredOn(NamedTuple):
    """The corpus, the vocabulary, what tokens are inserted into, and the sums that u was made of."""

    corpus: StagedCorpus
    tokens: Staged
    sample: Sample
    summed: list[Staged]


def measured_on(run: Run, given: dict[str, Staged] | None = None) -> MeasuredOn:
    """Read the vocabulary, measure u and draw the sentences; also for measures that build on this one."""
    settings, spec = run.settings(StickySettings), run.spec
    (corpus,) = (run.corpora[name] for name in settings.corpora)
    (tokens,) = run(read_tokens, spec)
    similarity, summed = token_similarity(run, tokens, settings.similarity_entries)
    shift_pairs = settings.shift_pairs if settings.shift_tokens else 0
    given = _given_pairs(run) if given is None else given
    sentences, pairs = run(choose_sentences, spec, corpus, given, settings, shift_pairs, run.seed)
    sample = Sample(sentences=sentences, pairs=pairs, similarity=similarity, copies=settings.copies, seed=run.seed)
    return MeasuredOn(corpus, tokens, sample, summed)


def _given_pairs(run: Run) -> dict[str, Staged]:
    """The user's own pairs by purpose, staged."""
    staged = {}
    for purpose, source in run.pair_sources.items():
        (staged[purpose],) = run(given_pairs, run.spec, source, run.pair_contents[purpose], purpose)
    return staged
