"""Files of a checkpoint that contradict each other in something that changes vectors.

sentence-transformers reads one of the two, other loaders and servers the other one. What changes no vector is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.files import read_json, read_object
from embaudit.checkpoint.modules import LEGACY_POOLING_FLAGS
from embaudit.checkpoint.settings import TRANSFORMER_SETTINGS
from embaudit.checkpoint.tokenizer import NO_LIMIT, TOKENIZER_CONFIG, position_limit, position_table
from embaudit.declared.rule import Finding, Rule, number
from embaudit.measures.integrity.not_computed import not_computed, two_weight_files

# transformers writes 1e30 for a tokenizer without a limit.
UNLIMITED = 10**6
# A limit that hardly any passage fits into, of a model that could read several times as much.
SHORT, LONG_ENOUGH = 64, 256
LARGEST_EPSILON = 1e-4
PROMPTS_FILE = "config_sentence_transformers.json"
MODULE_FOLDER = re.compile(r"\d+_(Dense|Normalize|LayerNorm|Pooling)$")
LIMITS_DISAGREE = Rule(
    "limits_disagree",
    look_if="two files say different things",
    reason="both files and both values are named: other loaders obey the other one",
)
DIMENSIONS_DISAGREE = LIMITS_DISAGREE.named("dimensions_disagree")
LIMIT_BEYOND_POSITIONS = Rule(
    "limit_beyond_positions",
    look_if="computed positions (rotary) beyond those of config.json",
    problem_if="positions that do not exist",
    reason=LIMITS_DISAGREE.reason,
)
SHORT_LIMIT = Rule(
    "short_limit",
    look_if=f"at most {SHORT} tokens are read of a model that has {LONG_ENOUGH} positions or more",
    reason="hardly any passage fits into it",
)
UNDECLARED_POOLING = Rule(
    "undeclared_pooling",
    look_if="no file says how token embeddings become a vector",
    reason="other servers assume another pooling",
)
SEVERAL_POOLINGS = Rule(
    "several_poolings", look_if="poolings side by side", reason="hardly any checkpoint was trained so"
)
TRUNCATION_SIDE = Rule(
    "truncation_side",
    look_if="two files say different things; texts are cut on the left",
    reason="checkpoints are trained on the beginnings of texts, as a rule",
)
DEFAULT_PROMPT = Rule(
    "default_prompt", look_if="the query's prompt is the default", reason="a document has two readings"
)
UNUSUAL_CONFIG = Rule(
    "unusual_config",
    look_if="an activation or architecture that the family does not have, or an epsilon above "
    f"{number(LARGEST_EPSILON)}",
    reason="no tensor fails to fit, and every layer computes something else",
)
MODULE_NOT_LISTED = Rule(
    "module_not_listed",
    look_if="a Normalize on disk, or a number in the list, that is not declared",
    problem_if="a Dense, LayerNorm or Pooling on disk that is not declared",
    reason="what training used is not applied",
)
FILES_AGREE = Rule("files_agree", reason="`ok`: the limit, pooling, modules and weights that the files agree on")


def file_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Contradictions, or one ``ok``."""
    findings = [
        *_limits(checkpoint),
        *_short_limit(checkpoint),
        *_undeclared_pooling(checkpoint),
        *_several_poolings(checkpoint),
        *_unusual_config(checkpoint),
        *_default_prompt(checkpoint),
        *not_computed(checkpoint),
        *_module_folders(checkpoint),
        *_pooled_dimension(checkpoint),
        *_truncation_side(checkpoint),
        *two_weight_files(_transformer(checkpoint)),
    ]
    limit = "no limit" if checkpoint.max_length >= NO_LIMIT else f"{checkpoint.max_length} tokens"
    return findings or [
        FILES_AGREE.finding(
            "ok",
            f"The files agree on the limit ({limit}), the pooling ({', '.join(checkpoint.recipe.pooling)}), the "
            "modules and the weights.",
        )
    ]


