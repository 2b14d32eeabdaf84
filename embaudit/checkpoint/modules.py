"""The pipeline declared by a checkpoint: transformer, pooling, and the modules after it.

Reads the sentence-transformers layout (``modules.json`` and one folder per module); a plain transformers folder gets
the pooling that sentence-transformers would give it. An unknown module is an error: without it, the audit would be of a
different embedding function than the one that is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from embaudit.checkpoint.files import is_pickle, read_json, read_object, weight_files
from embaudit.checkpoint.prompts import AS_DECLARED, NO_PROMPTS, AskedPrompts, Prompts, choose_prompts
from embaudit.checkpoint.settings import (
    CALL_FOR_IDS,
    NO_SETTINGS,
    PADS_ALONE,
    SETTINGS,
    TransformerSettings,
    read_settings,
    read_transformer_settings,
    refuse_unknown,
    whole_number,
)
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.words.errors import CheckpointError, UsageError

PoolingMode = Literal["mean", "cls", "lasttoken", "max", "weightedmean", "mean_sqrt_len_tokens"]
POOLING_MODES: tuple[str, ...] = get_args(PoolingMode)
# Modules after pooling, with what their config.json may say. The names of inputs and outputs are checked.
NAMED = ("module_input_name", "module_output_name")
AFTER_POOLING = {
    "Dense": ("in_features", "out_features", "bias", "activation_function", "use_residual", *NAMED),
    "Normalize": NAMED,
    "LayerNorm": ("dimension",),
    "Dropout": ("dropout",),
}
# sentence-transformers before 5.x wrote one flag per mode; several are concatenated in this order.
LEGACY_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLING_KEYS = ("embedding_dimension", "word_embedding_dimension", "pooling_mode", "include_prompt")
# What stands first where there is no Transformer, and what it is.
FIRST_MODULES = {
    "StaticEmbedding": "a static model: it has token embeddings and no layers",
    "WordEmbeddings": "a static model: it has word embeddings and no layers",
    "BoW": "a bag-of-words model: it has word weights and no layers",
    "Router": "a router: it has one pipeline for queries and another for documents",
    "Asym": "a router: it has one pipeline for queries and another for documents",
    "MLMTransformer": "a SPLADE model: its vectors have one dimension per vocabulary entry",
    "SparseStaticEmbedding": "a sparse model: its vectors have one dimension per vocabulary entry",
    "CLIPModel": "a model of images and texts",
}
# What Stanford's ColBERT writes beside its weights, and the layer among them that makes a token's vector: it has no
# bias, and no fewer numbers come out than this. Classifiers have fewer classes, or a bias.
COLBERT, COLBERT_LAYER, FEWEST = "artifact.metadata", "linear.weight", 16
# Heads of a model that are not left out without a word: what such a checkpoint was trained for is not embedding.
OTHER_HEADS = {
    "ForSequenceClassification": "a classifier or reranker (cross-encoder): it scores texts or pairs of texts",
    "ForTokenClassification": "a tagger: it labels tokens",
    "ForQuestionAnswering": "a reader: it marks answers in a text",
    "ForMultipleChoice": "a classifier: it chooses one of several texts",
    "ForNextSentencePrediction": "a classifier of pairs of texts",
}


class NoTransformer(CheckpointError):
    """A checkpoint of sentence-transformers that is no Transformer, Pooling and modules on the pooled vector.

    It may give one vector a text all the same.
    """


@dataclass(frozen=True)
class Module:
    """One declared step after pooling."""

    kind: str
    path: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """Everything except weights and tokenizer that decides how a text becomes a vector."""

    transformer_path: str
    tokenizer_path: str
    pooling: tuple[str, ...]
    modules: tuple[Module, ...]
    max_length: int | None
    is_lowercased: bool
    truncate_dim: int | None = None
    prompts: Prompts = NO_PROMPTS
    pools_prompt: bool = True
    settings: TransformerSettings = NO_SETTINGS
    # sentence-transformers puts texts into a chat template where no modules.json says otherwise.
    has_modules: bool = True

    @property
    def call(self) -> dict[str, Any]:
        """Arguments of the tokenizer's call that decide which ids a text gets."""
        return {key: value for key, value in self.settings.call.items() if key in CALL_FOR_IDS}

    def as_json(self) -> dict[str, Any]:
        """A canonical form for hashing: the content of folders counts, not their names."""
        canonical = {
            "pooling": list(self.pooling),
            "modules": [{"kind": module.kind, "config": module.config} for module in self.modules],
            "max_length": self.max_length,
            "is_lowercased": self.is_lowercased,
            "truncate_dim": self.truncate_dim,
        }
        # What is not set adds nothing, so ids are the same as before it was supported.
        if self.prompts:
            canonical |= {"prompts": self.prompts.as_json(), "pools_prompt": self.pools_prompt}
        return canonical | self.settings.as_json()


