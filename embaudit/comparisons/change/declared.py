"""How each of the two is read: pooling, modules after it, prompts, limits, special tokens, similarity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.finding import Finding
from embaudit.functions.checkpoint import declared_similarity

RULE = "same_reading"


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
        return [Finding("ok", "It is read as the base is: pooling, modules, prompts, limits.", name=RULE)]
    said = "; ".join(f"{one.what} {one.tuned} (base: {one.base})" for one in differences)
    if all(one.is_gain for one in differences) or not base.recipe.has_modules:
        why = "" if base.recipe.has_modules else ", which declares nothing itself (no modules.json)"
        sentence = f"It is not read as the base{why}: {said}."
        return [Finding("ok", sentence, name=RULE, value=float(len(differences)))]
    return [
        Finding(
            "look",
            f"It is not read as the base is: {said}.",
            "If this came with the tuning, it is right; if a file was lost or written by another library's defaults, "
            "it is not.",
            f"Compare {' and '.join(dict.fromkeys(_FILES[one.what] for one in differences))} with the base's.",
            RULE,
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
