"""Loads a checkpoint's tokenizer, set up to behave exactly as in sentence-transformers."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from embaudit.checkpoint.files import read_object, refuse_pointers, tokenizer_files
from embaudit.checkpoint.modules import Recipe
from embaudit.checkpoint.prompts import TextKind
from embaudit.checkpoint.settings import NO_SETTINGS, TransformerSettings
from embaudit.words.errors import CheckpointError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# transformers needs both to read a SentencePiece file without a tokenizer.json.
SENTENCEPIECE_PACKAGES = {"sentencepiece": "sentencepiece", "protobuf": "google.protobuf"}
# A checkpoint that declares no limit (T5, BLOOM) reads texts of any length; transformers writes 1e30.
NO_LIMIT = 10**9
CONFIG, TOKENIZER_CONFIG = "config.json", "tokenizer_config.json"
PROCESSOR_SETTINGS = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")
ONLY_A_TOKENIZER = (
    "embaudit audits text embedding checkpoints: if this one needs no processor, remove its processor_config.json, "
    "preprocessor_config.json and the processor_class of its tokenizer_config.json and config.json."
)
# Settings of tokenizers' models that make them random.
RANDOM = ("dropout", "alpha", "nbest_size")
# The names that models give to tables of learned or fixed positions, one row per position.
POSITION_TABLES = ("position_embeddings", "position_embedding", "embed_positions", "wpe")


def load_tokenizer(
    folder: Path, *, is_lowercased: bool, trust_remote_code: bool, settings: TransformerSettings = NO_SETTINGS
) -> PreTrainedTokenizerBase:
    """Load a tokenizer, with its own truncation and padding disabled.

    Raises:
        CheckpointError: if it cannot be loaded (for a SentencePiece file alone, the message names the required
            packages), or texts are prepared by more than a tokenizer.
    """
    from transformers import AutoTokenizer

    refuse_pointers(folder, tokenizer_files(folder))
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code, **settings.tokenizer)
    except Exception as error:  # tokenizers raises a bare Exception on a broken file
        raise CheckpointError(
            f"transformers cannot load the tokenizer in {folder}: "
            + ("its SentencePiece file comes without a tokenizer.json." if _missing(folder) else one_line(error)),
            next_step=_how_to_load(folder, error),
        ) from error
    _refuse_processor(folder, trust_remote_code=trust_remote_code)
    _refuse_random(tokenizer, folder)
    # Some tokenizer.json files have truncation and fixed padding enabled.
    without_own_padding(tokenizer)
    if is_lowercased:
        _lowercase(tokenizer, folder)
    return tokenizer


def without_own_padding(tokenizer: PreTrainedTokenizerBase) -> None:
    """Disable truncation and padding, which a tokenizer also keeps from its last call."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.no_truncation()
        backend.no_padding()


def _refuse_processor(folder: Path, *, trust_remote_code: bool) -> None:
    """Refuse a folder whose texts go through a processor of texts and images, which may change them."""
    from transformers import AutoProcessor, PreTrainedTokenizerBase
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    settings = [read_object(folder / name) for name in (TOKENIZER_CONFIG, CONFIG) if (folder / name).is_file()]
    declares = any((folder / name).is_file() for name in PROCESSOR_SETTINGS)
    declares |= any(
        "processor_class" in found or "AutoProcessor" in (found.get("auto_map") or ()) for found in settings
    )
    # Some families have a processor without a word in any file.
    if not declares and not any(found.get("model_type") in PROCESSOR_MAPPING_NAMES for found in settings):
        return
    try:
        processor = AutoProcessor.from_pretrained(folder, trust_remote_code=trust_remote_code)
    except Exception as error:  # it may need packages for images or sound
        raise CheckpointError(
            f"{folder} needs a processor of texts and other inputs, which cannot be loaded: {one_line(error)}",
            next_step=ONLY_A_TOKENIZER,
        ) from error
    if not isinstance(processor, PreTrainedTokenizerBase):
        raise CheckpointError(
            f"{folder} prepares texts with a {type(processor).__name__}, not with a tokenizer alone.",
            next_step=ONLY_A_TOKENIZER,
        )


