"""Single values of weights: out of range, one enormous outlier, rounded to a few bits, half precision."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.checkpoint.streamed import was_read
from embaudit.declared.rule import Finding, Rule, number, percent
from embaudit.measures.integrity.lattice import EVIDENCE, MOST
from embaudit.measures.integrity.rounding import BLOCKS, CODES, GROUPS, MANTISSAS, Rounding, rounding_of
from embaudit.words.sentences import first_of

if TYPE_CHECKING:
    import torch

# No trained weight of a text encoder is larger; values of 1e37 are another dtype's bytes.
LARGEST = 1e4
# A flipped exponent bit multiplies by 2^8 at least. Trained outliers are within this factor of the 99.99th percentile
# of their tensor, or have siblings in other layers; more where a tensor has none.
OUTLIER, OUTLIER_ALONE = 100.0, 1_000.0
# The same of all values of a tensor, against as many siblings.
WHOLE, MIN_SIBLINGS = 100.0, 3
QUANTILE = 0.9999
# Smallest normal float32 and half of its exponents: below it, bytes were read as another dtype.
SUBNORMAL, SUBNORMAL_SHARE = 1.2e-38, 0.01
# Of matrices, or of the weights in them: a few small ones may be of whole numbers for other reasons.
ROUNDED_SHARE = 0.5
# Bits at the end of a float32 that bfloat16 and float16 do not have.
HALVES = {"bfloat16": 16, "float16": 13}
SAMPLED = 1 << 16
VALUE_RANGE = Rule(
    "value_range",
    problem_if=f"above {number(LARGEST)}, not finite, or {number(OUTLIER)} times what its siblings reach "
    f"({number(OUTLIER_ALONE)} times where it has none); {percent(SUBNORMAL_SHARE)} below the smallest normal number",
    reason="a flipped bit of an exponent, or bytes read as another dtype",
)
VALUE_OUTLIER = VALUE_RANGE.named("outlier")
ROUNDED_WEIGHTS = Rule(
    "rounded_weights",
    look_if=f"{percent(ROUNDED_SHARE)} of the matrices, or matrices with {percent(ROUNDED_SHARE)} of the weights, hold "
    f"what rounding leaves: all values of most groups (of {', '.join(map(str, GROUPS[:-1]))} or {GROUPS[-1]} "
    f"neighbours, whole rows or columns, the whole tensor) lie on one lattice of at most {MOST + 1} levels, beyond "
    f"chance by e^{number(EVIDENCE)} in each group. Of what is on none: {CODES} distinct values (NF4) or {MANTISSAS} "
    f"distinct mantissas (FP8) in blocks of {BLOCKS[0]} and more",
    reason="quantised, then saved as floating point; bits, groups and kind are named. None of the matrices of "
    "all-MiniLM-L6-v2, as published or saved in bfloat16 or float16. What saving alone makes equal (a matrix close to "
    "1 in bfloat16) counts for nothing. Not told apart: a zero point in the middle and a symmetric lattice. Not "
    "found: groups whose columns were reordered before (GPTQ with `desc_act`), and in bfloat16 the bits of an 8-bit "
    'offset for a whole tensor, of which only "8 bits" is said',
)


@dataclass(frozen=True)
class Values:
    """What one tensor's values look like.

    Attributes:
        role: the name without layer numbers, which siblings share.
        largest, ordinary: the largest absolute value and its 99.99th percentile.
        place: index of the largest value.
        subnormal: share of values that are subnormal, zeros aside.
        rounding: the bits and groups that they were rounded to, if they were.
        half: the precision that all sampled values have: "bfloat16", "float16" or "".
    """

    name: str
    role: str
    shape: tuple[int, ...]
    largest: float
    ordinary: float
    place: tuple[int, ...]
    subnormal: float
    rounding: Rounding | None
    half: str


def read_values(named: Iterable[tuple[str, torch.Tensor]]) -> list[Values]:
    """Look at tensors by name; those that no vector depends on are left out."""
    return [
        _values(name, tensor.detach())
        for name, tensor in named
        if tensor.is_floating_point() and tensor.numel() and not name.startswith(UNUSED_WEIGHTS)
    ]


def value_findings(checkpoint: Checkpoint, values: Sequence[Values]) -> list[Finding]:
    """Findings about single values, or one ``ok``."""
    findings = [*_range_findings(values), *_outlier_findings(values), *_rounded_findings(values)]
    if findings:
        return findings
    halves = {each.half for each in values}
    saved = (
        f" Every weight fits into {halves.pop()}, in which it was saved."
        if len(halves) == 1 and "" not in halves
        else ""
    )
    largest = max(each.largest for each in values)
    return [
        VALUE_RANGE.finding(
            "ok", f"The largest absolute value in {len(values)} tensors is {largest:.3g}.{saved}", value=largest
        )
    ]


def _range_findings(values: Sequence[Values]) -> list[Finding]:
    import math

    large = [each for each in values if not math.isfinite(each.largest) or each.largest > LARGEST]
    small = [each for each in values if each.subnormal > SUBNORMAL_SHARE]
    if not large and not small:
        return []
    first = (large or small)[0]
    what = (
        f"{_named(large)} {'holds' if len(large) == 1 else 'hold'} values of up to {first.largest:.3g} "
        f"(the first at {list(first.place)}; float16 ends at 65 504)"
        if large
        else f"{first.subnormal:.0%} of the values of {_named(small)} are below the smallest normal number"
    )
    return [
        VALUE_RANGE.finding(
            "problem",
            f"{what}.",
            meaning="Trained weights are far from that: the file is damaged, or its bytes are read as another dtype.",
            advice="Download the weights again and compare their sha256 with the published one.",
            value=first.largest if large else first.subnormal,
        )
    ]


def _outlier_findings(values: Sequence[Values]) -> list[Finding]:
    by_role: dict[str, list[Values]] = defaultdict(list)
    for each in values:
        by_role[each.role].append(each)
    found = []
    for each in values:
        others = [other.largest for other in by_role[each.role] if other is not each]
        ordinary = max([each.ordinary, *others])
        # A single enormous number: beyond its own tensor's and all of its siblings', or far beyond where it has none.
        factor = OUTLIER if others else OUTLIER_ALONE
        typical = [other.ordinary for other in by_role[each.role] if other is not each]
        if len(typical) >= MIN_SIBLINGS and 0 < WHOLE * max(typical) < each.ordinary:
            found.append((each, max(typical)))
        elif ordinary > 0 and factor * ordinary < each.largest <= LARGEST and (others or len(each.shape) > 1):
            found.append((each, ordinary))
    if not found:
        return []
    each, ordinary = found[0]
    where = f" at {list(each.place)}" if each.place else ""
    return [
        VALUE_OUTLIER.finding(
            "problem",
            f"{each.name} holds {each.largest:.3g}{where}, {each.largest / ordinary:.0f} times as much as "
            + ("the 99.99th percentile of its values and the largest of " if each.place else "values of ")
            + "the same tensor in other layers"
            + (f"; so do {len(found) - 1} more tensors." if len(found) > 1 else "."),
            meaning="One flipped bit of an exponent does this: a damaged disk, memory or download.",
            advice="Download the weights again and compare their sha256 with the published one.",
            value=each.largest / ordinary,
        )
    ]


def _rounded_findings(values: Sequence[Values]) -> list[Finding]:
    matrices = [each for each in values if len(each.shape) > 1]
    rounded = [each for each in matrices if each.rounding is not None]
    weights, of_all = (sum(prod(each.shape) for each in some) for some in (rounded, matrices))
    if not rounded or max(len(rounded) / len(matrices), weights / of_all) < ROUNDED_SHARE:
        return []
    kinds = Counter(each.rounding for each in rounded).most_common()
    fewest = min(kind.bits for kind, _ in kinds if kind is not None)
    described = "; ".join(f"{kind}, {count} of them" if len(kinds) > 1 else str(kind) for kind, count in kinds[:3])
    return [
        ROUNDED_WEIGHTS.finding(
            "look",
            f"{len(rounded)} of {len(matrices)} matrices have the values that rounding leaves: {described}"
            + (f"; {len(kinds) - 3} more kinds" if len(kinds) > 3 else "")
            + f" ({_named(rounded)}).",
            meaning="The weights were quantised and stored as floats: the vectors are not those of the original, by "
            f"{'little' if fewest == 8 else 'more the smaller the model'}.",
            advice="Serve and audit the checkpoint that was quantised, or compare the two: embaudit compare.",
            value=len(rounded) / len(matrices),
        )
    ]


def _values(name: str, tensor: torch.Tensor) -> Values:
    import torch

    flat = tensor.reshape(-1)
    low, high = torch.aminmax(flat)
    was_read()
    largest = max(abs(float(low)), abs(float(high)))
    place: tuple[int, ...] = ()
    step = max(1, flat.numel() // SAMPLED)
    sample = flat[::step].float().abs().cpu()
    # Its neighbour from below, which needs no sorting.
    ordinary = float(sample.kthvalue(1 + int(QUANTILE * (len(sample) - 1))).values)
    if not largest <= OUTLIER * ordinary or largest > LARGEST:
        at = torch.argmax(flat.abs().nan_to_num(float("inf")))
        place = tuple(int(index) for index in torch.unravel_index(at, tensor.shape))
    subnormal = float(((sample > 0) & (sample < SUBNORMAL)).float().mean())
    half = _half(sample)
    return Values(
        name,
        re.sub(r"\.\d+\.", ".*.", name),
        tuple(tensor.shape),
        largest,
        ordinary,
        place,
        subnormal,
        rounding_of(tensor, half),
        half,
    )


def _half(sample: torch.Tensor) -> str:
    import torch

    bits = sample.contiguous().view(torch.int32)
    return next((name for name, count in HALVES.items() if not bool((bits & ((1 << count) - 1)).any())), "")


def _named(values: Sequence[Values]) -> str:
    return first_of([each.name for each in values])
