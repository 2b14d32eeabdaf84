"""The pipeline declared by a checkpoint: transformer, pooling, and the modules after it.

Reads the sentence-transformers layout (``modules.json`` and one folder per module); a plain transformers folder gets
the pooling that sentence-transformers would give it. An unknown module is an error: without it, the audit would be of a
different embedding function than the one that is served.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from embaudit.checkpoint.files import read_json, read_object
from embaudit.checkpoint.prompts import AS_DECLARED, NO_PROMPTS, AskedPrompts, Prompts, choose_prompts
from embaudit.errors import CheckpointError, UsageError

PoolingMode = Literal["mean", "cls", "lasttoken", "max", "weightedmean", "mean_sqrt_len_tokens"]
POOLING_MODES: tuple[str, ...] = get_args(PoolingMode)
AFTER_POOLING = ("Dense", "Normalize", "LayerNorm", "Dropout")
# sentence-transformers before 5.x wrote one flag per mode; several are concatenated in this order.
LEGACY_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# What encode() does in addition to running the modules: prompts, served dimensions.
SETTINGS = "config_sentence_transformers.json"
TRANSFORMER_SETTINGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)


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

    def as_json(self) -> dict[str, Any]:
        """A canonical form for hashing: the content of folders counts, not their names."""
        canonical = {
            "pooling": list(self.pooling),
            "modules": [{"kind": module.kind, "config": module.config} for module in self.modules],
            "max_length": self.max_length,
            "is_lowercased": self.is_lowercased,
            "truncate_dim": self.truncate_dim,
        }
        # Without a prompt nothing is added, so ids are the same as before prompts were supported.
        if self.prompts:
            canonical |= {"prompts": self.prompts.as_json(), "pools_prompt": self.pools_prompt}
        return canonical


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
        raise UsageError(f"A maximum length of {max_length} tokens leaves nothing to encode.")
    override = (pooling,) if pooling else None
    if not (folder / "modules.json").is_file():
        return Recipe(
            *("", "", override or _default_pooling(folder), (), max_length),
            is_lowercased=False,
            # sentence-transformers only reads these settings if there is a modules.json.
            prompts=choose_prompts({}, folder / SETTINGS, prompts),
        )
    entries = _entries(folder / "modules.json")
    transformer_path = entries[0][1]
    declared_pooling: tuple[str, ...] | None = None
    pools_prompt = True
    modules: list[Module] = []
    for kind, path in entries[1:]:
        config_file = folder / path / "config.json"
        config = read_object(config_file) if path and config_file.is_file() else {}
        if kind == "Pooling" and declared_pooling is None:
            declared_pooling = override or _pooling_modes(config, config_file)
            pools_prompt = bool(config.get("include_prompt", True))
        elif kind in AFTER_POOLING and declared_pooling is not None:
            _refuse_token_level(kind, config, config_file)
            modules.append(Module(kind, path, config))
        else:
            raise CheckpointError(
                f"{folder / 'modules.json'} declares a module {kind} that embaudit does not support "
                f"{'before pooling' if declared_pooling is None else 'after pooling'}.",
                next_step=f"Supported are Transformer, Pooling and then {', '.join(AFTER_POOLING)}.",
            )
    if declared_pooling is None:
        raise CheckpointError(
            f"{folder / 'modules.json'} declares no pooling, so there is no vector per text.",
            next_step="embaudit audits single-vector embedding checkpoints.",
        )
    settings = _transformer_settings(folder / transformer_path)
    served = read_object(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    return Recipe(
        transformer_path,
        transformer_path,
        declared_pooling,
        tuple(modules),
        max_length or _whole_number(settings, "max_seq_length", folder / transformer_path),
        is_lowercased=bool(settings.get("do_lower_case", False)),
        truncate_dim=_whole_number(served, "truncate_dim", folder / SETTINGS),
        prompts=choose_prompts(served, folder / SETTINGS, prompts),
        pools_prompt=pools_prompt,
    )


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
    for entry in declared:
        package, _, kind = entry["type"].rpartition(".")
        path = entry.get("path", "")
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise CheckpointError(
                f"{modules_file} names a folder outside the checkpoint: {path}.",
                next_step="Do not trust this checkpoint, or rewrite its modules.json.",
            )
        # A custom class may have a known name (custom_st.Transformer) and do something else.
        entries.append((kind if package.split(".")[0] == "sentence_transformers" else entry["type"], path))
    if not entries or entries[0][0] != "Transformer":
        raise CheckpointError(
            f"{modules_file} starts with {entries[0][0] if entries else 'nothing'}, not with a Transformer.",
            next_step="embaudit audits transformer checkpoints; static and bag-of-words models have no layers.",
        )
    return entries


def _default_pooling(folder: Path) -> tuple[str, ...]:
    """The default of sentence-transformers without modules: mean, or last token for causal models."""
    if not (folder / "config.json").is_file():
        return ("mean",)
    config = read_object(folder / "config.json")
    architectures = config.get("architectures") or [""]
    is_causal = str(architectures[0]).endswith("ForCausalLM") and config.get("is_causal", True)
    return ("lasttoken",) if is_causal else ("mean",)


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


def _transformer_settings(folder: Path) -> dict[str, Any]:
    found = [folder / name for name in TRANSFORMER_SETTINGS if (folder / name).is_file()]
    if not found:
        return {}
    settings = read_object(found[0])
    for key, known in (("transformer_task", "feature-extraction"), ("module_output_name", "token_embeddings")):
        if settings.get(key) not in (None, known):
            raise CheckpointError(
                f"{found[0]} sets {key} to {settings[key]!r}; embaudit only supports {known!r}.",
                next_step="embaudit audits checkpoints that pool the token embeddings of a transformer.",
            )
    if "message" in (settings.get("modality_config") or {}):
        raise CheckpointError(
            f"{found[0]} puts texts into a chat template with prompts as its system message, which embaudit does not "
            "support.",
            next_step="embaudit audits checkpoints that read a text as it is, after its prompt.",
        )
    return settings


def _whole_number(settings: dict[str, Any], key: str, source: Path) -> int | None:
    value = settings.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CheckpointError(
            f"{source}: {key} should be a number of at least 1 but is {value!r}.",
            next_step="Correct it, or download the checkpoint again.",
        )
    return value