def _limits(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Limits below the one that is read here, which other loaders obey; and one beyond the positions."""
    read = checkpoint.max_length
    own = _tokenizer_json(checkpoint).get("truncation") or {}
    tokenizer = _object(_transformer(checkpoint) / TOKENIZER_CONFIG)
    declared = {
        "the truncation of tokenizer.json": own.get("max_length"),
        f"model_max_length of {TOKENIZER_CONFIG}": tokenizer.get("model_max_length"),
    }
    source = _source_of_limit(checkpoint)
    lower = {
        name: int(value)
        for name, value in declared.items()
        if isinstance(value, int | float) and 0 < value < min(read, UNLIMITED)
    }
    if lower:
        name, value = min(lower.items(), key=lambda item: item[1])
        yield LIMITS_DISAGREE.finding(
            "look",
            f"sentence-transformers reads {_tokens(read)} of a text ({source}), but {name} is {value}.",
            meaning=f"Servers and libraries that obey it cut texts after {value} tokens: what follows is in no vector, "
            "and long texts get other vectors there.",
            advice=f"Set both to {value if read >= NO_LIMIT else read}.",
            value=float(value),
        )
    # Computed positions (rotary) have no hard limit, only one that training may not have reached.
    table, positions = position_table(checkpoint.model), position_limit(checkpoint.model)
    asked = checkpoint.recipe.settings.max_length
    if asked is not None and positions is not None and asked > positions:
        yield LIMIT_BEYOND_POSITIONS.finding(
            "look" if table is None else "problem",
            f"{source} says that {asked} tokens are read, but config.json gives the model {positions} positions.",
            meaning="Texts are read at positions that training may not have reached."
            if table is None
            else f"sentence-transformers fails on longer texts; embaudit reads {checkpoint.max_length} tokens of them.",
            advice=f"Set max_seq_length to {positions} at most.",
            value=float(asked),
        )


def _short_limit(checkpoint: Checkpoint) -> Iterator[Finding]:
    positions, read = position_limit(checkpoint.model), checkpoint.max_length
    if positions is not None and read <= SHORT and positions >= LONG_ENOUGH:
        yield SHORT_LIMIT.finding(
            "look",
            f"Only {read} tokens of a text are read ({_source_of_limit(checkpoint)}), though the model has {positions} "
            "positions.",
            meaning="Most passages are cut off: what follows is in no vector.",
            advice="If training read longer texts, raise max_seq_length in sentence_bert_config.json.",
            value=float(read),
        )


def _undeclared_pooling(checkpoint: Checkpoint) -> Iterator[Finding]:
    folder, used = checkpoint.resolved.folder, ", ".join(checkpoint.recipe.pooling)
    if not checkpoint.recipe.has_modules:
        yield UNDECLARED_POOLING.finding(
            "look",
            f"There is no modules.json, so nothing says how token embeddings become a vector: {used} pooling is only "
            "what sentence-transformers assumes.",
            meaning="Other servers assume another pooling (first token, last token), and give other vectors.",
            advice="Save it with its pooling: SentenceTransformer(modules=[Transformer(FOLDER), Pooling(…)])"
            ".save_pretrained(OTHER)",
        )
        return
    for kind, path in _listed(folder):
        config = _object(folder / path / "config.json") if kind == "Pooling" else {}
        if config and "pooling_mode" not in config and not any(config.get(flag) for flag in LEGACY_POOLING_FLAGS):
            yield UNDECLARED_POOLING.finding(
                "look",
                f"{path}/config.json switches no pooling mode on, so that sentence-transformers takes the mean.",
                meaning="Other servers may refuse it, or take the first token.",
                advice='Write "pooling_mode": "mean" (or what training used) into it.',
            )


def _several_poolings(checkpoint: Checkpoint) -> Iterator[Finding]:
    modes = checkpoint.recipe.pooling
    if len(modes) > 1 and not any(module.kind == "Dense" for module in checkpoint.recipe.modules):
        yield SEVERAL_POOLINGS.finding(
            "look",
            f"Its vectors put {len(modes)} poolings side by side ({' and '.join(modes)}), in {checkpoint.dimension} "
            "dimensions.",
            meaning="Hardly any checkpoint was trained so. More than one pooling mode may have been switched on by "
            "mistake.",
            advice="Compare 1_Pooling/config.json with the dimensions on the model card.",
            value=float(len(modes)),
        )


def _unusual_config(checkpoint: Checkpoint) -> Iterator[Finding]:
    """What config.json may change without a tensor that no longer fits."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    config = checkpoint.model.config.get_text_config()
    usual = getattr(type(config)(), "hidden_act", None) if hasattr(config, "hidden_act") else None
    activation = getattr(config, "hidden_act", None)
    if isinstance(activation, str) and isinstance(usual, str) and "gelu" in usual and "gelu" not in activation:
        yield UNUSUAL_CONFIG.finding(
            "look",
            f"config.json has hidden_act {activation!r}, where a {config.model_type} has {usual!r} as a rule.",
            meaning="With another activation than in training, every layer computes something else.",
            advice="Compare config.json with the checkpoint that this one was made from.",
        )
    own = _family(type(checkpoint.model).__name__)
    families = {_family(name) for name in MODEL_MAPPING_NAMES.values() if isinstance(name, str)}
    # Gemma3 and Gemma3Text are one.
    others = [
        name
        for name in config.architectures or ()
        if (other := _family(name)) in families and not (own.startswith(other) or other.startswith(own))
    ]
    if own in families and others:
        yield UNUSUAL_CONFIG.finding(
            "look",
            f"config.json has model_type {config.model_type!r}, which is a {own}, but its architectures are "
            f"{others[0]}.",
            meaning="Tensors of one family may fit another, which counts positions or segments otherwise.",
            advice="Set model_type to the family that the weights were trained as.",
        )
    for name in ("layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps", "norm_eps"):
        epsilon = getattr(config, name, None)
        if isinstance(epsilon, float) and epsilon > LARGEST_EPSILON:
            yield UNUSUAL_CONFIG.finding(
                "look",
                f"config.json has {name} {epsilon:g}; checkpoints are trained with 1e-12 to 1e-5.",
                meaning="Norms then divide by more than the spread of what they normalise.",
                advice="Compare config.json with the checkpoint that this one was made from.",
                value=epsilon,
            )


def _family(name: str) -> str:
    """``Bert`` of BertModel and BertForMaskedLM."""
    return re.sub(r"(For[A-Z]\w+|LMHeadModel|EncoderModel|Model)$", "", name)


def _default_prompt(checkpoint: Checkpoint) -> Iterator[Finding]:
    """A query's prompt that is the default for every text, so that documents have two readings."""
    text, query, document = (checkpoint.prompts[kind].text for kind in ("text", "query", "document"))
    if query and text == query != document and _declares_default(checkpoint):
        yield DEFAULT_PROMPT.finding(
            "look",
            f"The prompt of queries is the default for all texts ({PROMPTS_FILE}: {query[:40]!r}"
            f"{'…' if len(query) > 40 else ''}): a document gets it from encode(), but not from encode_document().",
            meaning="Documents that were encoded by the one do not match those by the other, and were most likely not "
            "trained with a query's prompt.",
            advice="Set default_prompt_name to null, or to the prompt that training gave to documents.",
        )


def _declares_default(checkpoint: Checkpoint) -> bool:
    """Whether the checkpoint itself has a default prompt, not its user."""
    path = checkpoint.resolved.folder / PROMPTS_FILE
    return path.is_file() and bool(read_object(path).get("default_prompt_name"))


def _module_folders(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Folders of modules that modules.json leaves out: they belonged to the pipeline once."""
    folder = checkpoint.resolved.folder
    if not checkpoint.recipe.has_modules:
        return
    listed = _listed(folder)
    paths = {path for _, path in listed}
    there = sorted(path for path in folder.iterdir() if path.is_dir() and MODULE_FOLDER.match(path.name))
    left_out = [path for path in there if path.name not in paths]
    for unlisted in left_out:
        kind = unlisted.name.partition("_")[2]
        yield MODULE_NOT_LISTED.finding(
            "look" if kind == "Normalize" else "problem",
            f"There is a {kind} module in {unlisted.name}, but modules.json does not list it: "
            f"{' → '.join(kind for kind, _ in listed)}.",
            meaning="The vectors are not normalised: their dot product is no cosine."
            if kind == "Normalize"
            else f"The {kind} that the checkpoint was trained with is not applied.",
            advice=f"Add {unlisted.name} to modules.json, or remove the folder if it is left over.",
        )
    numbers = [int(found[1]) for _, path in listed if (found := re.match(r"(\d+)_", path))]
    gaps = sorted({*range(1, max(numbers, default=0) + 1)} - {*numbers})
    if gaps and not left_out:
        yield MODULE_NOT_LISTED.finding(
            "look",
            f"modules.json lists {', '.join(path for _, path in listed if path)}, but no module number {gaps[0]}.",
            meaning="A module between them was removed: Dense and LayerNorm change every vector.",
            advice="Compare modules.json with the checkpoint that this one was made from.",
            value=float(gaps[0]),
        )


def _pooled_dimension(checkpoint: Checkpoint) -> Iterator[Finding]:
    hidden = getattr(checkpoint.model.config.get_text_config(), "hidden_size", None)
    if not checkpoint.recipe.has_modules or not isinstance(hidden, int):
        return
    for kind, path in _listed(checkpoint.resolved.folder):
        config = _object(checkpoint.resolved.folder / path / "config.json") if kind == "Pooling" else {}
        declared = config.get("embedding_dimension", config.get("word_embedding_dimension"))
        if isinstance(declared, int) and declared != hidden:
            yield DIMENSIONS_DISAGREE.finding(
                "look",
                f"{path}/config.json says that token embeddings have {declared} dimensions, config.json {hidden}.",
                meaning="The pooling was written for another model: its mode may be wrong, too.",
                advice=f"Check the mode in {path}/config.json ({', '.join(checkpoint.recipe.pooling)}).",
                value=float(declared),
            )


def _truncation_side(checkpoint: Checkpoint) -> Iterator[Finding]:
    declared = _object(_transformer(checkpoint) / TOKENIZER_CONFIG).get("truncation_side")
    direction = (_tokenizer_json(checkpoint).get("truncation") or {}).get("direction")
    if declared and direction and declared != str(direction).lower():
        yield TRUNCATION_SIDE.finding(
            "look",
            f"Texts beyond the limit lose their end or their beginning: {TOKENIZER_CONFIG} says truncation_side "
            f"{declared!r}, tokenizer.json truncates on the {str(direction).lower()}; "
            f"{checkpoint.tokenizer.truncation_side} is read here.",
            meaning="Long texts get other vectors where the other file is obeyed.",
            advice="Set both to what training used.",
        )
    elif checkpoint.tokenizer.truncation_side == "left":
        yield TRUNCATION_SIDE.finding(
            "look",
            f"Texts beyond the limit of {_tokens(checkpoint.max_length)} lose their beginning: {TOKENIZER_CONFIG} says "
            "truncation_side 'left'.",
            meaning="Embedding checkpoints are trained on the beginnings of texts, as a rule; that side is for "
            "dialogues and for generating text.",
            advice="Set truncation_side to right, unless training cut texts on the left.",
        )


def _listed(folder: Path) -> list[tuple[str, str]]:
    """(kind, path) of the modules in modules.json, which loading has checked."""
    return [(entry["type"].rpartition(".")[2], entry.get("path", "")) for entry in read_json(folder / "modules.json")]


def _source_of_limit(checkpoint: Checkpoint) -> str:
    if checkpoint.recipe.settings.max_length is not None:
        folder = _transformer(checkpoint)
        return next((name for name in TRANSFORMER_SETTINGS if _object(folder / name)), TRANSFORMER_SETTINGS[0])
    return "no max_seq_length is declared" if checkpoint.recipe.max_length is None else "as asked"


def _transformer(checkpoint: Checkpoint) -> Path:
    return checkpoint.resolved.folder / checkpoint.recipe.transformer_path


def _tokenizer_json(checkpoint: Checkpoint) -> dict[str, Any]:
    return _object(_transformer(checkpoint) / "tokenizer.json")


def _object(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _tokens(limit: int) -> str:
    return "all tokens" if limit >= NO_LIMIT else f"{limit} tokens"