def _refuse_random(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Refuse a tokenizer that cuts a word up differently each time, as in training (BPE dropout, Unigram sampling)."""
    model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    if chance := next((name for name in RANDOM if getattr(model, name, None)), None):
        raise CheckpointError(
            f"The tokenizer in {folder} cuts words up at random ({chance} in tokenizer.json): a text has another "
            "vector each time.",
            next_step=f"Set {chance} to null in tokenizer.json, unless it is served so.",
        )


def refuse_empty_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: Path, rows: int) -> None:
    """Refuse a tokenizer with less than half of the embedded tokens.

    If transformers does not find the vocabulary, it builds a tokenizer with only the special tokens, and every word
    becomes [UNK].

    Raises:
        CheckpointError: if that is so.
    """
    # Matrices are padded to round sizes (ByT5's 259 tokens to 384 rows), so fewer tokens than rows are normal.
    if 2 * len(tokenizer) < rows:
        raise CheckpointError(
            f"The tokenizer in {folder} has {len(tokenizer)} tokens, but the model has embeddings for {rows}: the "
            "vocabulary was not found.",
            next_step=_how_to_load(folder, None),
        )


def refuse_chat_template(tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """Refuse a plain folder with a chat template: sentence-transformers (5.4 and later) wraps every text in a message.

    Raises:
        CheckpointError: if that is so.
    """
    if getattr(tokenizer, "chat_template", None) is not None:
        raise CheckpointError(
            f"{source} has a chat template and no modules.json: sentence-transformers wraps every text in a chat "
            "message there, which embaudit does not do.",
            next_step="If it is served with plain texts, save it so: modules = [Transformer(FOLDER, modality_config="
            '{"text": {"method": "forward", "method_output_name": "last_hidden_state"}}, module_output_name='
            '"token_embeddings"), Pooling(…)]; SentenceTransformer(modules=modules).save_pretrained(OTHER)',
        )


def special_tokens_around(
    tokenizer: PreTrainedTokenizerBase, *, are_added: bool = True
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the tokenizer adds before and after a text, found by encoding one with and without them.

    Args:
        are_added: false if the checkpoint's settings switch them off.

    Raises:
        CheckpointError: if they cannot be told apart.
    """
    content: list[int] = tokenizer("a", add_special_tokens=False, truncation=False, padding=False)["input_ids"]
    whole: list[int] = tokenizer("a", add_special_tokens=are_added, truncation=False, padding=False)["input_ids"]
    for start in range(len(whole) - len(content) + 1 if content else 0):
        if whole[start : start + len(content)] == content:
            return tuple(whole[:start]), tuple(whole[start + len(content) :])
    raise CheckpointError(
        f"The tokenizer encodes 'a' as {content} alone and as {whole} with special tokens: "
        "embaudit cannot tell the special tokens apart.",
        next_step="Check that the tokenizer files belong together.",
    )


def truncated(ids: Sequence[int], limit: int, side: str) -> list[int]:
    """At most ``limit`` ids: the first ones, or the last ones if a tokenizer truncates on the left."""
    limit = max(limit, 0)
    return list(ids[max(len(ids) - limit, 0) :] if side == "left" else ids[:limit])


def position_limit(model: PreTrainedModel) -> int | None:
    """The longest sequence for which the model has positions; None if there is no limit (T5, XLNet)."""
    table = position_table(model)
    if table is not None:
        return table
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return positions if isinstance(positions, int) and positions > 0 else None  # XLNet writes -1


def position_table(model: PreTrainedModel) -> int | None:
    """How many positions a model's table holds; None if positions are computed, so that there is no hard limit."""
    import torch

    for name, module in model.named_modules():
        if name.rpartition(".")[2] in POSITION_TABLES and isinstance(module, torch.nn.Embedding):
            # RoBERTa, MPNet and similar models number positions from padding_idx + 1, BART from its offset, so part of
            # the table is never used. Marian's padding row is not skipped.
            offset: int = getattr(module, "offset", 0)
            if module.padding_idx is not None and name.endswith("embeddings.position_embeddings"):
                offset = module.padding_idx + 1
            return module.num_embeddings - offset
    return None


def limits_by_kind(
    recipe: Recipe, asked: int | None, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> dict[TextKind, int]:
    """How many tokens of a text are read, special tokens included, for each kind of text.

    As in sentence-transformers: the length of the tokenizer's call if the settings give one, else that of queries or
    documents, else ``max_seq_length``, else the lower one of the tokenizer's limit and the config's positions. No more
    than a table of positions holds, where sentence-transformers fails.

    Args:
        asked: the user's limit, which replaces all declared ones.
    """
    settings, table = recipe.settings, position_table(model)

    def limit(kind: TextKind) -> int:
        if asked is not None:
            return asked
        if settings.call.get("truncation") is False:
            return NO_LIMIT
        own = settings.call.get("max_length", settings.lengths.get(kind))
        if own is not None:
            return int(own)
        if "model_max_length" in settings.tokenizer:
            return int(tokenizer.model_max_length)
        if recipe.max_length is not None:
            return recipe.max_length
        positions = getattr(model.config, "max_position_embeddings", None)
        known = [tokenizer.model_max_length, *([positions] if isinstance(positions, int) and positions > 0 else [])]
        return int(min(known))

    kinds: tuple[TextKind, ...] = get_args(TextKind)
    return {kind: min(limit(kind), NO_LIMIT if table is None else table) for kind in kinds}


def _lowercase(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Lowercase like sentence-transformers does: in the normalizer, so that special tokens in a text stay special."""
    from tokenizers.normalizers import Lowercase, Sequence

    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{folder} requires lowercased texts (do_lower_case), which embaudit only supports with fast tokenizers.",
            next_step="Save a fast tokenizer (tokenizer.json) into the folder.",
        )
    backend = tokenizer.backend_tokenizer
    former = backend.normalizer
    steps = list(former) if isinstance(former, Sequence) else [former] if former else []  # type: ignore[call-overload]
    if not any(isinstance(step, Lowercase) for step in steps):
        backend.normalizer = Sequence([Lowercase(), *steps])


def _how_to_load(folder: Path, error: Exception | None) -> str:
    if error is not None and "trust_remote_code" in str(error):
        return "It requires its own code to be run: review that code and add --trust-remote-code."
    if _missing(folder):
        return (
            f"Reading a SentencePiece file requires missing packages: pip install {' '.join(_missing(folder))}. "
            "Or save a tokenizer.json into the folder on a machine that has them."
        )
    return "Check that the tokenizer files are complete and belong to this model."


def _missing(folder: Path) -> list[str]:
    """The packages to install before this folder's tokenizer can be read."""
    if (folder / "tokenizer.json").is_file() or not any(folder.glob("*.model")):
        return []
    return [package for package, module in SENTENCEPIECE_PACKAGES.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # google.protobuf where no package called google is
        return False