def read_recipe(
    folder: Path,
    pooling: str | None = None,
    max_length: int | None = None,
    prompts: AskedPrompts = AS_DECLARED,
) -> Recipe:
    """Read the pipeline declared in a checkpoint folder.

    Args:
        folder: the checkpoint.
        pooling: overrides the declared pooling (even if that is unknown).
        max_length: overrides the length limit, in tokens including special tokens.
        prompts: overrides the declared prompts.

    Raises:
        UsageError: if an override is invalid.
        CheckpointError: if a file is broken or a declared module is not supported.
    """
    if pooling is not None and pooling not in POOLING_MODES:
        raise UsageError(f"Unknown pooling {pooling!r}.", next_step=f"Choose one of: {', '.join(POOLING_MODES)}.")
    if max_length is not None and max_length < 1:
        raise UsageError(
            f"A maximum length of {max_length} tokens leaves nothing to encode.", next_step="Give at least 1."
        )
    override = (pooling,) if pooling else None
    if not (folder / "modules.json").is_file():
        if override is None:
            _refuse_other_heads(folder)
        return Recipe(
            *("", "", override or _default_pooling(folder), (), max_length),
            is_lowercased=False,
            # sentence-transformers only reads these settings if there is a modules.json.
            prompts=choose_prompts({}, folder / SETTINGS, prompts),
            has_modules=False,
        )
    # First, because it can declare another kind of model, whose modules are others.
    served = read_settings(folder)
    entries = _entries(folder / "modules.json")
    transformer_path = entries[0][1]
    declared_pooling: tuple[str, ...] | None = None
    pools_prompt = True
    modules: list[Module] = []
    for kind, path in entries[1:]:
        config_file = folder / path / "config.json"
        config = read_object(config_file) if path and config_file.is_file() else {}
        if kind == "Pooling" and declared_pooling is None:
            # An unknown mode is named as such below, unless the user gives another.
            modes = [key for key in config if key.startswith("pooling_mode_")]
            refuse_unknown(config, (*POOLING_KEYS, *modes), config_file)
            declared_pooling = override or _pooling_modes(config, config_file)
            pools_prompt = bool(config.get("include_prompt", True))
        elif kind in AFTER_POOLING and declared_pooling is not None:
            refuse_unknown(config, AFTER_POOLING[kind], config_file)
            _refuse_token_level(kind, config, config_file)
            modules.append(Module(kind, path, config))
        else:
            raise NoTransformer(
                f"{folder / 'modules.json'} declares a module {kind} that embaudit does not support "
                f"{'before pooling' if declared_pooling is None else 'after pooling'}.",
                next_step=f"Supported are Transformer, Pooling and then {', '.join(AFTER_POOLING)}.",
            )
    if declared_pooling is None:
        raise NoTransformer(
            f"{folder / 'modules.json'} declares no pooling, so there is no vector per text.",
            next_step="embaudit audits single-vector embedding checkpoints.",
        )
    settings = read_transformer_settings(folder / transformer_path)
    chosen = choose_prompts(served, folder / SETTINGS, prompts)
    padding = next((key for key in PADS_ALONE if key in settings.call), None)
    if padding and chosen and not pools_prompt:
        raise CheckpointError(
            f"{folder / transformer_path} pads a prompt, too ({padding} in processing_kwargs), and its pooling leaves "
            "the prompt out: sentence-transformers counts the padding and leaves out as many tokens of the text.",
            next_step=f"Remove {padding}, which is of no use, or set include_prompt to true in the pooling's config.",
        )
    return Recipe(
        transformer_path,
        transformer_path,
        declared_pooling,
        tuple(modules),
        max_length or settings.max_length,
        is_lowercased=settings.is_lowercased,
        truncate_dim=whole_number(served, "truncate_dim", folder / SETTINGS),
        prompts=chosen,
        pools_prompt=pools_prompt,
        settings=settings,
    )


def _refuse_other_heads(folder: Path) -> None:
    """Refuse a plain folder whose model was trained for something else: its head would be dropped without a word."""
    config = read_object(folder / "config.json") if (folder / "config.json").is_file() else {}
    architecture = str((config.get("architectures") or [""])[0])
    sign = architecture if architecture.endswith("ColBERT") else COLBERT if (folder / COLBERT).is_file() else ""
    if sign := sign or _layer_of_colbert(folder):
        raise CheckpointError(
            f"{folder} is a late-interaction model, as Stanford's ColBERT writes it ({sign}): it gives one vector per "
            "token, by a linear layer that no mean of them was trained with.",
            next_step="embaudit audits single-vector embedding checkpoints. To audit the mean of its token embeddings "
            "all the same, add --pooling mean.",
        )
    for head, what in OTHER_HEADS.items():
        if architecture.endswith(head):
            raise CheckpointError(
                f"{folder} is {what} ({architecture}), not an embedding checkpoint.",
                next_step="To audit the mean of its token embeddings all the same, add --pooling mean.",
            )


