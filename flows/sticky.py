"""Sub-flow: which tokens are sticky. Vocabulary -> u -> pairs -> search -> validation -> verdicts -> evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from prefect import flow

from embaudit.measures.sticky import MEASURE_VERSION, baseline, scan
from embaudit.measures.sticky.plan import ScannedTokens, choose_controls, choose_tokens, shortlist_length
from embaudit.measures.sticky.scores import PROTOCOLS
from embaudit.measures.sticky.settings import StickySettings
from embaudit.settings import Settings
from embaudit.vocabulary import entries as vocabulary
from embaudit.warehouse.stage import read_rows
from embaudit_flows.cached import run_cached, run_shards
from embaudit_flows.keys import name_of, names_of, shards_of
from embaudit_flows.plan import AuditPlan
from embaudit_flows.sticky_evidence import Found, evidence
from embaudit_flows.sticky_search import search
from embaudit_tasks import sticky_pairs, sticky_verdicts
from embaudit_tasks.results import Staged, StagedCorpus
from embaudit_tasks.vocabulary import measure_token_similarity, read_tokens


@flow(name="sticky tokens", flow_run_name="sticky tokens of {plan.source}", persist_result=False)
def sticky(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """Find the tokens that drag similarities to one value; returns every staged file of the measure."""
    plan = _with_given_pairs(plan.in_float32())
    settings, spec, where = plan.profile.of(StickySettings), plan.spec, {"staging": plan.staging}
    (corpus,) = (ingested[name] for name in settings.corpora)
    tokens_per_shard = Settings().tokens_per_shard
    seeded = {"settings": settings, "seed": plan.seed, **where}

    tokens = run_cached(read_tokens, spec, key=plan.key("vocabulary", vocabulary.MEASURE_VERSION), **where)
    similarity = run_cached(
        measure_token_similarity,
        spec,
        tokens_path=tokens.path,
        key=similarity_key(plan, tokens),
        **where,
    )
    # Every later value hangs on the vocabulary and on u: a new version of either recomputes what follows.
    plan = plan.model_copy(update={"upstream": {"vocabulary": name_of(tokens), "u": name_of(similarity)}})
    pairs = run_cached(
        sticky_pairs.choose_pairs,
        spec,
        corpus_path=corpus.content_path,
        given=plan.pair_paths,
        key=plan.key(
            "pairs",
            scan.MEASURE_VERSION,
            corpus=corpus.corpus_id,
            settings=_pair_settings(plan),
            given=plan.pair_contents,
        ),
        **seeded,
    )
    given = {"pairs_path": pairs.path, "similarity_path": similarity.path, **seeded}

    entries = read_rows([tokens.path])
    # The budget is planned with the pairs that were found, or given.
    counts = {"scoring_pairs": pairs.detail["scoring"], "validation_pairs": pairs.detail["validation"]}
    chosen = choose_tokens(entries, settings.model_copy(update=counts), plan.limit_tokens, plan.seed)
    found = search(plan, given, pairs, chosen, tokens_per_shard)
    scored = found.scored

    shortlists = scored.detail["shortlists"]
    candidates = np.array(sorted({token for listed in shortlists.values() for token in listed}), dtype=np.int64)
    controls = choose_controls(entries, candidates, settings.controls, plan.seed)
    common, rest = _validate(plan, given, pairs, scored, candidates, controls, tokens_per_shard)
    parts = [*found.files, *common, *rest]
    verdicts = run_cached(
        sticky_verdicts.judge,
        spec,
        scan=scored,
        common_paths=[part.path for part in common],
        rest_paths=[part.path for part in rest],
        plan={
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
        },
        key=plan.key(
            "verdicts",
            MEASURE_VERSION,
            files=names_of([*common, *rest]),
            score=name_of(scored),
            settings=settings.model_dump(mode="json"),
        ),
        **given,
    )
    judged = Found(tokens, similarity, pairs, scored, verdicts[0], corpus, controls)
    return [tokens, similarity, pairs, *parts, scored, *verdicts, *evidence(plan, judged)]


def similarity_key(plan: AuditPlan, tokens: Staged) -> str:
    """The key of u, which depends on the vocabulary's strings."""
    return plan.key("token-similarity", baseline.MEASURE_VERSION, vocabulary=name_of(tokens))


def _with_given_pairs(plan: AuditPlan) -> AuditPlan:
    paths = {
        purpose: sticky_pairs.stage_given_pairs(
            spec=plan.spec,
            source=source,
            content=plan.pair_contents[purpose],
            purpose=purpose,
            staging=plan.staging,
        ).path
        for purpose, source in plan.pair_sources.items()
    }
    return plan.model_copy(update={"pair_paths": paths})


def _validate(
    plan: AuditPlan,
    given: dict[str, Any],
    pairs: Staged,
    scored: Staged,
    candidates: np.ndarray,
    controls: np.ndarray,
    tokens_per_shard: int,
) -> tuple[list[Staged], list[Staged]]:
    """All candidates on the common points; on the rest, those that could still be flagged, and the controls."""
    settings = plan.profile.of(StickySettings)
    found = pairs.detail["validation"]
    every = found * (1 if settings.rotate_operators else 3)
    stops_early = settings.search == "sequential" and settings.common_pairs < found
    common_count = settings.common_pairs if stops_early else every

    def validated(part: str, token_ids: np.ndarray, points: int) -> list[Staged]:
        # A validated token costs a hundred times a scanned one: shards of about the same work.
        per_shard = max(1, tokens_per_shard // max(points // 16, 1))
        shards = [
            {
                "token_ids": shard.tolist(),
                "shard": index,
                "key": plan.key(
                    "validation",
                    MEASURE_VERSION,
                    pairs=name_of(pairs),
                    copies=settings.copies,
                    rotate=settings.rotate_operators,
                    common=common_count,
                    part=part,
                    tokens=shard.tolist(),
                ),
            }
            for index, shard in enumerate(shards_of(token_ids, per_shard))
        ]
        return run_shards(
            sticky_verdicts.validate_shard, plan.spec, shards, part=part, total=len(token_ids) * points, **given
        )

    common = validated("common", np.union1d(candidates, controls), common_count)
    if not stops_early:
        return common, []
    undecided = run_cached(
        sticky_verdicts.stop_early,
        plan.spec,
        shortlists=scored.detail["shortlists"],
        controls=controls.tolist(),
        common_paths=[part.path for part in common],
        key=plan.key(
            "undecided",
            MEASURE_VERSION,
            files=names_of(common),
            score=name_of(scored),
            resamples=settings.resamples,
        ),
        **given,
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


def _pair_settings(plan: AuditPlan) -> dict[str, int]:
    settings = plan.profile.of(StickySettings)
    return {
        "sentences": settings.sentences,
        "scoring": settings.scoring_pairs,
        "validation": settings.validation_pairs,
        "shift": settings.shift_pairs if settings.shift_tokens else 0,
    }
