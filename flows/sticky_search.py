"""The search for candidates: a pilot with all draws, successive halving for the rest, scores and shortlists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from embaudit.measures.sticky import scan
from embaudit.measures.sticky.plan import ScannedTokens, rungs_of, tokens_kept
from embaudit.measures.sticky.settings import StickySettings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.cached import run_cached, run_shards
from embaudit_flows.keys import name_of, names_of, shards_of
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import sticky_scan
from embaudit_tasks.results import Staged

# Ranks of so many tokens tell two precisions apart.
COMPARED_TOKENS = 512


@dataclass(frozen=True)
class Searched:
    """The scores, the files that they come from, and how the scan's precision kept the ranks."""

    scored: Staged
    files: tuple[Staged, ...]
    dtype: str
    rank_correlation: dict[str, float | None]


def search(
    plan: AuditPlan, given: dict[str, Any], pairs: Staged, chosen: ScannedTokens, tokens_per_shard: int
) -> Searched:
    """Bring the worst tokens to all draws, and the others as far as the profile's rungs do."""
    settings, every = plan.profile.of(StickySettings), list(range(pairs.detail["scoring"]))
    dtype = _scan_dtype(plan)

    def scanned(token_ids: np.ndarray, draws: list[int]) -> list[Staged]:
        shards = [
            {
                "token_ids": shard.tolist(),
                "shard": index,
                "key": plan.key(
                    "scan",
                    scan.MEASURE_VERSION,
                    pairs=name_of(pairs),
                    copies=settings.copies,
                    draws=draws,
                    scan_dtype=dtype,
                    tokens=shard.tolist(),
                ),
            }
            for index, shard in enumerate(shards_of(token_ids, tokens_per_shard))
        ]
        return run_shards(
            sticky_scan.scan_shard,
            plan.spec,
            shards,
            scan_dtype=dtype,
            draws=draws,
            total=len(token_ids) * len(draws),
            **given,
        )

    pilot: list[Staged] = []
    order, cuts = every, []
    rungs: list[list[Staged]] = []
    if settings.search == "sequential":
        pilot = scanned(chosen.pilot, every)
        order = _order(plan, given, pilot)
    rest = np.setdiff1d(chosen.token_ids, chosen.pilot)
    done = 0
    for until, keep in rungs_of(settings, len(every)):
        if len(rest) == 0:
            break
        rungs.append(scanned(rest, sorted(order[done:until])))
        done = until
        keep_count = len(rest) if keep is None else tokens_kept(settings, keep, len(chosen.token_ids))
        if keep_count < len(rest):
            kept = _survivors(plan, given, rungs, keep_count)
            cuts.append(kept.detail)
            rest = np.array([row["token_id"] for row in read_rows([kept.path])], dtype=np.int64)
    if not rungs:  # so few tokens that the pilot is all of them
        rungs, pilot = [pilot], []
    files = [*pilot, *(part for rung in rungs for part in rung)]
    scored = run_cached(
        sticky_scan.score,
        plan.spec,
        rungs=[[part.path for part in rung] for rung in rungs],
        pilot_paths=[part.path for part in pilot],
        order=order,
        cuts=cuts,
        key=plan.key("score", scan.MEASURE_VERSION, files=names_of(files), settings=settings.model_dump(mode="json")),
        **given,
    )
    return Searched(scored, tuple(files), dtype, _rank_correlation(plan, given, pairs, chosen, dtype))


def _order(plan: AuditPlan, given: dict[str, Any], pilot: list[Staged]) -> list[int]:
    ordered = run_cached(
        sticky_scan.order_draws,
        plan.spec,
        pilot_paths=[part.path for part in pilot],
        key=plan.key("draw-order", scan.MEASURE_VERSION, files=names_of(pilot)),
        **given,
    )
    return list(ordered.detail["order"])


def _survivors(plan: AuditPlan, given: dict[str, Any], rungs: list[list[Staged]], keep: int) -> Staged:
    kept: Staged = run_cached(
        sticky_scan.narrow,
        plan.spec,
        rungs=[[part.path for part in rung] for rung in rungs],
        keep=keep,
        key=plan.key(
            "narrow", scan.MEASURE_VERSION, files=names_of([part for rung in rungs for part in rung]), keep=keep
        ),
        **given,
    )
    return kept


def _scan_dtype(plan: AuditPlan) -> str:
    """The cheapest precision that keeps ranks: bfloat16 or float16 on a GPU; on CPUs both are slower than float32."""
    wanted = plan.profile.of(StickySettings).scan_dtype
    if wanted != "auto":
        return wanted
    if not plan.spec.device.startswith("cuda"):
        return plan.spec.dtype
    import torch

    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


def _rank_correlation(
    plan: AuditPlan, given: dict[str, Any], pairs: Staged, chosen: ScannedTokens, dtype: str
) -> dict[str, float | None]:
    """By protocol; None where the scan ran in float32 already."""
    if dtype == "float32":
        return {"definition": None, "retention": None}
    pool = chosen.token_ids
    sample = pool[np.linspace(0, len(pool) - 1, min(COMPARED_TOKENS, len(pool))).astype(int)]
    compared = run_cached(
        sticky_scan.compare_precisions,
        plan.spec,
        scan_dtype=dtype,
        token_ids=sample.tolist(),
        key=plan.key("precision", scan.MEASURE_VERSION, pairs=name_of(pairs), scan_dtype=dtype, tokens=sample.tolist()),
        **given,
    )
    return dict(compared.detail)