def _layer_of_colbert(folder: Path) -> str:
    """The layer that gives a token's vector, as a sign of ColBERT; empty if the weights have none, or are pickles."""
    try:
        files = weight_files(folder)
        tensors = {} if any(map(is_pickle, files)) else stored_tensors(files)
    except CheckpointError:  # what is wrong with the weights is said where they are loaded
        return ""
    layer = tensors.get(COLBERT_LAYER)
    if layer is None or len(layer.shape) != 2 or COLBERT_LAYER.replace("weight", "bias") in tensors:
        return ""
    outputs, inputs = layer.shape
    return f"{COLBERT_LAYER}, {inputs} to {outputs} numbers without a bias" if FEWEST <= outputs < inputs else ""


def _entries(modules_file: Path) -> list[tuple[str, str]]:
    """(kind, path) of each declared module, starting with the transformer."""
    declared = read_json(modules_file)
    if not isinstance(declared, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("type"), str) and isinstance(entry.get("path", ""), str)
        for entry in declared
    ):
        raise CheckpointError(
            f"{modules_file} should contain a list of modules, each with a type and a path.",
            next_step="Check that the folder is complete, or fetch it again.",
        )
    entries = []
    names = [str(entry.get("name")) for entry in declared if "name" in entry]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise CheckpointError(
            f"{modules_file} gives the name {twice!r} to two modules: sentence-transformers runs only the second.",
            next_step="Give each module a name of its own.",
        )
    for entry in declared:
        refuse_unknown(entry, ("idx", "name", "path", "type", "kwargs"), modules_file)
        if "task" in (entry.get("kwargs") or ()):
            raise NoTransformer(
                f"{modules_file} passes the task (query or document) to its module {entry['type']}, which embaudit "
                "does not support.",
                next_step="embaudit audits checkpoints that tell queries from documents by their prompts.",
            )
        package, _, kind = entry["type"].rpartition(".")
        path = entry.get("path", "")
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise CheckpointError(
                f"{modules_file} names a folder outside the checkpoint: {path}.",
                next_step="Do not trust this checkpoint, or rewrite its modules.json.",
            )
        # A custom class may have a known name (custom_st.Transformer) and do something else.
        entries.append((kind if package.split(".")[0] == "sentence_transformers" else entry["type"], path))
    first = entries[0][0] if entries else "nothing"
    if first != "Transformer":
        what = FIRST_MODULES.get(first) or (
            "a module with code of its own" if "." in first else "a module that embaudit does not know"
        )
        raise NoTransformer(
            f"{modules_file} starts with {first}, not with a Transformer"
            + (f": this is {what}." if entries else ": it declares no module."),
            next_step="embaudit audits checkpoints of one Transformer, Pooling and modules on the pooled vector."
            + (" Audit the two folders that the router names, one by one." if first in ("Router", "Asym") else ""),
        )
    return entries


def _default_pooling(folder: Path) -> tuple[str, ...]:
    """The default of sentence-transformers for a folder without modules."""
    config = read_object(folder / "config.json") if (folder / "config.json").is_file() else {}
    return default_pooling(config.get("architectures") or (), is_causal=bool(config.get("is_causal", True)))


def default_pooling(architectures: Sequence[str], *, is_causal: bool) -> tuple[str, ...]:
    """Mean, or the last token of a causal language model."""
    is_language_model = bool(architectures) and str(architectures[0]).endswith("ForCausalLM")
    return ("lasttoken",) if is_language_model and is_causal else ("mean",)


def _pooling_modes(config: dict[str, Any], source: Path) -> tuple[str, ...]:
    if not config:
        raise CheckpointError(
            f"{source} is missing or empty: it should name the pooling.",
            next_step=f"Check that the folder is complete, or give one: --pooling {'|'.join(POOLING_MODES)}.",
        )
    declared = config.get("pooling_mode")
    if declared is None:
        flags = {name: value for name, value in config.items() if name.startswith("pooling_mode_") and value}
        # With no flag set, sentence-transformers uses the mean; it rejects unknown flags.
        declared = [mode for flag, mode in LEGACY_POOLING_FLAGS.items() if flag in flags]
        declared += sorted(set(flags) - set(LEGACY_POOLING_FLAGS))
        declared = declared or ["mean"]
    modes = (declared,) if isinstance(declared, str) else tuple(map(str, declared))
    unknown = [mode for mode in modes if mode not in POOLING_MODES]
    if unknown or not modes:
        raise CheckpointError(
            f"{source} declares pooling {', '.join(unknown) or '(none)'}, which embaudit does not know.",
            next_step=f"Give one: --pooling {'|'.join(POOLING_MODES)}.",
        )
    return modes


def _refuse_token_level(kind: str, config: dict[str, Any], source: Path) -> None:
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise CheckpointError(
                f"{source} applies {kind} to {config[key]!r}; embaudit only runs modules on the sentence embedding.",
                next_step="embaudit audits single-vector embedding checkpoints.",
            )
