"""Sub-flow: which tokens are sticky. Vocabulary -> u -> pairs -> scan -> shortlist -> validation -> verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from prefect import flow

from embaudit.sticky import baseline, scan, validation, vocabulary
from embaudit.sticky.plan import choose_controls, choose_tokens
from embaudit.warehouse.stage import read_rows
from embaudit_flows.cached import run_cached
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import sticky_scan, sticky_verdicts
from embaudit_tasks.results import Staged, StagedCorpus
from embaudit_tasks.vocabulary import measure_token_similarity, read_tokens


@flow(name="sticky tokens", flow_run_name="sticky tokens of {plan.source}", persist_result=False)
def sticky(plan: AuditPlan, corpus: StagedCorpus, tokens_per_shard: int) -> list[Staged]:
    """Find the tokens that drag similarities to one value; returns every staged file of the measure."""
    settings, spec, where = plan.profile.sticky, plan.spec, {"staging": plan.staging}
    seeded = {"settings": settings, "seed": plan.seed, **where}

    tokens = run_cached(read_tokens, spec, key=plan.key("vocabulary", vocabulary.MEASURE_VERSION), **where)
    similarity = run_cached(
        measure_token_similarity,
        spec,
        tokens_path=tokens.path,
        key=plan.key("token-similarity", baseline.MEASURE_VERSION),
        **where,
    )
    pairs = run_cached(
        sticky_scan.choose_pairs,
        spec,
        corpus_path=corpus.content_path,
        key=plan.key("pairs", scan.MEASURE_VERSION, corpus=corpus.corpus_id, settings=_pair_settings(plan)),
        **seeded,
    )
    given = {"pairs_path": pairs.path, "similarity_path": similarity.path, **seeded}

    entries = read_rows([tokens.path])
    chosen = choose_tokens(entries, settings, plan.limit_tokens, plan.seed)
    rungs = _scan(plan, given, pairs, chosen.token_ids, tokens_per_shard)
    scored = run_cached(
        sticky_scan.score,
        spec,
        rungs=[[part.path for part in rung] for rung in rungs],
        key=plan.key("score", scan.MEASURE_VERSION, files=_paths(rungs), settings=settings.model_dump(mode="json")),
        **given,
    )

    candidates = np.array(sorted({token for listed in scored.detail["shortlists"].values() for token in listed}))
    controls = choose_controls(entries, candidates, settings.controls, plan.seed)
    validated = _validate(plan, given, pairs, np.union1d(candidates, controls), tokens_per_shard)
    parts = [tokens, similarity, pairs, *(part for rung in rungs for part in rung), *validated]
    verdicts = run_cached(
        sticky_verdicts.judge,
        spec,
        scan=scored,
        validation_paths=[part.path for part in validated],
        plan={
            "vocabulary_size": len(entries),
            "eligible": chosen.eligible,
            "controls": controls.tolist(),
            "scoring_pairs": pairs.detail["scoring"],
            "encodes": sum(part.encodes for part in parts if part.table in ("scan", "validation")),
        },
        key=plan.key(
            "verdicts",
            validation.MEASURE_VERSION,
            files=_paths([validated]),
            score=_name(scored),
            settings=settings.model_dump(mode="json"),
        ),
        **given,
    )
    return [*parts, scored, *verdicts]


def _scan(
    plan: AuditPlan, given: dict[str, object], pairs: Staged, token_ids: np.ndarray, tokens_per_shard: int
) -> list[list[Staged]]:
    """All rungs of the narrowing: many tokens with one draw, then more draws for the tokens that are left."""
    rungs: list[list[Staged]] = []
    done = 0
    most = pairs.detail["scoring"]
    for rung in plan.profile.sticky.rungs:
        until = min(rung.draws, most)
        if until <= done or len(token_ids) == 0:
            break
        files = [
            run_cached(
                sticky_scan.scan_shard,
                plan.spec,
                token_ids=shard.tolist(),
                first_draw=done,
                last_draw=until,
                shard=index,
                total=len(token_ids) * (until - done),
                key=plan.key(
                    "scan",
                    scan.MEASURE_VERSION,
                    pairs=_name(pairs),
                    copies=plan.profile.sticky.copies,
                    draws=[done, until],
                    tokens=shard.tolist(),
                ),
                **given,
            )
            for index, shard in enumerate(_shards(token_ids, tokens_per_shard))
        ]
        rungs.append(files)
        done = until
        if rung.keep is not None and rung.keep < len(token_ids):
            token_ids = _survivors(plan, given, files, rung.keep)
    return rungs


def _survivors(plan: AuditPlan, given: dict[str, object], files: Sequence[Staged], keep: int) -> np.ndarray:
    kept = run_cached(
        sticky_scan.narrow,
        plan.spec,
        scan_paths=[part.path for part in files],
        keep=keep,
        key=plan.key("narrow", scan.MEASURE_VERSION, files=_paths([files]), keep=keep),
        **given,
    )
    return np.array([row["token_id"] for row in read_rows([kept.path])], dtype=np.int64)


def _validate(
    plan: AuditPlan, given: dict[str, object], pairs: Staged, token_ids: np.ndarray, tokens_per_shard: int
) -> list[Staged]:
    settings = plan.profile.sticky
    points = pairs.detail["validation"] * (1 if settings.rotate_operators else 3)
    # A validated token costs a hundred times a scanned one: shards of about the same work.
    per_shard = max(1, tokens_per_shard // max(points // 16, 1))
    return [
        run_cached(
            sticky_verdicts.validate_shard,
            plan.spec,
            token_ids=shard.tolist(),
            shard=index,
            total=len(token_ids) * points,
            key=plan.key(
                "validation",
                validation.MEASURE_VERSION,
                pairs=_name(pairs),
                copies=settings.copies,
                rotate=settings.rotate_operators,
                tokens=shard.tolist(),
            ),
            **given,
        )
        for index, shard in enumerate(_shards(token_ids, per_shard))
    ]


def _shards(token_ids: np.ndarray, size: int) -> list[np.ndarray]:
    return [token_ids[start : start + size] for start in range(0, len(token_ids), size)]


def _pair_settings(plan: AuditPlan) -> dict[str, int]:
    settings = plan.profile.sticky
    return {
        "sentences": settings.sentences,
        "scoring": settings.scoring_pairs,
        "validation": settings.validation_pairs,
    }


def _name(part: Staged) -> str:
    """A staged file's content key: the folder it lies in."""
    return part.path.rsplit("/", 2)[-2]


def _paths(rungs: Sequence[Sequence[Staged]]) -> list[str]:
    return [_name(part) for rung in rungs for part in rung]
