"""Sub-flow: which tokens are sticky. Vocabulary -> u -> pairs -> search -> validation -> verdicts -> evidence."""

from __future__ import annotations

import numpy as np
from prefect import flow

from embaudit.measures.sticky.plan import ScannedTokens, choose_controls, choose_tokens, shortlist_length
from embaudit.measures.sticky.scores import PROTOCOLS
from embaudit.measures.sticky.settings import StickySettings
from embaudit.settings import Settings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_flows.shards import run_shards, token_shards
from embaudit_flows.sticky_evidence import StickyFiles, evidence
from embaudit_flows.sticky_search import Material, search
from embaudit_tasks.results import Staged, StagedCorpus
from embaudit_tasks.sticky_pairs import choose_pairs, given_pairs
from embaudit_tasks.sticky_verdicts import Part, judge, stop_early, validate_shard
from embaudit_tasks.vocabulary import measure_token_similarity, read_tokens


@flow(name="sticky tokens", flow_run_name="sticky tokens of {plan.source}", persist_result=False)
def sticky(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """Find the tokens that drag similarities to one value; returns every staged file of the measure."""
    settings, staging, spec = plan.profile.of(StickySettings), plan.staging, plan.spec
    (corpus,) = (ingested[name] for name in settings.corpora)
    tokens_per_shard = Settings().tokens_per_shard
    given = _given_pairs(plan)
    (tokens,) = read_tokens(staging, spec)
    (similarity,) = measure_token_similarity(staging, spec, tokens)
    shift_pairs = settings.shift_pairs if settings.shift_tokens else 0
    (pairs,) = choose_pairs(staging, spec, corpus, given, settings, shift_pairs, plan.seed)
    material = Material(plan, pairs, similarity, tokens_per_shard)

    entries = read_rows([tokens.path])
    # The budget is planned with the pairs that were found, or given.
    counts = {"scoring_pairs": pairs.detail["scoring"], "validation_pairs": pairs.detail["validation"]}
    chosen = choose_tokens(entries, settings.model_copy(update=counts), plan.limit_tokens, plan.seed)
    found = search(material, chosen)
    scored = found.scored

    shortlists = scored.detail["shortlists"]
    candidates = np.array(sorted({token for listed in shortlists.values() for token in listed}), dtype=np.int64)
    controls = choose_controls(entries, candidates, settings.controls, plan.seed)
    common, rest = _validate(material, scored, candidates, controls)
    parts = [*found.files, *common, *rest]
    known = {
        "vocabulary_size": len(entries),
        "eligible": chosen.eligible,
        "controls": controls.tolist(),
        "scoring_pairs": pairs.detail["scoring"],
        "search": settings.search,
        "pilot": len(chosen.pilot),
        "scan_dtype": found.dtype,
        "rank_correlation": found.rank_correlation,
        "encodes": sum(part.encodes for part in parts),
        "exhaustive_encodes": _exhaustive_encodes(settings, pairs, chosen, candidates, controls),
    }
    verdicts = judge(staging, scored=scored, common=common, rest=rest, plan=known, **material.shared)
    judged = StickyFiles(tokens, similarity, pairs, scored, verdicts[0], corpus, controls, given)
    return [tokens, similarity, pairs, *parts, scored, *verdicts, *evidence(plan, judged)]


def _given_pairs(plan: AuditPlan) -> dict[str, Staged]:
    """The user's own pairs by purpose, staged."""
    staged = {}
    for purpose, source in plan.pair_sources.items():
        (staged[purpose],) = given_pairs(plan.staging, plan.spec, source, plan.pair_contents[purpose], purpose)
    return staged


def _validate(
    material: Material, scored: Staged, candidates: np.ndarray, controls: np.ndarray
) -> tuple[list[Staged], list[Staged]]:
    """All candidates on the common points; on the rest, those that could still be flagged, and the controls."""
    settings, staging = material.settings, material.plan.staging
    found = material.pairs.detail["validation"]
    every = found * (1 if settings.rotate_operators else 3)
    stops_early = settings.search == "sequential" and settings.common_pairs < found
    common_count = settings.common_pairs if stops_early else every

    def validated(part: Part, token_ids: np.ndarray, points: int) -> list[Staged]:
        # A validated token costs a hundred times a scanned one: shards of about the same work.
        per_shard = max(1, material.tokens_per_shard // max(points // 16, 1))
        total = len(token_ids) * points
        shards = token_shards(token_ids, per_shard)
        return run_shards(validate_shard, staging, shards, part=part, total=total, **material.shared)

    common = validated("common", np.union1d(candidates, controls), common_count)
    if not stops_early:
        return common, []
    shortlists = scored.detail["shortlists"]
    (undecided,) = stop_early(
        staging, shortlists=shortlists, controls=controls.tolist(), common=common, **material.shared
    )
    further = np.array([row["token_id"] for row in read_rows([undecided.path])], dtype=np.int64)
    return common, validated("rest", np.union1d(further, controls), every - common_count)


def _exhaustive_encodes(
    settings: StickySettings, pairs: Staged, chosen: ScannedTokens, candidates: np.ndarray, controls: np.ndarray
) -> int:
    """What ``--exhaustive`` would take: all draws, whole shortlists, all three operators on every pair."""
    scanned, listed = len(chosen.token_ids), len(candidates)
    if settings.longest_shortlist is not None:
        listed = max(listed, len(PROTOCOLS) * shortlist_length(settings.everything(), scanned))
    validated = (listed + len(controls)) * int(pairs.detail["validation"]) * 3
    return scanned * int(pairs.detail["scoring"]) + validated
