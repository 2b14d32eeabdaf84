"""Remedies for severe tokens: replaced input embeddings, a tokenizer without them, transforms of the output space.

Rare tokens are severe if their input embedding was hardly trained (arXiv 2507.18171, open questions). With the rows
e_1 … e_V of the vocabulary and S the severe ids, their replacements are:

    unk    the row of the unknown token, which the model was trained to read for tokens that it does not know
    mean   the mean of e_v over v ∉ S
    scale  e_t · median_{v ∉ S} ‖e_v‖ / ‖e_t‖: its own direction, at an ordinary length

Transforms of the output space are fitted on vectors of ordinary texts and applied to every vector.

Where tokens are removed from a tokenizer, texts that contained them are tokenised with the remaining tokens. Ids do not
change, so the weights stay as they are: a removed entry is renamed to a string that no text contains. In a BPE
vocabulary, the merges that produce it are removed, too. Texts without the tokens are tokenised as before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Literal, get_args

import numpy as np
from tokenizers import Tokenizer

from embaudit.words.errors import NotMeasurable

How = Literal["unk", "mean", "scale"]
HOWS: tuple[How, ...] = get_args(How)
# What ``embaudit.remedies.mitigation.write`` can do to a checkpoint: replace rows, or remove tokens from the tokenizer.
Way = Literal[How, "prune"]
WAYS: tuple[Way, ...] = (*HOWS, "prune")


def replaced(embeddings: np.ndarray, severe: Collection[int], how: How, unknown: int | None = None) -> np.ndarray:
    """New rows for the severe ids in ascending order, (|S|, d) float64; ``scale`` leaves zero rows unchanged.

    Args:
        embeddings: (V, d) input embeddings.
        unknown: id of the unknown token; required for ``unk``.
    """
    ids = np.array(sorted(severe), dtype=np.int64)
    rows = embeddings.astype(np.float64)
    others = np.delete(rows, ids, axis=0)
    if how == "mean":
        return np.repeat(others.mean(axis=0)[None], len(ids), axis=0)
    if how == "unk":
        assert unknown is not None
        return np.repeat(rows[unknown][None], len(ids), axis=0)
    norms = np.linalg.norm(rows[ids], axis=1, keepdims=True)
    ordinary = float(np.median(np.linalg.norm(others, axis=1)))
    return np.where(norms > 0, rows[ids] * (ordinary / np.where(norms > 0, norms, 1)), rows[ids])


# Directions with less than this share of the largest variance are rounding noise, which whitening would amplify.
MIN_VARIANCE = 1e-9
# Mu and Viswanath (2018) remove D ≈ d/100 components.
DIMENSIONS_PER_COMPONENT = 100


class Centring:
    """v − mean, with the mean over the vectors it is fitted on."""

    def __init__(self, fitted: np.ndarray) -> None:
        if len(fitted) < 2:
            raise NotMeasurable(f"{len(fitted)} vectors are too few to fit a mean.")
        self.mean = fitted.astype(np.float64).mean(axis=0)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return vectors.astype(np.float64) - self.mean


class WithoutComponents:
    """(v − mean)(I − U Uᵀ), with U the first D = max(1, round(d/100)) principal directions.

    "All but the top" (Mu and Viswanath 2018, arXiv 1702.01417).
    """

    def __init__(self, fitted: np.ndarray) -> None:
        self._centring = Centring(fitted)
        count = max(1, round(fitted.shape[1] / DIMENSIONS_PER_COMPONENT))
        self.directions = np.linalg.svd(self._centring(fitted), full_matrices=False)[2][:count]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        centred = self._centring(vectors)
        return centred - centred @ self.directions.T @ self.directions


class Whitening:
    """(v − mean) U Λ^(−1/2): gives the vectors it is fitted on unit variance in every direction in which they vary."""

    def __init__(self, fitted: np.ndarray) -> None:
        from sklearn.decomposition import PCA

        if len(fitted) < 2:
            raise NotMeasurable(f"{len(fitted)} vectors are too few to fit a covariance.")
        rows = fitted.astype(np.float64)
        if not np.ptp(rows, axis=0).any():
            raise NotMeasurable("all vectors to fit on are equal: there is no covariance to whiten.")
        variances = PCA(svd_solver="full").fit(rows).explained_variance_
        self.directions = int((variances > MIN_VARIANCE * variances[0]).sum())
        self._pca = PCA(self.directions, whiten=True, svd_solver="full").fit(rows)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        whitened: np.ndarray = self._pca.transform(vectors.astype(np.float64))
        return whitened


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
