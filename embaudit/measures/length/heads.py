"""σ_a and the theory's predictions for it, by layer, head and length (arXiv 2410.24200, §3).

For a text of n tokens, by layer and head: σ_a = ‖PA‖₂ and ‖PA‖_F, which it never exceeds; σ_s, the standard deviation
of the scaled logits, raw and doubly centred; the published bound on σ_a at either σ_s, and whether it holds; and
σ_a‖W_V‖₂, the factor of Theorem 2: ‖HC[AXW_V]‖_F ≤ σ_a‖W_V‖₂‖HC[X]‖_F. For each layer, the high-frequency share of its
output, ‖PX‖_F/‖X‖_F. The published bound is

    σ_a ≤ √(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1))        (arXiv 2410.24200, as printed in the summary at hand)

It assumes i.i.d. Gaussian logits; ``python -m benchmarks bound`` simulates them.

The softmax ignores constants added to a row, so log A equals the logits up to a constant per row. Doubly centred logits
(without row and column means) are therefore those of log A, whatever the family adds to q·k. Raw logits are q·kᵀ/√d_h
from the declared weights, and used only if their softmax is the model's A: with rotary or relative positions, query
norms, other scales or masks it is not, and σ_s is null. An A with zeros (causal mask, local window) has no log either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.anatomy import Anatomy, LayerState, anatomy_of, require_fit, watching
from embaudit.checkpoint.anatomy.family import Part
from embaudit.checkpoint.anatomy.watch import TOLERANCE
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.layers.layers import batches_of_one_length, constants
from embaudit.measures.layers.terms import largest_singular_values
from embaudit.measures.length import HeadLength
from embaudit.words.errors import MeasureError

if TYPE_CHECKING:
    import torch


def claimed_bound(n: int | np.ndarray, sigma_s: np.ndarray) -> np.ndarray:
    """√(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1)), elementwise."""
    steepness = 2 * np.sqrt(1 + np.exp(-2 * np.square(sigma_s))) * (np.asarray(n) - 1.0) ** 1.5
    return np.asarray(np.sqrt(n / (steepness + 1)))


# One layer's attention weights per batch, read a dozen times: 2^22 float32 are 16 MB, which stay in a CPU's caches.
WEIGHTS_PER_BATCH = {"cpu": 2**22}
ON_OTHER_DEVICES = 2**25


@dataclass
class _HeadSums:
    """Sums over texts for one layer at one length, by name (heads,), with the number of texts in each."""

    heads: int
    texts: int = 0
    total: dict[str, np.ndarray] = field(default_factory=dict)
    counted: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, name: str, values: np.ndarray) -> None:
        """Add (B, heads) values; NaN means no value."""
        self.total[name] = self.total.get(name, np.zeros(self.heads)) + np.nansum(values, axis=0)
        self.counted[name] = self.counted.get(name, np.zeros(self.heads)) + np.isfinite(values).sum(axis=0)

    def mean(self, name: str, head: int) -> float | None:
        """None if no text has a value."""
        count = self.counted[name][head]
        return float(self.total[name][head] / count) if count else None


def head_lengths(
    encoder: Encoder, spans: Sequence[Sequence[int]], lengths: Sequence[int], progress: Progress = no_progress
) -> list[HeadLength]:
    """Every head of every layer at every length, on prefixes of the same spans.

    Args:
        spans: token ids of each text without special tokens, at least as long as the largest of ``lengths``.
        lengths: without special tokens, each at least 1.
        progress: called with the number of encodes done.

    Raises:
        NotMeasurable: if the checkpoint's architecture is not declared, or does not return its attention weights.
        MeasureError: if a layer gives NaN or infinity.
    """
    import torch

    checkpoint = encoder.checkpoint
    anatomy = anatomy_of(checkpoint.model)
    value_norms = [weights.value_norm for weights in constants(anatomy)]
    found: list[HeadLength] = []
    observer = _Observer(anatomy)
    weights = WEIGHTS_PER_BATCH.get(checkpoint.device.split(":")[0], ON_OTHER_DEVICES)
    with watching(anatomy) as run:
        for length in lengths:
            sequences = [checkpoint.with_special_tokens(span[:length]) for span in spans]
            observer.start()
            sizes = [len(ids) for ids in sequences]
            for positions in batches_of_one_length(sizes, anatomy.heads, encoder.tokens_per_batch, weights):
                ids = torch.tensor([sequences[position] for position in positions], device=checkpoint.device)
                run(ids, observer.on_layer)
                encoder.texts += len(positions)
                encoder.tokens += int(ids.numel())
                progress(len(positions))
            tokens = len(sequences[0]) if sequences else 0
            found += _rows(observer, length, tokens, value_norms)
    return found


class _Observer:
    """Accumulates the layers' values at one length."""

    def __init__(self, anatomy: Anatomy) -> None:
        self.anatomy = anatomy
        # By layer: whether the raw logits are q·kᵀ/√d_h, checked on its first batch.
        self.has_raw_logits: dict[int, bool] = {}
        self.is_causal = True
        self.start()

    def start(self) -> None:
        self.layers = [_HeadSums(self.anatomy.heads) for _ in self.anatomy.layers]

    def on_layer(self, state: LayerState) -> None:
        if state.layer not in self.has_raw_logits:
            require_fit(self.anatomy, state)
            self.has_raw_logits[state.layer] = _softmax_gives(plain_logits(self.anatomy, state), state.attention)
            self.is_causal &= _is_causal(state.attention)
        sums, n = self.layers[state.layer], state.H.shape[1]
        has_raw = self.has_raw_logits[state.layer]
        raw, centred = deviations(plain_logits(self.anatomy, state) if has_raw else _log(state.attention))
        values = {
            "sigma_a": largest_singular_values(state.attention).cpu().numpy(),
            "frobenius": frobenius(state.attention),
            "sigma_s": raw if has_raw else np.full_like(raw, np.nan),
            "sigma_s_centred": centred,
        }
        if not np.isfinite(values["frobenius"]).all():
            raise MeasureError(
                f"Layer {state.layer} gives NaN or infinity at {n} tokens.",
                next_step="In half precision try --dtype float32; otherwise the checkpoint is damaged.",
            )
        for name, end in (("bound", ""), ("bound_centred", "_centred")):
            values[name] = claimed_bound(n, values[f"sigma_s{end}"])
            is_known = np.isfinite(values[name])
            values[f"holds{end}"] = np.where(is_known, values["sigma_a"] <= values[name], np.nan)
        values["hc_energy"] = np.repeat(hc_energy(state.X)[:, None], self.anatomy.heads, axis=1)
        for name, of_texts in values.items():
            sums.add(name, of_texts)
        sums.texts += len(state.H)


