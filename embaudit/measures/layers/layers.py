"""Every layer's λ, contraction, r, C, spread, cosine and σ_a for every text, from one forward pass per batch.

For a text of n tokens with layer input H, attention branch Z, Y = Z + H and layer output X, S(M) being the mean squared
distance of M's rows from their mean μ(M) (arXiv 2604.27398, §6):

    λ_h = ‖M_h‖²_op · ‖PA_h‖²_F / (n−1)                 M_h = W_o^h W_v^h; its mean and maximum over heads
    head-averaged: ‖W_o W_v‖²_op · ‖PĀ‖²_F / (n−1)       Ā the mean of the A_h
    multi-head bound: (Σ_h √λ_h)²
    gaussian: Σ_hh' ⟨M_h, M_h'⟩_F ⟨PA_h, PA_h'⟩_F / (d(n−1))      E S(Z)/E S(H) if H's entries are independent Gaussians
    contraction: S(Z)/S(H), measured; also S(Z)/S(norm(H)) if attention reads a norm
    r = S(H)/‖μ(Y)‖²,   C = [S(X)/‖μ(X)‖²] / [S(Y)/‖μ(Y)‖²],   normalised spread = S(X)/‖μ(X)‖²
    within-text cosine: ‖mean of x̂_j‖² = (1/n²) Σ_jk cos(x_j, x_k)
    σ_a = ‖PA_h‖₂, mean over heads (arXiv 2410.24200)

λ ignores biases, as in the paper; measured quantities include them. λ is about the input of attention: in pre-norm
blocks that is norm(H), while H is the residual stream.

Theorem 1 says normalised spread ≤ C(1+√λ)²r; with the measured contraction as λ it follows from the triangle inequality
and must hold for every text.

Pooling averages the last layer's X, or its norm if the model ends with one, as pre-norm models do; their last layer's X
says little about the served vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.anatomy import Anatomy, LayerState, anatomy_of, require_fit, watching
from embaudit.checkpoint.anatomy.watch import Run
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.layers.terms import ValueOutput, centred_products, largest_singular_values, value_output
from embaudit.words.errors import MeasureError

if TYPE_CHECKING:
    import torch


# One layer's attention weights per batch: 2^25 float32 are 128 MB. A larger text runs alone.
WEIGHTS_PER_BATCH = 2**25
# Variants of λ, each a column, with which Theorem 1 is checked.
LAMBDAS = (
    "lambda_head_mean",
    "lambda_head_max",
    "lambda_head_averaged_attention",
    "lambda_multi_head_bound",
    "lambda_gaussian",
    "contraction",
)
RATIOS = (
    *LAMBDAS,
    "contraction_normed",
    "r",
    "c",
    "normalised_spread",
    "within_text_cosine",
    "sigma_a",
)
SPREADS = ("spread_h", "spread_z", "spread_y", "spread_x", "mean_norm_y", "mean_norm_x")


@dataclass(frozen=True)
class LayerBatch:
    """One layer's values for some texts.

    Attributes:
        positions: (B,) indices of the texts in their corpus.
        tokens: n, the same for all of them.
        values: by name (RATIOS and SPREADS), (B,) float64; NaN where undefined.
        heads: by name (lambda, sigma_a, attention_spread), (B, H) float64.
        weights: norms of the layer's W_o W_v, the same for all texts.
    """

    layer: int
    positions: np.ndarray
    tokens: int
    values: dict[str, np.ndarray]
    heads: dict[str, np.ndarray]
    weights: ValueOutput


@dataclass(frozen=True)
class PooledBatch:
    """The token states that are pooled, for some texts.

    Attributes:
        values: their normalised_spread, within_text_cosine, spread_x and mean_norm_x, (B,) float64; NaN where
            undefined.
        has_final_norm: whether they differ from the last layer's output because the model ends with a norm.
    """

    values: dict[str, np.ndarray]
    has_final_norm: bool


def constants(anatomy: Anatomy) -> list[ValueOutput]:
    """Each layer's norms of W_o W_v, computed once for shared layers."""
    known: dict[int, ValueOutput] = {}
    for layer, module in enumerate(anatomy.layers):
        if id(module) not in known:
            known[id(module)] = value_output(anatomy.value_weights(layer), anatomy.output_weights(layer))
    return [known[id(module)] for module in anatomy.layers]


