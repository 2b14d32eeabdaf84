"""The search for candidates: a pilot with all draws, successive halving for the rest, scores and shortlists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from embaudit.measures.sticky.plan import ScannedTokens, rungs_of, tokens_kept
from embaudit.measures.sticky.settings import StickySettings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_flows.shards import run_shards, token_shards
from embaudit_tasks.results import Staged
from embaudit_tasks.sticky_scan import compare_precisions, narrow, order_draws, scan_shard, score

# Ranks of so many tokens tell two precisions apart.
COMPARED_TOKENS = 512


@dataclass(frozen=True)
class Material:
    """What search and validation work with: the pairs that tokens are inserted into, and u."""

    plan: AuditPlan
    pairs: Staged
    similarity: Staged
    tokens_per_shard: int

    @property
    def settings(self) -> StickySettings:
        return self.plan.profile.of(StickySettings)

    @property
    def shared(self) -> dict[str, Any]:
        """Arguments of every step."""
        return {
            "spec": self.plan.spec,
            "pairs": self.pairs,
            "similarity": self.similarity,
            "settings": self.settings,
            "seed": self.plan.seed,
        }


@dataclass(frozen=True)
class SearchResult:
    """The scores, the files that they come from, and how the scan's precision kept the ranks."""

    scored: Staged
    files: tuple[Staged, ...]
    dtype: str
    rank_correlation: dict[str, float | None]


def search(material: Material, chosen: ScannedTokens) -> SearchResult:
    """Bring the worst tokens to all draws, and the others as far as the profile's rungs do."""
    settings, staging, shared = material.settings, material.plan.staging, material.shared
    every = list(range(material.pairs.detail["scoring"]))
    dtype = _scan_dtype(material.plan)

    def scanned(token_ids: np.ndarray, draws: list[int]) -> list[Staged]:
        shards, total = token_shards(token_ids, material.tokens_per_shard), len(token_ids) * len(draws)
        return run_shards(scan_shard, staging, shards, scan_dtype=dtype, draws=draws, total=total, **shared)

    pilot: list[Staged] = []
    order, cuts = every, []
    rungs: list[list[Staged]] = []
    if settings.search == "sequential":
        pilot = scanned(chosen.pilot, every)
        (ordered,) = order_draws(staging, pilot=pilot, **shared)
        order = list(ordered.detail["order"])
    rest = np.setdiff1d(chosen.token_ids, chosen.pilot)
    done = 0
    for until, keep in rungs_of(settings, len(every)):
        if len(rest) == 0:
            break
        rungs.append(scanned(rest, sorted(order[done:until])))
        done = until
        keep_count = len(rest) if keep is None else tokens_kept(settings, keep, len(chosen.token_ids))
        if keep_count < len(rest):
            (kept,) = narrow(staging, rungs=rungs, keep=keep_count, **shared)
            cuts.append(kept.detail)
            rest = np.array([row["token_id"] for row in read_rows([kept.path])], dtype=np.int64)
    if not rungs:  # so few tokens that the pilot is all of them
        rungs, pilot = [pilot], []
    (scored,) = score(staging, rungs=rungs, pilot=pilot, order=order, cuts=cuts, **shared)
    files = (*pilot, *(part for rung in rungs for part in rung))
    return SearchResult(scored, files, dtype, _rank_correlation(material, chosen, dtype))


def _scan_dtype(plan: AuditPlan) -> str:
    """The cheapest precision that keeps ranks: bfloat16 or float16 on a GPU; on CPUs both are slower than float32."""
    wanted = plan.profile.of(StickySettings).scan_dtype
    if wanted != "auto":
        return wanted
    if not plan.spec.device.startswith("cuda"):
        return plan.spec.dtype
    import torch

    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


def _rank_correlation(material: Material, chosen: ScannedTokens, dtype: str) -> dict[str, float | None]:
    """By protocol; None where the scan ran in float32 already."""
    if dtype == "float32":
        return {"definition": None, "retention": None}
    pool = chosen.token_ids
    sample = pool[np.linspace(0, len(pool) - 1, min(COMPARED_TOKENS, len(pool))).astype(int)]
    (compared,) = compare_precisions(
        material.plan.staging, scan_dtype=dtype, token_ids=sample.tolist(), **material.shared
    )
    return dict(compared.detail)
