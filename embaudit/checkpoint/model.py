"""Loads the transformer of a checkpoint, with stricter checks than the transformers library, and shares it.

What transformers only warns about (missing tensors, mismatched shapes) is an error here.
"""

from __future__ import annotations

import gc
import json
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint.files import is_pickle, weight_files
from embaudit.checkpoint.memory import bytes_in_memory, fits, require_room
from embaudit.checkpoint.settings import TransformerSettings
from embaudit.checkpoint.streamed import giving_back, giving_back_meanwhile, stay_in_files, units_of, was_read
from embaudit.checkpoint.tensors import refuse_ungathered, stored_tensors
from embaudit.words.errors import CheckpointError, one_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# Weights not used by sentence embeddings; checkpoints are often saved without them.
UNUSED_WEIGHTS = ("pooler.",)
# Of an encoder-decoder, only the encoder is used, as in sentence-transformers: config class, module, encoder class.
ENCODERS = (
    ("T5Config", "t5", "T5EncoderModel"),
    ("MT5Config", "mt5", "MT5EncoderModel"),
    ("UMT5Config", "umt5", "UMT5EncoderModel"),
    ("UdopConfig", "udop", "UdopEncoderModel"),
    ("LongT5Config", "longt5", "LongT5EncoderModel"),
    ("ProphetNetConfig", "prophetnet", "ProphetNetEncoder"),
    ("SwitchTransformersConfig", "switch_transformers", "SwitchTransformersEncoderModel"),
    ("BlenderbotConfig", "blenderbot", "BlenderbotEncoder"),
    ("BlenderbotSmallConfig", "blenderbot_small", "BlenderbotSmallEncoder"),
    ("M2M100Config", "m2m_100", "M2M100Encoder"),
    ("PegasusConfig", "pegasus", "PegasusEncoder"),
    ("PegasusXConfig", "pegasus_x", "PegasusXEncoder"),
    ("MarianConfig", "marian", "MarianEncoder"),
    ("T5GemmaConfig", "t5gemma", "T5GemmaEncoderModel"),
    ("T5Gemma2TextConfig", "t5gemma2", "T5Gemma2Encoder"),
)
# What training leaves in front of names when something wrapped around the model is saved in its place.
WRAPPERS = {
    "module.": "DataParallel",
    "_orig_mod.": "torch.compile",
    "base_model.model.": "a peft adapter",
    "_fsdp_wrapped_module.": "FSDP",
    "0.auto_model.": "a whole SentenceTransformer",
    "0.model.": "a whole SentenceTransformer",
}
# What safetensors calls the precisions that a model can be in.
PRECISIONS = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
# Bytes of weights above which reading them in every pass costs nothing beside it, and memory is what is short: .49
# billion parameters are checked in 1.8 GB in place of 2.8, in the same time.
LARGE = 1_000_000_000
# transformers builds models under process-wide settings (dtype, device), so only one thread may do it at a time.
ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Overrides:
    """What a checkpoint's settings change about loading, as JSON, so that it can be part of a key."""

    config: str = "{}"
    model: str = "{}"

    @classmethod
    def of(cls, settings: TransformerSettings) -> Overrides:
        return cls(*(json.dumps(dict(part), sort_keys=True) for part in (settings.config, settings.model)))


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
    overrides: Overrides = Overrides(),
    may_stay_in_files: bool = False,
) -> PreTrainedModel:
    """A model on its device, loaded once per content; hold ``ONE_AT_A_TIME`` while calling it.

    Args:
        may_stay_in_files: whether weights in half precision that are large in this precision, or do not fit into
            memory, are read from their files layer by layer, in every pass.

    Raises:
        CheckpointError: if it cannot be read, or its weights are incomplete or not finite.
        TooLittleMemory: if they do not fit.
    """
    # The hashes are only part of the cache key: files that changed under the same path are read again.
    # In the precision that they are stored in, weights stay mapped: the system needs no memory of its own for them.
    stored, files = stored_dtype(folder), weight_files(folder)
    if stored != dtype:
        weights = bytes_in_memory(files, dtype)
        is_large = weights > LARGE or not fits(weights)
        if may_stay_in_files and stored and is_large and not trust_remote_code and device == "cpu":
            return _in_files(folder, dtype, allow_pickle, overrides)
        require_room(folder, weights, f"in {dtype}")
    # Of files in several precisions some tensors stay mapped, and a stranger's code may write into any.
    is_all_copied = bool(stored) and stored != dtype and not trust_remote_code
    with giving_back_meanwhile(files if is_all_copied else ()):
        model, report = _read_model(folder, dtype, allow_pickle, trust_remote_code, overrides)
    require_whole(folder, model, report)
    return model.to(device).eval()


def _in_files(folder: Path, dtype: str, allow_pickle: bool, overrides: Overrides) -> PreTrainedModel:
    """A model whose layers are in memory, in a wider precision, while each of them computes.

    Raises:
        TooLittleMemory: if the largest layer does not fit.
    """
    import torch

    model = load_in_files(folder, allow_pickle, trust_remote_code=False, overrides=overrides)
    wide = getattr(torch, dtype)
    largest = max(unit.numbers for unit in units_of(model)) * wide.itemsize
    require_room(folder, largest, f"for the largest layer in {dtype}: the others stay in their files")
    return stay_in_files(model, wide, weight_files(folder))