def measure_layers(
    encoder: Encoder, texts: Sequence[str], progress: Progress = no_progress, places: Sequence[int] | None = None
) -> Iterator[LayerBatch | PooledBatch]:
    """All layers' values for every text of at least two tokens, in batches of equal length, shortest first.

    A batch's last layer is followed by the values of the pooled states. A text of at most one token has no spread: all
    its ratios are 0/0, and it is left out.

    Args:
        texts: truncated to the checkpoint's length limit.
        progress: called with the number of texts done.
        places: indices of the texts in their corpus; None: 0, 1, 2, …

    Raises:
        NotMeasurable: if the checkpoint's architecture is not declared, or does not return its attention weights.
        MeasureError: if a layer gives NaN or infinity; the message names the text.
    """
    import torch

    checkpoint = encoder.checkpoint
    anatomy = anatomy_of(checkpoint.model)
    weights = constants(anatomy)
    sequences = encoder.tokenize(texts)
    batches = batches_of_one_length([len(ids) for ids in sequences], anatomy.heads, encoder.tokens_per_batch)
    with watching(anatomy) as run:
        for number, positions in enumerate(batches):
            ids = torch.tensor([sequences[position] for position in positions], device=checkpoint.device)
            named = positions if places is None else np.asarray(places)[positions]
            yield from _run_batch(
                anatomy, weights, run, ids, named, unpooled=checkpoint.prompt.unpooled, is_first=number == 0
            )
            encoder.texts += len(positions)
            encoder.tokens += int(ids.numel())
            progress(len(positions))


