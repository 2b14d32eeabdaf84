"""Loads the transformer of a checkpoint, with stricter checks than the transformers library, and shares it.

What transformers only warns about (missing tensors, mismatched shapes) is an error here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from embaudit.errors import CheckpointError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Weights not used by sentence embeddings; checkpoints are often saved without them.
UNUSED_WEIGHTS = ("pooler.",)
# Of an encoder-decoder, only the encoder is used, as in sentence-transformers.
ENCODERS = {
    "t5": "T5EncoderModel",
    "mt5": "MT5EncoderModel",
    "umt5": "UMT5EncoderModel",
    "longt5": "LongT5EncoderModel",
}
# transformers builds models under process-wide settings (dtype, device), so only one thread may do it at a time.
ONE_AT_A_TIME = threading.Lock()


# An audit needs one checkpoint, or two while a fine-tuned one is compared with its backbone.
@lru_cache(maxsize=2)
def load_model(
    folder: Path,
    weights_sha256: str,
    config_sha256: str,
    device: str,
    dtype: str,
    allow_pickle: bool,
    trust_remote_code: bool,
) -> PreTrainedModel:
    """A model on its device, loaded once per content; hold ``ONE_AT_A_TIME`` while calling it.

    Raises:
        CheckpointError: if it cannot be read, or its weights are incomplete or not finite.
    """
    import torch

    # The hashes are only part of the cache key: files that changed under the same path are read again.
    model, report = _read_model(folder, dtype, allow_pickle, trust_remote_code)
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(UNUSED_WEIGHTS))
    if missing:
        raise CheckpointError(
            f"The weights of {folder} lack {_count(missing, 'tensor')} that the model needs, {missing[0]} first: "
            "they would be random.",
            next_step="Check that config.json belongs to these weights.",
        )
    damaged = [
        name
        for name, tensor in model.named_parameters()
        if not name.startswith(UNUSED_WEIGHTS) and not torch.isfinite(tensor).all()
    ]
    if damaged:
        raise CheckpointError(
            f"The weights of {folder} contain NaN or infinity in {_count(damaged, 'tensor')}, {damaged[0]} first.",
            next_step="The file is damaged or training diverged: download it again, or audit an earlier revision.",
        )
    return model.to(device).eval()


def _read_model(
    folder: Path, dtype: str, allow_pickle: bool, trust_remote_code: bool
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The model, and transformers' report of missing tensors."""
    import torch
    import transformers

    try:
        with quiet_transformers():
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
            _refuse_kernels(config, trust_remote_code)
            if hasattr(config, "use_cache"):
                config.use_cache = False  # a decoder would keep keys and values that are not needed
            kind: Any = getattr(transformers, ENCODERS.get(config.model_type, "AutoModel"))
            model, report = kind.from_pretrained(
                folder,
                config=config,
                dtype=getattr(torch, dtype),
                use_safetensors=None if allow_pickle else True,
                trust_remote_code=trust_remote_code,
                output_loading_info=True,
            )
    except CheckpointError:
        raise
    except Exception as error:  # safetensors, pickle and config validation raise their own exceptions
        reason, next_step = _why_not_read(error)
        raise CheckpointError(f"transformers cannot load {folder}: {reason}", next_step=next_step) from error
    return model, report


def _refuse_kernels(config: Any, trust_remote_code: bool) -> None:
    """Refuse attention kernels from the hub (owner/kernel), which are compiled code.

    If the package ``kernels`` is installed, transformers fetches and runs them whatever ``trust_remote_code`` says.
    """
    named = [getattr(config, "_attn_implementation", None), getattr(config, "_experts_implementation", None)]
    kernels = [str(name) for name in named if name is not None and "/" in str(name)]
    if kernels and not trust_remote_code:
        raise CheckpointError(
            f"The checkpoint's config.json uses the attention kernel {kernels[0]}, compiled code from the hub.",
            next_step="Remove it from config.json, or add --trust-remote-code if you trust it.",
        )


def _why_not_read(error: Exception) -> tuple[str, str]:
    """A reason and what to do about it, because transformers' own messages can be misleading."""
    if isinstance(error, UnpicklingError):  # its message recommends disabling the protection
        return "its pickle is broken or contains more than tensors.", "Convert it to safetensors where it was made."
    if "ignore_mismatched_sizes" in str(error):
        return (
            "the shapes of its weights do not match its config.json.",
            "Check that config.json belongs to these weights.",
        )
    if "trust_remote_code" in str(error):
        return (
            "it requires its own code to be run.",
            "Review that code and add --trust-remote-code if you trust it.",
        )
    return one_line(error), "Check that the folder is complete and its files are not truncated."


def embedding_rows(model: PreTrainedModel, source: str) -> int:
    """Rows of the input embedding matrix.

    Raises:
        CheckpointError: if the model has none.
    """
    try:
        return int(model.get_input_embeddings().weight.shape[0])
    except (AttributeError, NotImplementedError) as error:
        raise CheckpointError(
            f"{source} is a {type(model).__name__}, which has no token embeddings.",
            next_step="embaudit audits text embedding checkpoints.",
        ) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Suppress progress bars and load reports: problems are reported once, by an exception."""
    from transformers.utils import logging

    verbosity, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()


def _count(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}" + ("" if len(names) == 1 else "s")
