"""From token embeddings to the served vector: pooling, and the modules after it.

The arithmetic is that of sentence-transformers; the tests compare every mode and module.
"""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint.files import is_pickle, weight_files
from embaudit.checkpoint.modules import Module
from embaudit.checkpoint.tensors import refuse_ungathered
from embaudit.words.errors import CheckpointError, one_line

if TYPE_CHECKING:
    import torch


def pool(token_embeddings: torch.Tensor, mask: torch.Tensor, modes: tuple[str, ...], unpooled: int = 0) -> torch.Tensor:
    """Pool token embeddings into one vector per text; several modes are concatenated.

    Args:
        token_embeddings: (B, n, d).
        mask: (B, n), 1 at attended tokens; padding is on the right.
        modes: names from ``POOLING_MODES``.
        unpooled: how many leading positions are left out; the others keep their weights.

    Returns:
        (B, d · len(modes)), float32 at least.
    """
    import torch

    is_half = token_embeddings.dtype in (torch.float16, torch.bfloat16)
    X = token_embeddings.float() if is_half else token_embeddings
    lengths = mask.sum(1)
    weights = mask.to(X.dtype).unsqueeze(-1)
    if unpooled:
        weights = weights.clone()
        weights[:, :unpooled] = 0
    return torch.cat([_pool_one(X, weights, lengths, mode, unpooled) for mode in modes], dim=-1)


def _pool_one(X: torch.Tensor, weights: torch.Tensor, lengths: torch.Tensor, mode: str, unpooled: int) -> torch.Tensor:
    import torch

    texts = torch.arange(len(X), device=X.device)
    if mode == "cls":
        # The first pooled token; if there is none, the first token.
        return X[texts, torch.where(lengths > unpooled, unpooled, 0)]
    if mode == "lasttoken":
        last = lengths.long().clamp(min=1) - 1
        return X[texts, last] * weights[texts, last]
    if mode == "max":
        return X.masked_fill(weights == 0, float("-inf")).amax(1)
    if mode == "weightedmean":  # SGPT: later tokens weigh more, 1, 2, …, n
        weights = weights * torch.arange(1, X.shape[1] + 1, device=X.device, dtype=X.dtype).view(1, -1, 1)
    total = (X * weights).sum(1)
    count = weights.sum(1).clamp(min=1e-9)
    return total / (count.sqrt() if mode == "mean_sqrt_len_tokens" else count)


def build_after_pooling(
    modules: tuple[Module, ...], folder: Path, *, allow_pickle: bool, truncate_dim: int | None = None
) -> torch.nn.Module:
    """One module (B, d) -> (B, D) that runs Dense, LayerNorm and Normalize in the declared order.

    Args:
        modules: the declared modules after pooling.
        folder: the checkpoint's folder, to which their paths are relative.
        allow_pickle: whether weights may be read from pickles.
        truncate_dim: how many dimensions are served (Matryoshka), truncated after the last module.

    Raises:
        CheckpointError: if a module's config or weights are missing, broken or do not match.
    """
    import torch

    class UnitLength(torch.nn.Module):
        def forward(self, vectors: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.normalize(vectors, dim=-1)

    class FirstDimensions(torch.nn.Module):
        def forward(self, vectors: torch.Tensor) -> torch.Tensor:
            return vectors[:, :truncate_dim]

    steps: list[torch.nn.Module] = []
    for module in modules:
        path = folder / module.path
        if module.kind == "Normalize":
            steps.append(UnitLength())
        elif module.kind == "Dense":
            steps.append(_with_weights(_dense(module, path), path, allow_pickle=allow_pickle))
        elif module.kind == "LayerNorm":
            norm = torch.nn.Sequential()
            norm.add_module("norm", torch.nn.LayerNorm(_size(module, path, "dimension")))
            steps.append(_with_weights(norm, path, allow_pickle=allow_pickle))
        # Dropout does nothing at inference.
    if truncate_dim is not None:
        steps.append(FirstDimensions())
    return torch.nn.Sequential(*steps).eval()


def _dense(module: Module, folder: Path) -> torch.nn.Module:
    import torch

    inputs, outputs = _size(module, folder, "in_features"), _size(module, folder, "out_features")
    activation = _activation(module, folder)

    class Dense(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(inputs, outputs, bias=bool(module.config.get("bias", True)))
            self.activation_function = activation
            self.is_residual = bool(module.config.get("use_residual", False))
            if self.is_residual and inputs != outputs:
                self.residual = torch.nn.Linear(inputs, outputs, bias=False)

        def forward(self, vectors: torch.Tensor) -> torch.Tensor:
            projected: torch.Tensor = self.activation_function(self.linear(vectors))
            if self.is_residual:
                projected = projected + (vectors if inputs == outputs else self.residual(vectors))
            return projected

    return Dense()


def _activation(module: Module, folder: Path) -> torch.nn.Module:
    import torch

    declared = str(module.config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    # Only torch's own activations: a dotted path given in a checkpoint is never imported.
    kind: Any = getattr(torch.nn, declared.rsplit(".", 1)[-1], None) if declared.startswith("torch.nn.") else None
    if isinstance(kind, type) and issubclass(kind, torch.nn.Module):
        try:
            return kind()
        except TypeError:  # a layer that takes sizes is not an activation
            pass
    raise CheckpointError(
        f"{folder / 'config.json'} names an activation that torch.nn does not have: {declared}.",
        next_step="embaudit only runs torch's own activations, never code named in a checkpoint.",
    )


def _size(module: Module, folder: Path, key: str) -> int:
    value = module.config.get(key)
    if not isinstance(value, int) or value < 1:
        raise CheckpointError(
            f"{folder / 'config.json'} has no {key} for the {module.kind} module.",
            next_step="Check that the folder is complete.",
        )
    return value


def _with_weights(layer: torch.nn.Module, folder: Path, *, allow_pickle: bool) -> torch.nn.Module:
    import torch
    from safetensors.torch import load_file

    files = weight_files(folder)
    pickles = [file.name for file in files if is_pickle(file)]
    if not files or (pickles and not allow_pickle):
        raise CheckpointError(
            f"{folder} has no model.safetensors" + (f", only the pickle {pickles[0]}." if pickles else "."),
            next_step="If you trust that pickle's origin, add --allow-pickle."
            if pickles
            else "Check that the folder is complete.",
        )
    try:
        state: dict[str, torch.Tensor] = {}
        for file in files:
            state |= torch.load(file, weights_only=True, map_location="cpu") if is_pickle(file) else load_file(file)
        layer.load_state_dict(state)
    except Exception as error:  # safetensors and pickle raise their own exceptions
        refuse_ungathered(folder)
        reason = "not a pickle of tensors only." if isinstance(error, UnpicklingError) else one_line(error)
        raise CheckpointError(
            f"The weights in {folder} cannot be read or do not match its config.json: {reason}",
            next_step="Check that the folder is complete and its files are not truncated.",
        ) from error
    # The model may run in half precision; after pooling everything is computed in float32.
    layer = layer.float()
    damaged = [name for name, tensor in layer.named_parameters() if not torch.isfinite(tensor).all()]
    if damaged:
        raise CheckpointError(
            f"The weights in {folder} contain NaN or infinity, in {damaged[0]}.",
            next_step="The file is damaged or training diverged: download it again, or audit an earlier revision.",
        )
    return layer
