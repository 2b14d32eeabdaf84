"""Removes tokens from a tokenizer: texts that contained them are tokenised with the remaining tokens.

Ids do not change, so the weights stay as they are: a removed entry is renamed to a string that no text contains. In a
BPE vocabulary, the merges that produce it are removed, too. Texts without the tokens are tokenised as before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from tokenizers import Tokenizer

from embaudit.words.errors import NotMeasurable


def prunable(tokenizer_json: str, ids: Collection[int]) -> set[int]:
    """The ids that can be removed: no added tokens, not the unknown token, no intermediate step to other tokens.

    A BPE token is an intermediate step if a merge turns it into a token that stays. A token that no merge produces is
    a character of the alphabet; without it, the character would disappear from texts.

    Raises:
        NotMeasurable: if tokens cannot be removed from this type of tokenizer.
    """
    declared = json.loads(tokenizer_json)
    model = declared["model"]
    names = _names(model)
    possible = set(ids) & names.keys() - {one["id"] for one in declared.get("added_tokens", ())}
    possible.discard(_unknown(model, names))
    if model["type"] != "BPE":
        return possible
    merges = [(merge, _merged(merge, model)) for merge in _merges(model)]
    made = {result for _, result in merges}
    possible = {token for token in possible if names[token] in made}
    while True:
        gone = {names[token] for token in possible}
        steps = {part for merge, result in merges if result not in gone for part in merge}
        if not gone & steps:
            return possible
        possible = {token for token in possible if names[token] not in steps}


def pruned(tokenizer_json: str, ids: Collection[int]) -> str:
    """The tokenizer without the given tokens, all of which must be ``prunable``."""
    declared = json.loads(tokenizer_json)
    model = declared["model"]
    names = _names(model)
    gone = {names[token] for token in ids if token in names}
    hidden = {names[token]: _hidden(token) for token in ids if token in names}
    if isinstance(model["vocab"], dict):
        model["vocab"] = {hidden.get(name, name): token for name, token in model["vocab"].items()}
    else:
        model["vocab"] = [[hidden.get(name, name), score] for name, score in model["vocab"]]
    if model["type"] == "BPE":
        model["merges"] = [list(merge) for merge in _merges(model) if not gone & {*merge, _merged(merge, model)}]
    return json.dumps(declared, ensure_ascii=False)


def pieces(tokenizer_json: str, texts: Sequence[str]) -> list[list[int]]:
    """Token ids of texts, without special tokens."""
    tokenizer = Tokenizer.from_str(tokenizer_json)
    return [encoded.ids for encoded in tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def _hidden(token: int) -> str:
    # Every tokenizer splits at spaces or replaces them, so no token produced from a text contains one.
    return f"embaudit: pruned {token}"


def _names(model: dict[str, Any]) -> dict[int, str]:
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        return {token: name for name, token in vocabulary.items()}
    if isinstance(vocabulary, list):
        return {token: name for token, (name, _) in enumerate(vocabulary)}
    raise NotMeasurable(f"tokens cannot be removed from a {model.get('type')} tokenizer.")


def _unknown(model: dict[str, Any], names: dict[int, str]) -> int | None:
    if "unk_id" in model:
        return model["unk_id"]
    return next((token for token, name in names.items() if name == model.get("unk_token")), None)


def _merges(model: dict[str, Any]) -> list[tuple[str, str]]:
    """Merges as pairs; older files store a merge as one string."""
    found = (tuple(merge.split(" ", 1)) if isinstance(merge, str) else tuple(merge) for merge in model["merges"])
    return [(first, second) for first, second in found]


def _merged(merge: tuple[str, str], model: dict[str, Any]) -> str:
    first, second = merge
    return first + second.removeprefix(model.get("continuing_subword_prefix") or "")
