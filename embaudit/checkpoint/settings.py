"""The settings files of the sentence-transformers layout: every key is honoured, known to change nothing, or refused.

A key that is passed over makes the audit one of another embedding function than the one that is served. So each file
has a table of the keys that are understood, and any other key is an error that names it.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embaudit.checkpoint.files import read_object
from embaudit.words.errors import CheckpointError

# What encode() does in addition to running the modules: prompts, served dimensions.
SETTINGS = "config_sentence_transformers.json"
SETTINGS_KEYS = {
    *("prompts", "default_prompt_name", "truncate_dim"),
    *("__version__", "similarity_fn_name"),  # of no effect on vectors
    *("model_type", "requirements"),  # checked below
}
# sentence-transformers takes the first of these that is not empty.
TRANSFORMER_SETTINGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
FORMER_NAMES = {"model_args": "model_kwargs", "tokenizer_args": "processor_kwargs", "config_args": "config_kwargs"}
TRANSFORMER_KEYS = {
    *("max_seq_length", "do_lower_case", "query_length", "document_length"),
    *("model_kwargs", "processor_kwargs", "config_kwargs", "processing_kwargs", *FORMER_NAMES),
    *("transformer_task", "modality_config", "module_output_name"),  # one value of each is supported
    *("unpad_inputs", "backend", "cache_dir"),  # of no effect on vectors
}
# sentence-transformers overwrites these in the three dictionaries, or drops them: they have no effect in a file.
OVERWRITTEN = {"subfolder", "token", "cache_dir", "revision", "local_files_only", "trust_remote_code"}
MODEL_KEYS = {
    *("attn_implementation", "add_pooling_layer"),
    # The precision is the audit's choice (--dtype), whatever a file says.
    *("dtype", "torch_dtype", "low_cpu_mem_usage", "use_safetensors"),
}
# Arguments of transformers' own loading, which would read other files than the folder's.
NOT_OF_A_CONFIG = {"_commit_hash", "code_revision", "force_download", "gguf_file", "name_or_path", "proxies"}
NOT_OF_A_TOKENIZER = {
    *("_commit_hash", "code_revision", "config", "force_download", "gguf_file", "proxies", "tokenizer_file"),
    *("tokenizer_object", "tokenizer_type", "vocab_file", "merges_file", "chat_template"),
}
# Arguments of the tokenizer's call. Padding has no effect on a vector: that is checked when the model is loaded.
CALL_KEYS = {
    *("add_special_tokens", "max_length", "truncation", "split_special_tokens"),
    *("padding", "padding_side", "pad_to_multiple_of", "return_tensors", "verbose", "logits_to_keep"),
}
# Those of them that decide which ids a text gets before it is truncated.
CALL_FOR_IDS = ("add_special_tokens", "split_special_tokens")
# Those that pad even a text that is alone in its batch, so that a prompt seems to have more tokens.
PADS_ALONE = ("padding", "pad_to_multiple_of")
OF_OTHER_INPUTS = {"audio", "image", "video", "chat_template"}
TRUNCATES = (True, "longest_first", "only_first")
READS_ALL = (False, "do_not_truncate")


@dataclass(frozen=True)
class TransformerSettings:
    """What the settings of a Transformer module say about loading and calling it.

    Attributes:
        max_length: ``max_seq_length``, in tokens including special tokens.
        is_lowercased: whether texts are lowercased before the tokenizer's own normalizer.
        lengths: limits of one kind of text only ("query", "document").
        config: values that replace those of config.json.
        model: arguments of the model's loading.
        tokenizer: arguments of the tokenizer's loading.
        call: arguments of each call of the tokenizer.
    """

    max_length: int | None = None
    is_lowercased: bool = False
    lengths: Mapping[str, int] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Mapping[str, Any] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """What is set besides ``max_length`` and ``is_lowercased``, for hashing; empty for most checkpoints."""
        parts = ("lengths", "config", "model", "tokenizer", "call")
        return {part: dict(getattr(self, part)) for part in parts if getattr(self, part)}


NO_SETTINGS = TransformerSettings()


def read_settings(folder: Path) -> dict[str, Any]:
    """The content of ``config_sentence_transformers.json``; empty if there is none.

    Raises:
        CheckpointError: if it is broken, has a key that is not understood, declares another kind of model than one of
            embeddings, or requires other packages than are installed.
    """
    source = folder / SETTINGS
    if not source.is_file():
        return {}
    settings = read_object(source)
    if marks := [key for key in LATE_INTERACTION if key in settings]:
        raise CheckpointError(
            f"{source} declares a late-interaction model, as PyLate writes it ({marks[0]}): it gives one vector per "
            "token.",
            next_step="embaudit audits single-vector embedding checkpoints. Serve it by PyLate.",
        )
    refuse_unknown(settings, SETTINGS_KEYS, source)
    kind = settings.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise CheckpointError(
            f"{source} declares a {kind}: {OTHER_MODELS.get(kind, 'not a model with one vector per text')}.",
            next_step="embaudit audits single-vector embedding checkpoints.",
        )
    _refuse_unmet(settings.get("requirements"), source)
    return settings


# What PyLate writes beside sentence-transformers' own settings.
LATE_INTERACTION = ("query_prefix", "document_prefix", "skiplist_words", "attend_to_expansion_tokens")
OTHER_MODELS = {
    "ColBERT": "it gives one vector per token (late interaction)",
    "CrossEncoder": "a reranker, which scores pairs of texts and has no vector per text",
    "SparseEncoder": "its vectors have one dimension per vocabulary entry",
    "MultiVectorEncoder": "it gives one vector per token (late interaction)",
}


def read_transformer_settings(folder: Path) -> TransformerSettings:
    """The settings of the Transformer module in a folder; the defaults if it has none.

    Raises:
        CheckpointError: if a file is broken, or sets something that is not supported.
    """
    for name in TRANSFORMER_SETTINGS:
        source = folder / name
        found = read_object(source) if source.is_file() else {}
        if found:
            return _transformer_settings(found, source)
    return NO_SETTINGS


def _transformer_settings(settings: dict[str, Any], source: Path) -> TransformerSettings:
    for former, name in FORMER_NAMES.items():
        if former in settings:
            settings[name] = settings.pop(former)
    expansion, elsewhere = settings.pop("query_expansion", None), settings.pop("tokenizer_name_or_path", None)
    if expansion is not None:
        raise _unsupported(source, "query_expansion", expansion, "it is for models with one vector per token")
    if elsewhere is not None:
        raise _unsupported(source, "tokenizer_name_or_path", elsewhere, "save that tokenizer into the folder instead")
    refuse_unknown(settings, TRANSFORMER_KEYS, source)
    for key, known in (("transformer_task", "feature-extraction"), ("module_output_name", "token_embeddings")):
        if settings.get(key) not in (None, known):
            raise _unsupported(source, key, settings[key], f"only {known!r} is supported")
    _require_plain_text(settings.get("modality_config"), source)
    config = _arguments(settings, "config_kwargs", source, refused=NOT_OF_A_CONFIG)
    tokenizer = _arguments(settings, "processor_kwargs", source, refused=NOT_OF_A_TOKENIZER)
    model = _arguments(settings, "model_kwargs", source, known=MODEL_KEYS)
    if model.get("use_safetensors") is False:
        raise _unsupported(source, "model_kwargs.use_safetensors", False, "pickles are read only without safetensors")
    lengths = {kind: whole_number(settings, f"{kind}_length", source) for kind in ("query", "document")}
    return TransformerSettings(
        max_length=whole_number(settings, "max_seq_length", source),
        is_lowercased=bool(settings.get("do_lower_case", False)),
        lengths={kind: length for kind, length in lengths.items() if length is not None},
        config={key: value for key, value in config.items() if key != "use_cache"},
        model={key: value for key, value in model.items() if key in ("attn_implementation", "add_pooling_layer")},
        tokenizer=tokenizer,
        call=_call(settings.get("processing_kwargs") or {}, source),
    )


def _arguments(
    settings: Mapping[str, Any],
    key: str,
    source: Path,
    *,
    known: Collection[str] | None = None,
    refused: Collection[str] = (),
) -> dict[str, Any]:
    """One dictionary of arguments, without those that have no effect in a file."""
    given = settings.get(key) or {}
    if not isinstance(given, dict):
        raise _unsupported(source, key, given, "it should be an object")
    given = {name: value for name, value in given.items() if name not in OVERWRITTEN}
    unknown = [name for name in given if name in refused or (known is not None and name not in known)]
    if unknown:
        raise _unsupported(source, f"{key}.{unknown[0]}", given[unknown[0]], "it may change what is loaded")
    return given


def _call(processing: Any, source: Path) -> dict[str, Any]:
    """The arguments of the tokenizer's call: those for texts, and over them those for all inputs."""
    if not isinstance(processing, dict):
        raise _unsupported(source, "processing_kwargs", processing, "it should be an object")
    refuse_unknown(processing, {"text", "common", *OF_OTHER_INPUTS}, source, within="processing_kwargs")
    call: dict[str, Any] = {}
    for part in ("text", "common"):
        given = processing.get(part) or {}
        refuse_unknown(given, CALL_KEYS, source, within=f"processing_kwargs.{part}")
        call |= given
    if call.get("padding", True) is False or call.get("padding") == "do_not_pad":
        raise _unsupported(source, "padding", call["padding"], "texts of different length need it")
    if call.get("truncation", True) not in (*TRUNCATES, *READS_ALL):
        raise _unsupported(source, "truncation", call["truncation"], "it is not one for single texts")
    found: dict[str, Any] = {key: call[key] for key in CALL_FOR_IDS if key in call}
    if call.get("truncation") in READS_ALL and "truncation" in call:
        found["truncation"] = False
    elif "max_length" in call:  # null, too, replaces the length of queries or documents: by the general one
        found["max_length"] = whole_number(call, "max_length", source)
    if "padding_side" in call:
        found["padding_side"] = call["padding_side"]
    found |= {key: call[key] for key in PADS_ALONE if call.get(key) not in (None, True, "longest")}
    return found