def batches_of_one_length(
    lengths: Sequence[int], heads: int, tokens_per_batch: int, weights_per_batch: int = WEIGHTS_PER_BATCH
) -> list[np.ndarray]:
    """Texts of at least two tokens, grouped by exact length, so that no padding or masking is needed."""
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        if length > 1:
            by_length.setdefault(length, []).append(position)
    batches = []
    for n in sorted(by_length):
        rows = max(1, min(tokens_per_batch // n, weights_per_batch // (heads * n * n)))
        positions = np.array(by_length[n])
        batches += [positions[start : start + rows] for start in range(0, len(positions), rows)]
    return batches


def _run_batch(
    anatomy: Anatomy,
    weights: list[ValueOutput],
    run: Run,
    ids: torch.Tensor,
    positions: np.ndarray,
    *,
    unpooled: int,
    is_first: bool,
) -> list[LayerBatch | PooledBatch]:
    import torch

    found: list[LayerBatch | PooledBatch] = []
    X = ids

    def on_layer(state: LayerState) -> None:
        nonlocal X
        if is_first:
            require_fit(anatomy, state)
        found.append(layer_batch(state, weights[state.layer], positions, anatomy.reads_norm))
        X = state.X

    pooled = run(ids, on_layer)
    # Layers attend to all tokens; only pooling may exclude a prompt.
    values = state_values(pooled[:, unpooled:])
    _require_finite("The norm after the last layer", positions, values["spread_x"])
    return [*found, PooledBatch(values, has_final_norm=not torch.equal(pooled, X))]


def state_values(X: torch.Tensor) -> dict[str, np.ndarray]:
    """spread_x, mean_norm_x, normalised spread and within-text cosine of token states (B, n, d), (B,) each."""
    spread, mean = spread_and_mean(X)
    with np.errstate(divide="ignore", invalid="ignore"):
        normalised = spread / mean
    return {
        "spread_x": spread,
        "mean_norm_x": np.sqrt(mean),
        # x/0 is undefined by construction, and is null in the tables.
        "normalised_spread": np.where(np.isfinite(normalised), normalised, np.nan),
        "within_text_cosine": within_text_cosine(X),
    }


def layer_batch(state: LayerState, weights: ValueOutput, positions: np.ndarray, reads_norm: bool) -> LayerBatch:
    """One layer's values for a batch of texts of n > 1 tokens.

    Raises:
        MeasureError: if the layer gives NaN or infinity; the message names the text.
    """
    n = state.H.shape[1]
    products = centred_products(state.attention).cpu().numpy() / (n - 1)
    sigma = largest_singular_values(state.attention).cpu().numpy()
    S_H, _ = spread_and_mean(state.H)
    S_read, _ = spread_and_mean(state.read) if reads_norm else (np.full(len(S_H), np.nan), None)
    S_Z, _ = spread_and_mean(state.Z)
    # Sum in float64: Theorem 1 is the triangle inequality, which a Y rounded to half precision would violate.
    S_Y, mean_Y = spread_and_mean(state.Z.double() + state.H.double())
    alone = state_values(state.X)
    S_X, mean_X = alone["spread_x"], np.square(alone["mean_norm_x"])
    _require_finite(f"Layer {state.layer}", positions, S_X, products)
    lambda_heads = weights.head_norm**2 * np.diagonal(products, axis1=1, axis2=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "lambda_head_mean": lambda_heads.mean(axis=1),
            "lambda_head_max": lambda_heads.max(axis=1),
            "lambda_head_averaged_attention": weights.norm**2 * products.mean(axis=(1, 2)),
            "lambda_multi_head_bound": np.sqrt(lambda_heads).sum(axis=1) ** 2,
            "lambda_gaussian": (products * weights.products).sum(axis=(1, 2)) / weights.dimension,
            "contraction": S_Z / S_H,
            "contraction_normed": S_Z / S_read,
            "r": S_H / mean_Y,
            "c": (S_X / mean_X) / (S_Y / mean_Y),
            "sigma_a": sigma.mean(axis=1),
            "spread_h": S_H,
            "spread_z": S_Z,
            "spread_y": S_Y,
            "mean_norm_y": np.sqrt(mean_Y),
            **alone,
        }
    # 0/0 and x/0 are undefined by construction (equal tokens, a zero mean), and are null in the tables.
    values = {name: np.where(np.isfinite(value), value, np.nan) for name, value in values.items()}
    attention_spread = np.diagonal(products, axis1=1, axis2=2)
    heads = {"lambda": lambda_heads, "sigma_a": sigma, "attention_spread": attention_spread}
    return LayerBatch(state.layer, positions, n, values, heads, weights)


def spread_and_mean(M: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(S(M), ‖μ(M)‖²) of each text, (B,) float64 from (B, n, d)."""
    rows = M.double()
    mean = rows.mean(dim=1, keepdim=True)
    spread = (rows - mean).square().sum(dim=2).mean(dim=1)
    return spread.cpu().numpy(), mean.square().sum(dim=2)[:, 0].cpu().numpy()


def within_text_cosine(X: torch.Tensor) -> np.ndarray:
    """(1/n²) Σ_jk cos(x_j, x_k) = ‖mean of x̂_j‖², (B,) float64 in [0, 1]; a zero token vector counts as 0."""
    rows = X.double()
    unit = rows / rows.norm(dim=2, keepdim=True).clamp(min=1e-300)
    return unit.mean(dim=1).square().sum(dim=1).cpu().numpy()


def _require_finite(what: str, positions: np.ndarray, *per_text: np.ndarray) -> None:
    finite = np.all([np.isfinite(values).reshape(len(positions), -1).all(axis=1) for values in per_text], axis=0)
    if not finite.all():
        raise MeasureError(
            f"{what} gives NaN or infinity for text {int(positions[int(np.argmin(finite))])}.",
            kept="Everything staged so far is kept.",
            next_step="In half precision try --dtype float32; otherwise the checkpoint is damaged.",
        )
