"""Writes a checkpoint in which severe tokens have new input embeddings, or are removed from the tokenizer."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, load_checkpoint
from embaudit.checkpoint.rewrite import SAMPLE, add_section, copied, open_source
from embaudit.checkpoint.tensors import StoredTensor
from embaudit.remedies.mitigation import Way, prunable, pruned, replaced
from embaudit.words.errors import CheckpointError, MeasureError, NotMeasurable, UsageError

if TYPE_CHECKING:
    import torch

# Both checkpoints have the same rows for these texts; only the order of additions may differ.
TOLERANCE = 1e-6
WORDS = {
    "mean": "the mean of all others",
    "unk": "the row of the unknown token",
    "scale": "the old ones, scaled to the median length of the others",
}


@dataclass(frozen=True)
class Mitigated:
    """What was written.

    Attributes:
        tokens: ids of the tokens that were replaced or removed.
        kept: ids of tokens that the tokenizer cannot do without, and still produces.
        tensors: names of the changed tensors in the files; several if copies of the embeddings are stored.
        norms: median norm of the replaced rows before and after; None if none was replaced.
        difference: largest change of the vectors of ``texts`` sample texts that do not contain these tokens.
    """

    folder: Path
    tokens: tuple[int, ...]
    texts: int
    difference: float
    tensors: tuple[str, ...] = ()
    norms: tuple[float, float] | None = None
    kept: tuple[int, ...] = ()


def write_mitigated(
    reference: str, severe: Collection[int], how: Way, folder: Path, *, device: str = "auto", allow_pickle: bool = False
) -> Mitigated:
    """Write a checkpoint in which severe tokens are replaced or removed, ready for sentence-transformers.

    Args:
        reference: the source, as for ``load_checkpoint``.
        how: replacement for the rows; ``prune``: remove the tokens from the tokenizer.
        folder: destination; must be empty or missing.
        device: device for the check.

    Raises:
        UsageError: if the folder is not empty, a token is part of every text, there is no unknown token, or the
            tokenizer cannot do without any of the tokens.
        CheckpointError: if the source cannot be read, or its files do not contain its embeddings.
        MeasureError: if the vectors of texts without these tokens changed.
        StorageError: if it cannot be written.
    """
    folder = folder.expanduser().absolute()
    opened = open_source(reference, folder, device=device, allow_pickle=allow_pickle)
    source, resolved = opened.checkpoint, opened.resolved
    unknown = _require_replaceable(source, severe, how)
    ids = tuple(sorted(severe))
    with copied(opened, folder) as (building, tensors):
        norms: tuple[float, float] | None = None
        changed: list[StoredTensor] = []
        kept: tuple[int, ...] = ()
        if how == "prune":
            files = building / opened.recipe.tokenizer_path
            ids, kept = _prune(source, files, ids)
        else:
            before = source.model.get_input_embeddings().weight.detach()
            rows = replaced(before.float().cpu().numpy(), ids, how, unknown)
            changed = _places(source, list(tensors.values()))
            for place in changed:
                for token, row in zip(ids, rows, strict=True):
                    place.overwrite(token, _as_stored(place, row))
            old = before[list(ids)].double().norm(dim=1).median()
            norms = float(old), float(np.median(np.linalg.norm(rows, axis=1)))
        note = _section(str(resolved.ref), source, ids, how, changed)
        add_section(building / "README.md", note, resolved)
        written = load_checkpoint(str(building), opened.options)
        if how == "prune":
            _require_gone(source, written, ids)
        texts, difference = _compare(source, written, ids)
    return Mitigated(folder, ids, texts, difference, tuple(place.name for place in changed), norms, kept)


def _prune(source: Checkpoint, folder: Path, ids: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rewrite the tokenizer of a copied checkpoint; returns the removed tokens, and those that cannot be removed.

    Raises:
        UsageError: if none of the tokens can be removed.
    """
    file = folder / "tokenizer.json"
    backend = getattr(source.tokenizer, "backend_tokenizer", None)
    name = source.resolved.ref
    if backend is None:
        raise UsageError(
            f"The tokenizer of {name} runs in Python; its vocabulary cannot be rewritten.", next_step="Use --how unk."
        )
    declared = file.read_text(encoding="utf-8") if file.is_file() else backend.to_str()
    try:
        possible = prunable(declared, ids)
    except NotMeasurable as error:
        raise UsageError(f"{name}: {error.happened}", next_step="Use --how unk.") from error
    if not possible:
        raise UsageError(
            f"The tokenizer of {name} cannot do without any of these tokens: they are special, or characters of its "
            "alphabet.",
            next_step="Use --how unk.",
        )
    file.write_text(json.dumps(json.loads(pruned(declared, possible)), ensure_ascii=False, indent=2), encoding="utf-8")
    return tuple(sorted(possible)), tuple(token for token in ids if token not in possible)