def _require_plain_text(modalities: Any, source: Path) -> None:
    """Refuse a declaration by which a text is not read as it is, or its token embeddings are not the last states."""
    if modalities is None:
        return
    if not isinstance(modalities, dict) or "text" not in modalities:
        raise _unsupported(source, "modality_config", modalities, "it has no entry for texts")
    if "message" in modalities:
        raise CheckpointError(
            f"{source} puts texts into a chat template with prompts as its system message, which embaudit does not "
            "support.",
            next_step="embaudit audits checkpoints that read a text as it is, after its prompt.",
        )
    text = modalities["text"]
    output = text.get("method_output_name") if isinstance(text, dict) else None
    output = output[0] if isinstance(output, list) and len(output) == 1 else output
    if not isinstance(text, dict) or text.get("method") != "forward" or output != "last_hidden_state":
        raise _unsupported(source, "modality_config.text", text, "only forward's last_hidden_state is supported")


def _refuse_unmet(requirements: Any, source: Path) -> None:
    """Refuse a checkpoint that sentence-transformers refuses too: it requires other versions of packages."""
    from importlib.metadata import PackageNotFoundError, version

    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if not isinstance(requirements, dict):
        return
    for name, required in requirements.items():
        specifier = required.get("specifier", "") if isinstance(required, dict) else required
        package = "torch" if name == "pytorch" else str(name)
        try:
            installed = platform.python_version() if package == "python" else version(package)
            is_met = SpecifierSet(str(specifier)).contains(installed, prereleases=True)
        except PackageNotFoundError:
            # Only what embaudit runs: another package cannot change a vector here.
            continue
        except InvalidSpecifier:  # sentence-transformers ignores these
            continue
        if not is_met:
            raise CheckpointError(
                f"{source} requires {package} {specifier}, but {installed} is installed.",
                next_step=f"Install it (pip install '{package}{specifier}'), or correct the file.",
            )