def plain_logits(anatomy: Anatomy, state: LayerState) -> torch.Tensor:
    """q·kᵀ/√d_h from the declared weights and attention's input, (B, H, n, n) in the model's dtype."""
    queries, keys = (_projected(anatomy, state, part) for part in ("query", "key"))
    return (queries / anatomy.head_size**0.5) @ keys.transpose(2, 3)


def _projected(anatomy: Anatomy, state: LayerState, part: Part) -> torch.Tensor:
    """(B, H, n, d_h); key heads are repeated for grouped queries."""
    weight, bias = anatomy.matrix(state.layer, part)
    rows = anatomy.rows(part).to(weight.device)
    flat = state.read @ weight[rows].T
    if bias is not None:
        flat = flat + bias[rows]
    heads = anatomy.heads_of(part)
    split = flat.view(*flat.shape[:2], heads, anatomy.head_size).transpose(1, 2)
    return split.repeat_interleave(anatomy.heads // heads, dim=1)


def _softmax_gives(logits: torch.Tensor, attention: torch.Tensor) -> bool:
    """Whether the softmax of the logits is the model's A."""
    import torch

    difference = (torch.softmax(logits.float(), dim=-1) - attention.float()).norm()
    return bool(difference <= TOLERANCE[str(attention.dtype).removeprefix("torch.")] * attention.float().norm())


def _is_causal(attention: torch.Tensor) -> bool:
    return attention.shape[-1] > 1 and not bool(attention.triu(1).any())


def _log(attention: torch.Tensor) -> torch.Tensor:
    """log A; NaN for heads with a zero, whose mean would be −∞."""
    logs = attention.float().log()
    return logs.masked_fill(logs.isinf().flatten(2).any(dim=2)[:, :, None, None], float("nan"))


def frobenius(attention: torch.Tensor) -> np.ndarray:
    """‖PA‖_F, (B, H) float64."""
    A = attention.float()
    return (A - A.mean(dim=2, keepdim=True)).flatten(2).norm(dim=2).double().cpu().numpy()


def deviations(logits: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """σ_s raw and doubly centred, both (B, H) float64: the standard deviations of all n² entries of S, and of PSP.

    With R = S − row means: var S = mean R² + var(row means), and var PSP = mean R² − var(column means of R). The
    softmax ignores row means.
    """
    S = logits.float()
    of_rows = S.mean(dim=3, keepdim=True)
    R = S - of_rows
    within = R.flatten(2).norm(dim=2).double().square() / R.shape[2] ** 2
    between_rows = of_rows[..., 0].double().var(dim=2, correction=0)
    between_columns = R.mean(dim=2).double().var(dim=2, correction=0)
    raw, centred = (within + between_rows).sqrt(), (within - between_columns).clamp(min=0).sqrt()
    return raw.cpu().numpy(), centred.cpu().numpy()


def hc_energy(X: torch.Tensor) -> np.ndarray:
    """‖PX‖_F/‖X‖_F, (B,) float64 in [0, 1]; NaN if X is zero."""
    rows = X.double()
    high = (rows - rows.mean(dim=1, keepdim=True)).flatten(1).norm(dim=1)
    return (high / rows.flatten(1).norm(dim=1)).cpu().numpy()


def _rows(observer: _Observer, length: int, tokens: int, value_norms: Sequence[np.ndarray]) -> list[HeadLength]:
    rows = []
    for layer, sums in enumerate(observer.layers):
        if not sums.texts:
            continue
        for head in range(sums.heads):
            # Every text has these two.
            sigma_a, frobenius_norm = (sums.mean(name, head) or 0.0 for name in ("sigma_a", "frobenius"))
            rows.append(
                HeadLength(
                    layer=layer,
                    head=head,
                    length=length,
                    tokens=tokens,
                    texts=sums.texts,
                    is_causal=observer.is_causal,
                    sigma_a=sigma_a,
                    frobenius=frobenius_norm,
                    sigma_s=sums.mean("sigma_s", head),
                    sigma_s_centred=sums.mean("sigma_s_centred", head),
                    bound=sums.mean("bound", head),
                    bound_centred=sums.mean("bound_centred", head),
                    holds=sums.mean("holds", head),
                    holds_centred=sums.mean("holds_centred", head),
                    sigma_a_value_norm=sigma_a * float(value_norms[layer][head]),
                    hc_energy=sums.mean("hc_energy", head),
                )
            )
    return rows