def _require_gone(source: Checkpoint, written: Checkpoint, ids: tuple[int, ...]) -> None:
    """Check that the tokens' texts, alone and after a letter, no longer produce the tokens.

    Raises:
        MeasureError: if the tokenizer still produces one of them.
    """
    alone = [source.tokenizer.decode([token]) for token in ids]
    found = written.prompted_ids([*alone, *(f"a{text}" for text in alone)])
    left = sorted({token for one in found for token in one} & set(ids))
    if left:
        raise MeasureError(
            f"The tokenizer of {source.resolved.ref} still produces {len(left)} of the tokens, such as {left[0]}.",
            kept="The output was removed again; the source is untouched.",
            next_step="Use --how unk, which changes the weights instead.",
        )


def _require_replaceable(source: Checkpoint, severe: Collection[int], how: Way) -> int | None:
    """The unknown token's id, if it is needed."""
    tokenizer = source.tokenizer
    if not severe:
        raise UsageError("There is no token to replace.", next_step="Name some with --tokens TOKEN,…")
    everywhere = {*source.prefix_ids, *source.suffix_ids}
    if named := sorted(everywhere & set(severe)):
        tokens = ", ".join(map(repr, tokenizer.convert_ids_to_tokens(named)))
        raise UsageError(
            f"{tokens} is part of every text: replacing it would change every vector.", next_step="Leave it out."
        )
    if how != "unk":
        return None
    unknown = tokenizer.unk_token_id
    if unknown is None or unknown in severe:
        raise UsageError(
            f"{source.resolved.ref} has no unknown token to replace others with.", next_step="Use --how mean."
        )
    return int(unknown)


def _places(source: Checkpoint, stored: list[StoredTensor]) -> list[StoredTensor]:
    """Where the input embeddings are stored: all tensors with these values, tied copies included."""
    import torch

    weight = source.model.get_input_embeddings().weight.detach().cpu()
    found = [
        one for one in stored if one.shape == tuple(weight.shape) and torch.equal(one.read().to(weight.dtype), weight)
    ]
    if not found:
        raise CheckpointError(
            f"The weight files of {source.resolved.ref} do not contain the model's input embeddings as they are.",
            next_step="Save it again with save_pretrained(FOLDER), and use that folder.",
        )
    return found


def _as_stored(place: StoredTensor, row: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(row)[None].to(place.read(0, 1).dtype)


def _compare(source: Checkpoint, written: Checkpoint, ids: tuple[int, ...]) -> tuple[int, float]:
    """Number of sample texts without the tokens, and the largest difference between their vectors."""
    encoder = Encoder(source)
    texts = [text for text, own in zip(SAMPLE, encoder.tokenize(SAMPLE), strict=True) if not set(own) & set(ids)]
    if not texts:
        return 0, 0.0
    before = encoder.encode_texts(texts)
    difference = float(np.abs(Encoder(written).encode_texts(texts) - before).max())
    if difference > TOLERANCE * max(1.0, float(np.abs(before).max())):
        raise MeasureError(
            f"Vectors of texts without these tokens differ from those of {source.resolved.ref} by {difference:.1e}.",
            kept="The output was removed again; the source is untouched.",
            next_step="Report this with the versions that `embaudit doctor` prints.",
        )
    return len(texts), difference


def _section(reference: str, source: Checkpoint, ids: tuple[int, ...], how: Way, changed: list[StoredTensor]) -> str:
    # Ids only: a token may contain anything, including Markdown.
    names = "\n".join(f"- {token}" for token in ids)
    if how == "prune":
        change = f"{len(ids)} tokens are removed from the tokenizer (`prune`), which uses the others instead"
        where = "the names of the ids below in `tokenizer.json`, and the merges that produce them"
    else:
        change = f"the input embeddings of {len(ids)} tokens are **{WORDS[how]}** (`{how}`)"
        where = f"{', '.join(f'`{place.name}`' for place in changed)}, rows of the ids below"
    return f"""## Severe tokens

`{reference}` (weights with sha256 `{source.identity.weights_sha256}`)
with one change, made by embaudit {version("embaudit")}: {change}. Nothing was trained; everything else is identical to
the source, byte for byte. Texts without these tokens have the same vectors; the figures above are those of the source.

Changed: {where}.

<details><summary>{len(ids)} tokens</summary>

{names}

</details>
"""