def forget_models() -> None:
    """Keep no model for the next time: those that nobody holds are no longer in memory."""
    import torch

    load_model.cache_clear()
    # A module and its hooks hold each other.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def load_in_files(
    folder: Path, allow_pickle: bool, trust_remote_code: bool, overrides: Overrides = Overrides()
) -> PreTrainedModel:
    """A model on the CPU whose weights stay in its files, in the precision that they have there.

    Weights of several precisions, and those that transformers merges or splits, are in memory.

    Raises:
        CheckpointError: if it cannot be read, or its weights are incomplete or not finite.
    """
    dtype = stored_dtype(folder) or "float32"
    model, report = _read_model(folder, dtype, allow_pickle, trust_remote_code, overrides)
    with giving_back(weight_files(folder)):
        require_whole(folder, model, report)
    return model.eval()


def stored_dtype(folder: Path) -> str:
    """The one precision of all the floating-point tensors in a folder's safetensors files.

    Empty if there are several, or the files are pickles or cannot be read.
    """
    try:
        files = weight_files(folder)
        tensors = {} if any(is_pickle(path) for path in files) else stored_tensors(files)
    except CheckpointError:  # whoever loads it says so
        return ""
    kinds = {stored.dtype for stored in tensors.values() if "F" in stored.dtype}
    return PRECISIONS.get(kinds.pop(), "") if len(kinds) == 1 else ""


def require_whole(folder: Path, model: PreTrainedModel, report: Mapping[str, Any]) -> None:
    """Refuse a model that lacks tensors, or whose tensors are not finite.

    Raises:
        CheckpointError: naming the first one.
    """
    missing = sorted(name for name in report["missing_keys"] if not name.startswith(UNUSED_WEIGHTS))
    if missing:
        refuse_ungathered(folder)
        raise _lacking(folder, missing, report["unexpected_keys"])
    damaged = [
        name
        for name, tensor in model.named_parameters()
        if not name.startswith(UNUSED_WEIGHTS) and not _is_finite(tensor)
    ]
    if damaged:
        raise CheckpointError(
            f"The weights of {folder} contain NaN or infinity in {_count(damaged, 'tensor')}, {damaged[0]} first.",
            next_step="The file is damaged or training diverged: download it again, or audit an earlier revision.",
        )


def _is_finite(tensor: torch.Tensor) -> bool:
    """By the two ends, without a mask of the tensor's size: NaN is both ends of whatever it is in."""
    import torch

    is_finite = not tensor.numel() or all(bool(torch.isfinite(end)) for end in torch.aminmax(tensor.detach()))
    was_read()
    return is_finite


def _lacking(folder: Path, missing: Sequence[str], unexpected: Collection[str]) -> CheckpointError:
    """The error for weights that the model does not find, which says how the names in the file differ."""
    lacks = f"The weights of {folder} lack {_count(missing, 'tensor')} that the model needs, {missing[0]} first: "
    if any("decoder." in name for name in unexpected) and any("encoder." in name for name in unexpected):
        return CheckpointError(
            f"{lacks}the file holds a whole encoder-decoder, of which only the encoder gives embeddings, and under "
            "other names. In sentence-transformers they are random.",
            next_step="Save the encoder alone: AutoModel.from_pretrained(FOLDER).get_encoder().save_pretrained(OTHER)",
        )
    prefix, wrapper = _prefix_of(missing, unexpected)
    if not prefix:
        return CheckpointError(
            f"{lacks}they would be random.", next_step="Check that config.json belongs to these weights."
        )
    return CheckpointError(
        f"{lacks}in the file their names begin with {prefix!r}"
        + (f", as {wrapper} leaves them" if wrapper else "")
        + ", so they would be random.",
        next_step=f"Strip it: tensors = load_file(FILE); save_file({{name.removeprefix({prefix!r}): tensor for name, "
        'tensor in tensors.items()}, FILE, metadata={"format": "pt"})  # both of safetensors.torch',
    )


def _prefix_of(missing: Sequence[str], unexpected: Collection[str]) -> tuple[str, str]:
    """What the file's names have in front of the model's, and what leaves it there; empty if nothing fits."""
    for prefix, wrapper in WRAPPERS.items():
        if any(name.startswith(prefix) for name in unexpected):
            return prefix, wrapper
    # The same unknown prefix before most names.
    fronts = Counter(
        name.removesuffix(missed) for name in unexpected for missed in missing if name.endswith(f".{missed}")
    )
    prefix, count = fronts.most_common(1)[0] if fronts else ("", 0)
    return (prefix, "") if 2 * count > len(missing) else ("", "")


