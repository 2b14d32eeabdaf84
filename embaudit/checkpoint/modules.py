"""The pipeline that a checkpoint declares: transformer, pooling, and what comes after pooling.

Reads the sentence-transformers layout (``modules.json`` and one folder a module); a plain transformers folder
gets mean pooling, as sentence-transformers itself does. An unknown module is an error and not a guess:
leaving one out would audit another embedding function than the one that is served.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from embaudit.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    import torch

PoolingMode = Literal["mean", "cls", "lasttoken", "max", "weightedmean", "mean_sqrt_len_tokens"]
POOLING_MODES: tuple[str, ...] = get_args(PoolingMode)
AFTER_POOLING = ("Dense", "Normalize", "LayerNorm", "Dropout")
# sentence-transformers before 5.x wrote one flag a mode.
LEGACY_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class Module:
    """One declared step after pooling."""

    kind: str
    path: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """Everything beside weights and tokenizer that decides how a text becomes a vector."""

    transformer_path: str
    tokenizer_path: str
    pooling: tuple[str, ...]
    modules: tuple[Module, ...]
    max_length: int | None
    is_lowercased: bool

    def as_json(self) -> dict[str, Any]:
        """A canonical form for hashing: folders do not count, their content does."""
        return {
            "pooling": list(self.pooling),
            "modules": [{"kind": module.kind, "config": module.config} for module in self.modules],
            "max_length": self.max_length,
            "is_lowercased": self.is_lowercased,
        }

    def with_overrides(self, pooling: str | None, max_length: int | None) -> Recipe:
        """The same pipeline with the user's own pooling or length limit."""
        if pooling is not None and pooling not in POOLING_MODES:
            raise UsageError(
                f"No pooling is called {pooling!r}.", next_step=f"Choose one of: {', '.join(POOLING_MODES)}."
            )
        if max_length is not None and max_length < 1:
            raise UsageError(f"A maximum length of {max_length} tokens leaves nothing to encode.")
        return replace(
            self,
            pooling=(pooling,) if pooling else self.pooling,
            max_length=max_length or self.max_length,
        )


def read_recipe(folder: Path) -> Recipe:
    """Read the declared pipeline of a checkpoint folder.

    Raises:
        CheckpointError: if a file is broken or a declared module is not one of those that can be run.
    """
    declared = read_json(folder / "modules.json") if (folder / "modules.json").is_file() else None
    if declared is None:
        return Recipe("", "", ("mean",), (), _max_length(folder, ""), is_lowercased=False)
    kinds = [str(entry["type"]).rsplit(".", 1)[-1] for entry in declared]
    if not kinds or kinds[0] != "Transformer":
        raise CheckpointError(
            f"{folder / 'modules.json'} starts with {kinds[0] if kinds else 'nothing'}, not with a Transformer.",
            next_step="embaudit audits transformer checkpoints; static and bag-of-words models have no layers to audit.",
        )
    transformer_path = str(declared[0].get("path", ""))
    pooling: tuple[str, ...] | None = None
    modules: list[Module] = []
    for kind, entry in zip(kinds[1:], declared[1:], strict=True):
        path = str(entry.get("path", ""))
        config_file = folder / path / "config.json"
        config = read_json(config_file) if path and config_file.is_file() else {}
        if kind == "Pooling" and pooling is None:
            pooling = _pooling_modes(config, config_file)
        elif kind in AFTER_POOLING and pooling is not None:
            _refuse_token_level(kind, config, config_file)
            modules.append(Module(kind, path, config))
        else:
            raise CheckpointError(
                f"{folder / 'modules.json'} declares a module {entry['type']} that embaudit does not run "
                f"{'before pooling' if pooling is None else 'after pooling'}.",
                next_step=f"Known are Transformer, Pooling and then {', '.join(AFTER_POOLING)}.",
            )
    if pooling is None:
        raise CheckpointError(
            f"{folder / 'modules.json'} declares no pooling, so that there is no vector a text.",
            next_step="embaudit audits one-vector embedding checkpoints.",
        )
    transformer_config = _sentence_bert_config(folder / transformer_path)
    return Recipe(
        transformer_path,
        transformer_path,
        pooling,
        tuple(modules),
        _max_length(folder, transformer_path),
        is_lowercased=bool(transformer_config.get("do_lower_case", False)),
    )


def pool(token_embeddings: torch.Tensor, mask: torch.Tensor, modes: tuple[str, ...]) -> torch.Tensor:
    """Pool token embeddings into one vector a text; several modes are concatenated.

    Args:
        token_embeddings: (B, n, d).
        mask: (B, n), 1 at attended tokens; padding is on the right.
        modes: names from ``POOLING_MODES``.

    Returns:
        (B, d · len(modes)), float32 at least.
    """
    import torch

    X = (
        token_embeddings.float()
        if token_embeddings.dtype in (torch.float16, torch.bfloat16)
        else token_embeddings
    )
    weights = mask.to(X.dtype).unsqueeze(-1)
    return torch.cat([_pool_one(X, weights, mode) for mode in modes], dim=-1)