def refuse_unknown(given: Any, known: Collection[str], source: Path, *, within: str = "") -> None:
    """Refuse keys that are not understood.

    Args:
        within: the object's place in the file.

    Raises:
        CheckpointError: if there are any, naming the first.
    """
    if not isinstance(given, dict):
        raise _unsupported(source, within, given, "it should be an object")
    unknown = [key for key in given if key not in known]
    if unknown:
        name = f"{within}.{unknown[0]}" if within else unknown[0]
        raise CheckpointError(
            f"{source} has the setting {name!r}, which embaudit does not know: the checkpoint may compute other "
            "vectors with it.",
            next_step="If it has no effect on vectors, remove it from the file; otherwise a newer embaudit is needed.",
        )


def whole_number(settings: Mapping[str, Any], key: str, source: Path) -> int | None:
    """A number of at least 1, or None.

    Raises:
        CheckpointError: if it is anything else.
    """
    value = settings.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CheckpointError(
            f"{source}: {key} should be a number of at least 1 but is {value!r}.",
            next_step="Correct it, or download the checkpoint again.",
        )
    return value


def _unsupported(source: Path, key: str, value: Any, why: str) -> CheckpointError:
    return CheckpointError(
        f"{source} sets {key} to {value!r}, which embaudit does not support: {why}.",
        next_step="embaudit audits checkpoints that pool the token embeddings of a transformer; change the file if "
        "the checkpoint is served without this setting.",
    )
