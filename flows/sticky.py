"""Sub-flow: which tokens are sticky. Vocabulary -> u -> sentences -> search -> validation -> verdicts -> evidence."""

from __future__ import annotations

import numpy as np
from prefect import flow

from embaudit.measures.sticky.plan import choose_controls, choose_tokens, shortlist_length
from embaudit.measures.sticky.scores import PROTOCOLS
from embaudit.measures.sticky.settings import StickySettings
from embaudit.settings import Settings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_flows.sticky_evidence import StickyFiles, evidence
from embaudit_flows.sticky_search import Material, search
from embaudit_tasks.results import Staged, StagedCorpus
from embaudit_tasks.sticky_files import Sample
from embaudit_tasks.sticky_sentences import choose_sentences, given_pairs
from embaudit_tasks.sticky_verdicts import count_severities, judge
from embaudit_tasks.vocabulary import measure_token_similarity, read_tokens


@flow(name="sticky tokens", flow_run_name="sticky tokens of {plan.source}", persist_result=False)
def sticky(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """Find the tokens that pull similarities towards one value; returns every staged file of the measure."""
    settings, staging, spec = plan.profile.of(StickySettings), plan.staging, plan.spec
    given = _given_pairs(plan)
    corpus, tokens, sample = measured_on(plan, ingested, given)
    material = Material(plan, sample, Settings().tokens_per_shard)

    entries = read_rows([tokens.path])
    draws = len(sample.sentence_set("scoring").draws)
    chosen = choose_tokens(entries, settings.scan_encodes, draws, plan.limit_tokens, plan.seed)
    found = search(material, chosen)
    scored, searched = found.scored, len(chosen.token_ids)

    shortlists = scored.detail["shortlists"]
    candidates = np.array(sorted({token for listed in shortlists.values() for token in listed}), dtype=np.int64)
    controls = choose_controls(entries, candidates, settings.controls, plan.seed)
    validation_draws = list(range(material.draws("validation")))
    validated = material.inserted("validation", np.union1d(candidates, controls), validation_draws, spec.dtype)
    # For the cost of ``--exhaustive``: all draws of every token, and shortlists of unlimited length.
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
        "encodes": sum(part.encodes for part in (*found.files, *validated)),
        "exhaustive_encodes": searched * draws + (listed + len(controls)) * len(validation_draws),
    }
    verdicts = judge(
        staging,
        scored=scored,
        validated=validated,
        plan=known,
        scan_speedup=found.precision.speedup,
        settings=settings,
        **material.shared,
    )
    severities = count_severities(
        staging, tokens=tokens, pilot=list(found.pilot), verdicts=verdicts[0], searched=searched, **material.shared
    )
    judged = StickyFiles(tokens, sample, scored, verdicts[0], corpus, chosen.token_ids, controls, given)
    # There are no sentences if pairs are given for both purposes, and no pairs without given ones and shifts.
    drawn = [one for one in (sample.sentences, sample.pairs) if one.rows]
    files = [tokens, sample.similarity, *drawn, *found.files, *validated, scored]
    return [*files, *verdicts, *severities, *evidence(plan, judged)]


def measured_on(
    plan: AuditPlan, ingested: dict[str, StagedCorpus], given: dict[str, Staged] | None = None
) -> tuple[StagedCorpus, Staged, Sample]:
    """The corpus, the vocabulary, and what tokens are inserted into; also for measures that build on this one."""
    settings, staging, spec = plan.profile.of(StickySettings), plan.staging, plan.spec
    (corpus,) = (ingested[name] for name in settings.corpora)
    (tokens,) = read_tokens(staging, spec)
    (similarity,) = measure_token_similarity(staging, spec, tokens)
    shift_pairs = settings.shift_pairs if settings.shift_tokens else 0
    given = _given_pairs(plan) if given is None else given
    sentences, pairs = choose_sentences(staging, spec, corpus, given, settings, shift_pairs, plan.seed)
    return (
        corpus,
        tokens,
        Sample(sentences=sentences, pairs=pairs, similarity=similarity, copies=settings.copies, seed=plan.seed),
    )


def _given_pairs(plan: AuditPlan) -> dict[str, Staged]:
    """The user's own pairs by purpose, staged."""
    staged = {}
    for purpose, source in plan.pair_sources.items():
        (staged[purpose],) = given_pairs(plan.staging, plan.spec, source, plan.pair_contents[purpose], purpose)
    return staged