def _pool_one(X: torch.Tensor, weights: torch.Tensor, mode: str) -> torch.Tensor:
    import torch

    if mode == "cls":
        return X[:, 0]
    if mode == "lasttoken":
        last = weights.squeeze(-1).sum(1).long().clamp(min=1) - 1
        return X[torch.arange(len(X), device=X.device), last]
    if mode == "max":
        return X.masked_fill(weights == 0, float("-inf")).amax(1)
    if mode == "weightedmean":  # SGPT: later tokens weigh more, 1, 2, …, n
        weights = weights * torch.arange(1, X.shape[1] + 1, device=X.device, dtype=X.dtype).view(1, -1, 1)
    total = (X * weights).sum(1)
    count = weights.sum(1).clamp(min=1e-9)
    return total / (count.sqrt() if mode == "mean_sqrt_len_tokens" else count)


def build_after_pooling(modules: tuple[Module, ...], folder: Path, *, allow_pickle: bool) -> torch.nn.Module:
    """One module (B, d) -> (B, D) that runs Dense, LayerNorm and Normalize in the declared order."""
    import torch

    class UnitLength(torch.nn.Module):
        def forward(self, vectors: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.normalize(vectors, dim=-1)

    steps: list[torch.nn.Module] = []
    for module in modules:
        if module.kind == "Normalize":
            steps.append(UnitLength())
        elif module.kind == "Dense":
            steps += _dense(module, folder / module.path, allow_pickle=allow_pickle)
        elif module.kind == "LayerNorm":
            norm = torch.nn.LayerNorm(int(module.config["dimension"]))
            _load_state(norm, folder / module.path, "norm.", allow_pickle=allow_pickle)
            steps.append(norm)
        # Dropout declares nothing that happens at inference.
    return torch.nn.Sequential(*steps).eval()


def _dense(module: Module, folder: Path, *, allow_pickle: bool) -> list[torch.nn.Module]:
    import torch

    config = module.config
    linear = torch.nn.Linear(
        int(config["in_features"]), int(config["out_features"]), bias=bool(config.get("bias", True))
    )
    _load_state(linear, folder, "linear.", allow_pickle=allow_pickle)
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    # Only torch's own activations: a dotted path from a checkpoint is never imported.
    kind = (
        getattr(torch.nn, activation.rsplit(".", 1)[-1], None) if activation.startswith("torch.nn.") else None
    )
    if kind is None or not issubclass(kind, torch.nn.Module):
        raise CheckpointError(
            f"{folder / 'config.json'} names an activation that torch.nn does not have: {activation}."
        )
    return [linear, kind()]


def _load_state(layer: torch.nn.Module, folder: Path, prefix: str, *, allow_pickle: bool) -> None:
    import torch
    from safetensors.torch import load_file

    if (folder / "model.safetensors").is_file():
        state = load_file(folder / "model.safetensors")
    elif allow_pickle and (folder / "pytorch_model.bin").is_file():
        state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    else:
        raise CheckpointError(
            f"{folder} holds no model.safetensors.",
            next_step="If it holds a pytorch_model.bin that you trust, add --allow-pickle.",
        )
    try:
        layer.load_state_dict({name.removeprefix(prefix): tensor for name, tensor in state.items()})
    except RuntimeError as error:
        raise CheckpointError(f"The weights in {folder} do not fit its config.json: {error}.") from error


def _pooling_modes(config: dict[str, Any], source: Path) -> tuple[str, ...]:
    declared = config.get("pooling_mode")
    if declared is None:
        declared = [mode for flag, mode in LEGACY_POOLING_FLAGS.items() if config.get(flag)]
    modes = (declared,) if isinstance(declared, str) else tuple(declared)
    unknown = [mode for mode in modes if mode not in POOLING_MODES]
    if unknown or not modes:
        raise CheckpointError(
            f"{source} declares pooling {', '.join(unknown) or '(none)'}, which embaudit does not know.",
            next_step=f"Name one yourself: --pooling {'|'.join(POOLING_MODES)}.",
        )
    return modes


def _refuse_token_level(kind: str, config: dict[str, Any], source: Path) -> None:
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise CheckpointError(
                f"{source} applies {kind} to {config[key]!r}; embaudit runs modules on the sentence embedding only."
            )


def _sentence_bert_config(folder: Path) -> dict[str, Any]:
    for name in (
        "sentence_bert_config.json",
        "sentence_roberta_config.json",
        "sentence_xlm-roberta_config.json",
    ):
        if (folder / name).is_file():
            return dict(read_json(folder / name))
    return {}


def _max_length(folder: Path, transformer_path: str) -> int | None:
    value = _sentence_bert_config(folder / transformer_path).get("max_seq_length")
    return int(value) if value else None


def read_json(path: Path) -> Any:
    """A checkpoint's JSON file.

    Raises:
        CheckpointError: if it is missing or broken.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}.") from error
