"""What each of the two declares: how texts are read (pooling, prompts, limits …), and how the network computes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.declared.document import count
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.checkpoint import declared_similarity

CONFIG = "config.json"
# Of config.json, what no vector depends on: names, formats, what is for training, generation and heads, and
# sizes, which the weights say.
OF_NO_VECTOR = re.compile(
    r"_name_or_path|transformers_version|torch_dtype|dtype|architectures|model_type|auto_map|(id2label|label2id).*|"
    r".*drop(out)?(_.*)?|.*_pdrop|initializer_.*|use_cache|gradient_checkpointing|output_.*|return_dict|problem_type|"
    r"task_specific_params.*|vocab_size|(pad|bos|eos|sep|cls|mask|decoder_start)_token_id|tie_word_embeddings|num_labels|"
    r"max_position_embeddings|finetuning_task|torchscript|pruned_heads.*|chunk_size_feed_forward|is_encoder_decoder|"
    r"_attn_implementation.*|_commit_hash|quantization_config.*|classifier_.*|embd_.*|deterministic_flash_attn|"
    r"reference_compile|unsloth.*|pretraining_tp|summary_.*"
)
NOT_DECLARED = "not declared"
RULE = Rule(
    "same_reading",
    look_if="pooling, modules, dimensions, prompts, special tokens or similarity differ, or a limit is lower",
    reason="it may have come with the tuning. `ok` if the base declares nothing itself, or if a limit is higher",
)
COMPUTES = Rule(
    "computes_otherwise",
    look_if="config.json says otherwise how the network computes (direction, rotary base, activation, windows, "
    "epsilons; a lost line counts as the default)",
    problem_if="the same, no weight has changed, and vectors have moved",
    reason="names, formats, sizes and what is for training or heads are left out",
)


@dataclass(frozen=True)
class Difference:
    """One declaration that differs, in words.

    Attributes:
        is_gain: whether it only adds to what the base reads, as a longer limit does.
    """

    what: str
    tuned: str
    base: str
    is_gain: bool = False


def compare_declared(tuned: Checkpoint, base: Checkpoint) -> list[Difference]:
    """Every declaration that decides how a text becomes a vector and that differs."""
    found = []
    for (what, ours), (_, theirs) in zip(_declared(tuned), _declared(base), strict=True):
        if ours != theirs:
            found.append(Difference(what, ours, theirs))
    for kind in get_args(TextKind):
        one, two = tuned.limits[kind], base.limits[kind]
        if one != two and not (kind != "text" and (one, two) == (tuned.limits["text"], base.limits["text"])):
            found.append(Difference(f"limit for {_PLURAL[kind]}", _limit(one), _limit(two), is_gain=one > two))
    return found


def compare_configs(tuned: Checkpoint, base: Checkpoint) -> list[Difference]:
    """What config.json says of the network otherwise: direction, rotary base, activation, windows, epsilons …

    A line that is lost counts as the default that takes its place. Of two architectures, nothing is compared.
    """
    if type(tuned.model) is not type(base.model):
        return []
    ours, theirs = (_settings(one.model.config.to_dict()) for one in (tuned, base))
    return [
        Difference(name, ours.get(name, NOT_DECLARED), theirs.get(name, NOT_DECLARED))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name, NOT_DECLARED) != theirs.get(name, NOT_DECLARED)
    ]


def _settings(config: Mapping[str, Any], within: str = "") -> dict[str, str]:
    """Every setting that a vector may depend on, as JSON writes it; of an object, each of its own, behind a dot."""
    found: dict[str, str] = {}
    for name, value in config.items():
        if OF_NO_VECTOR.fullmatch(name):
            continue
        if isinstance(value, dict):
            found |= _settings(value, f"{within}{name}.")
        elif value is not None:
            found[within + name] = json.dumps(value, default=str)
    return found


def said_of(differences: Sequence[Difference], of: str = "base") -> str:
    """Differences in words: what it has, and in brackets what the other has."""
    return "; ".join(f"{one.what} {one.tuned} ({of}: {one.base})" for one in differences)


def config_findings(differences: Sequence[Difference], *, explains: bool) -> list[Finding]:
    """What config.json says otherwise.

    Args:
        explains: whether no weight has changed and vectors have, so that nothing else can be the reason.
    """
    if not differences:
        return []
    lines = ", ".join(f'"{one.what}": {one.base}' for one in differences if one.base != NOT_DECLARED)
    count = float(len(differences))
    if explains:
        return [
            COMPUTES.finding(
                "problem",
                f"The weights are the base's, and the network computes otherwise. {CONFIG}: {said_of(differences)}.",
                "Every vector is another than the one that these weights were trained to give.",
                f"Copy the base's {CONFIG}{f', or write into it: {{{lines}}}' if lines else ''}.",
                count,
            )
        ]
    return [
        COMPUTES.finding(
            "look",
            f"The network computes otherwise than the base's. {CONFIG}: {said_of(differences)}.",
            "If this came with the tuning, it is right; if a line was lost when the model was saved, it is not.",
            f"Compare {CONFIG} with the base's.",
            count,
        )
    ]


_PLURAL: dict[TextKind, str] = {"text": "texts", "query": "queries", "document": "documents"}
_SETTINGS, _SENTENCE, _POOLING = (
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)
# Where each declaration is, most often.
_FILES = {
    "pooling": _POOLING,
    "modules after pooling": "modules.json",
    "dimensions": "modules.json",
    "similarity": _SETTINGS,
    "prompt in the pooled vector": _POOLING,
    "lower-casing (do_lower_case)": _SENTENCE,
    "special tokens": "tokenizer.json",
    "side of truncation": "tokenizer_config.json",
    **{f"prompt of {kind}": _SETTINGS for kind in _PLURAL.values()},
    **{f"limit for {kind}": _SENTENCE for kind in _PLURAL.values()},
}


def declared_findings(differences: list[Difference], base: Checkpoint) -> list[Finding]:
    """``look`` if a declaration of the base is another one now; the base may have none itself."""
    if not differences:
        return [RULE.finding("ok", "It is read as the base is: pooling, modules, prompts, limits.")]
    said = said_of(differences)
    number = count(len(differences), "difference")
    if all(one.is_gain for one in differences) or not base.recipe.has_modules:
        why = "" if base.recipe.has_modules else ", which declares nothing itself (no modules.json)"
        sentence = f"It is not read as the base{why} ({number}): {said}."
        return [RULE.finding("ok", sentence, value=float(len(differences)))]
    return [
        RULE.finding(
            "look",
            f"It is not read as the base is ({number}): {said}.",
            "If this came with the tuning, it is right; if a file was lost or written by another library's defaults, "
            "it is not.",
            f"Compare {' and '.join(dict.fromkeys(_FILES[one.what] for one in differences))} with the base's.",
            float(len(differences)),
        )
    ]


def _declared(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    recipe, tokenizer = checkpoint.recipe, checkpoint.tokenizer
    yield "pooling", "+".join(recipe.pooling)
    yield "modules after pooling", " → ".join(_module(one.kind, one.config) for one in recipe.modules) or "none"
    yield "dimensions", str(checkpoint.dimension)
    yield "similarity", declared_similarity(checkpoint)
    for kind in get_args(TextKind):
        yield f"prompt of {_PLURAL[kind]}", repr(getattr(recipe.prompts, kind)) if recipe.prompts else "none"
    yield "prompt in the pooled vector", "yes" if recipe.pools_prompt or not recipe.prompts else "no"
    yield "lower-casing (do_lower_case)", "yes" if recipe.is_lowercased else "no"
    around = [
        " ".join(map(str, tokenizer.convert_ids_to_tokens(list(ids)))) or "nothing"
        for ids in (checkpoint.prefix_ids, checkpoint.suffix_ids)
    ]
    yield "special tokens", f"{around[0]} … {around[1]}"
    yield "side of truncation", str(tokenizer.truncation_side)


def _module(kind: str, config: dict[str, object]) -> str:
    """``Dense (384 to 256)``."""
    sizes = [str(config[key]) for key in ("in_features", "out_features") if key in config]
    return f"{kind} ({' to '.join(sizes)})" if sizes else kind


def _limit(tokens: int) -> str:
    return "none" if tokens >= NO_LIMIT else f"{tokens:,} tokens"