def _read_model(
    folder: Path, dtype: str, allow_pickle: bool, trust_remote_code: bool, overrides: Overrides
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The model, and transformers' report of missing tensors."""
    import torch
    import transformers

    try:
        with quiet_transformers():
            config = transformers.AutoConfig.from_pretrained(
                folder, trust_remote_code=trust_remote_code, **json.loads(overrides.config)
            )
            refuse_elsewhere(config, folder, trust_remote_code)
            _refuse_unread_positions(config, folder)
            arguments = json.loads(overrides.model)
            refuse_kernels(config, arguments, trust_remote_code)
            if hasattr(config, "use_cache"):
                config.use_cache = False  # a decoder would keep keys and values that are not needed
            config.return_dict = True  # as sentence-transformers asks in each call
            kind, config = model_class(config)
            model, report = kind.from_pretrained(
                folder,
                config=config,
                dtype=getattr(torch, dtype),
                use_safetensors=None if allow_pickle else True,
                trust_remote_code=trust_remote_code,
                output_loading_info=True,
                **arguments,
            )
    except CheckpointError:
        raise
    except Exception as error:  # safetensors, pickle and config validation raise their own exceptions
        refuse_ungathered(folder)
        reason, next_step = _why_not_read(error)
        raise CheckpointError(f"transformers cannot load {folder}: {reason}", next_step=next_step) from error
    return model, report


def model_class(config: Any) -> tuple[Any, Any]:
    """The class that is loaded, and its config: the encoder alone of an encoder-decoder."""
    import transformers

    if type(config).__name__ == "T5GemmaConfig":
        config.is_encoder_decoder = False
    if type(config).__name__ == "T5Gemma2Config":
        raise CheckpointError(
            "The checkpoint is a whole T5Gemma 2, of which embaudit reads the text encoder only.",
            next_step="Save its encoder alone: model.encoder.save_pretrained(FOLDER)",
        )
    lineage = {parent.__name__ for parent in type(config).__mro__}
    for name, folder, encoder in ENCODERS:
        if name in lineage:
            return getattr(import_module(f"transformers.models.{folder}.modeling_{folder}"), encoder), config
    return transformers.AutoModel, config


def refuse_elsewhere(config: Any, folder: Path, trust_remote_code: bool) -> None:
    """Refuse weights that are quantised, or that, like the code, would be read from another place than is hashed."""
    quantised = getattr(config, "quantization_config", None)
    if quantised:
        how = quantised.get("quant_method") if isinstance(quantised, dict) else getattr(quantised, "quant_method", None)
        raise CheckpointError(
            f"The weights of {folder} are quantised ({how or 'quantization_config in config.json'}): the measures need "
            "floating-point weights.",
            next_step="Audit the checkpoint that it was quantised from, or save a copy after model.dequantize().",
        )
    if getattr(config, "transformers_weights", None):
        raise CheckpointError(
            f"config.json in {folder} reads its weights from {config.transformers_weights} (transformers_weights).",
            next_step="Rename that file to model.safetensors and remove the setting.",
        )
    code = getattr(config, "auto_map", None) or {}
    elsewhere = [str(name) for name in code.values() if "--" in str(name)]
    if elsewhere and trust_remote_code:
        raise CheckpointError(
            f"config.json in {folder} takes its code from another repository, {elsewhere[0].partition('--')[0]}, whose "
            "revision nothing pins.",
            next_step="Copy that code into the folder and remove the repository's name from auto_map.",
        )


def _refuse_unread_positions(config: Any, folder: Path) -> None:
    """Refuse rotary positions as transformers 5 writes them where transformers 4 would take its defaults instead."""
    import transformers

    if transformers.__version__.startswith("4.") and getattr(config.get_text_config(), "rope_parameters", None):
        raise CheckpointError(
            f"config.json in {folder} was written by transformers 5: transformers {transformers.__version__} does not "
            "read its rope_parameters and would give the tokens other positions.",
            next_step="Install transformers 5, or load and save the checkpoint with transformers 4 where it was made.",
        )


def refuse_kernels(config: Any, arguments: Mapping[str, Any], trust_remote_code: bool) -> None:
    """Refuse attention kernels from the hub (owner/kernel), which are compiled code.

    If the package ``kernels`` is installed, transformers fetches and runs them whatever ``trust_remote_code`` says.
    """
    named = [getattr(config, "_attn_implementation", None), getattr(config, "_experts_implementation", None)]
    named.append(arguments.get("attn_implementation"))
    kernels = [str(name) for name in named if name is not None and "/" in str(name)]
    if kernels and not trust_remote_code:
        raise CheckpointError(
            f"The checkpoint's config.json uses the attention kernel {kernels[0]}, compiled code from the hub.",
            next_step="Remove it from config.json, or add --trust-remote-code if you trust it.",
        )


def _why_not_read(error: Exception) -> tuple[str, str]:
    """A reason and what to do about it, because transformers' own messages can be misleading."""
    # Its message recommends disabling the protection; transformers 4 raises another error from it.
    if isinstance(error, UnpicklingError) or isinstance(error.__context__, UnpicklingError | UnicodeDecodeError):
        return "its pickle is broken or contains more than tensors.", "Convert it to safetensors where it was made."
    if "ignore_mismatched_sizes" in str(error) or "size mismatch for" in str(error):
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
