"""The search for candidates: a pilot with all draws, a prediction, narrowing stages, scores and shortlists.

Its precision depends on how fast half precision is here, measured once per kind of machine and staged.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from embaudit.checkpoint.precision import faster_precision, half_precision, machine, product_seconds
from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.moments import PROTOCOLS
from embaudit.measures.sticky.plan import SearchedTokens, shortlist_length
from embaudit.measures.sticky.steps.files import ENCODES_PER_SHARD, SHARDS, Purpose, Sample, read_pairs, token_shards
from embaudit.measures.sticky.steps.scan import compare_precisions, insert_shard, narrow, predict, score
from embaudit.steps.results import Staged
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step

PRODUCT_SECONDS = {"rows": "int64", "float32": "float64", "half": "float64"}


@dataclass(frozen=True)
class HalfSpeedup:
    """How many times as fast half precision is as float32."""

    speedup: float


@step("precision", version=1, tables=("product_seconds",), name="measure precision", not_in_key=("device",))
def measure_precision(out: Outputs, device: str, half: str, widths: tuple[int, int], machine: dict[str, str]) -> None:
    """Seconds of matrix products in float32 and in half precision.

    The precision is part of a scan's key, and near the limit a second measurement could change it, so that an audit
    would not find its own staged files. So the first measurement stands, for all machines of its kind that share the
    staging folder.

    Args:
        machine: what the ratio of the two precisions depends on.
    """
    found = product_seconds(device, half, widths)
    row = {"rows": found.rows, "float32": found.float32, "half": found.half}
    out.rows("product_seconds", [row], PRODUCT_SECONDS, detail=HalfSpeedup(found.speedup))


class ScanPrecision(NamedTuple):
    """A dtype, and the measured speedup of half precision over float32; None if not measured."""

    dtype: str
    speedup: float | None


def scan_precision(run: Run) -> ScanPrecision:
    """The precision in the settings; for ``auto``, half precision if it is clearly faster here.

    With ``auto``, a checkpoint that is audited in half precision (``--dtype``) is also scanned in it, and an audit that
    runs the published code's protocol is all in its own: its figures are held against published ones.
    """
    settings, device = run.settings(StickySettings), run.spec.device
    if settings.scan_dtype != "auto":
        return ScanPrecision(settings.scan_dtype, None)
    half = half_precision(device) if run.spec.dtype == "float32" and not settings.reference else None
    if half is None:
        return ScanPrecision(run.spec.dtype, None)
    (measured,) = measure_precision.compute(run.staging, device, half, run.widths, machine(device))
    speedup = measured.found(HalfSpeedup).speedup
    return ScanPrecision(faster_precision(half, speedup), speedup)


# Number of tokens on which the ranks in two precisions are compared.
COMPARED_TOKENS = 512
# The size of a shard is given in tokens with this many draws; with more draws, a shard has fewer tokens.
DRAWS_PER_SHARD = 16
LABELS: dict[Purpose, str] = {"scoring": "scan", "validation": "validate candidates and controls"}


@dataclass(frozen=True)
class SearchMaterial:
    """The inputs of search and validation."""

    run: Run
    sample: Sample
    tokens_per_shard: int

    @property
    def settings(self) -> StickySettings:
        return self.run.settings(StickySettings)

    @property
    def shared(self) -> dict[str, Any]:
        """Arguments common to all steps."""
        return {"spec": self.run.spec, "sample": self.sample}

    def draws(self, purpose: Purpose) -> int:
        """Number of draws; a given pair of the validation is one draw per operator."""
        operators = 3 if purpose == "validation" and read_pairs(self.sample.pairs, purpose) else 1
        return operators * len(self.sample.sentence_set(purpose).draws)

    def inserted(self, purpose: Purpose, token_ids: np.ndarray, draws: list[int], dtype: str) -> list[Staged]:
        """Insert the tokens into the draws, in shards of about equal work."""
        said = "one draw" if len(draws) == 1 else f"{len(draws)} draws"
        most = max(1, self.tokens_per_shard * DRAWS_PER_SHARD // max(DRAWS_PER_SHARD, len(draws)))
        # A share for each of several workers, whether there are any or not: either audit finds what the other staged.
        per_shard = min(most, max(ENCODES_PER_SHARD // len(draws), ceil(len(token_ids) / SHARDS)))
        return self.run.sharded(
            insert_shard,
            token_shards(token_ids, per_shard, len(token_ids) * len(draws), f"{LABELS[purpose]}, {said}"),
            dtype=dtype,
            purpose=purpose,
            draws=draws,
            **self.shared,
        )


@dataclass(frozen=True)
class SearchResult:
    """The scores, the files that they come from, and how well ranks in the scan's precision agree with float32."""

    scored: Staged
    pilot: tuple[Staged, ...]
    files: tuple[Staged, ...]
    precision: ScanPrecision
    rank_correlation: dict[str, float | None]


def search(material: SearchMaterial, chosen: SearchedTokens) -> SearchResult:
    """Score a random pilot and the worst other tokens on all draws, the rest on those of the stages they reach."""
    run, shared = material.run, material.shared
    precision = scan_precision(run)
    dtype = precision.dtype
    every = list(range(material.draws("scoring")))
    pilot = material.inserted("scoring", chosen.pilot, every, dtype)
    (predicted,) = run(predict, token_ids=chosen.token_ids.tolist(), pilot=pilot, **shared)

    rest = np.setdiff1d(chosen.token_ids, chosen.pilot)
    stages: list[list[Staged]] = []
    cuts = []
    done = 0
    for until, count in chosen.stages:
        if count < len(rest):
            (kept,) = run(narrow, predicted=predicted, pilot=pilot, stages=stages, keep=count, **shared)
            cuts.append(kept.detail)
            rest = np.array([row["token_id"] for row in read_rows([kept.path])], dtype=np.int64)
        if len(rest) == 0:
            break
        stages.append(material.inserted("scoring", rest, every[done:until], dtype))
        done = until
    shortlist = shortlist_length(material.settings, len(chosen.token_ids))
    (scored,) = run(score, predicted=predicted, pilot=pilot, stages=stages, cuts=cuts, shortlist=shortlist, **shared)
    files = (*pilot, *(part for stage in stages for part in stage))
    return SearchResult(scored, tuple(pilot), files, precision, _rank_correlation(material, chosen, dtype))


def _rank_correlation(material: SearchMaterial, chosen: SearchedTokens, dtype: str) -> dict[str, float | None]:
    """Rank correlation by protocol; None if the scan ran in float32."""
    if dtype == "float32":
        return dict.fromkeys(PROTOCOLS)
    pool = chosen.token_ids
    compared = pool[np.linspace(0, len(pool) - 1, min(COMPARED_TOKENS, len(pool))).astype(int)]
    (found,) = material.run(compare_precisions, dtype=dtype, token_ids=compared.tolist(), **material.shared)
    return dict(found.detail)
