"""A checkpoint without its severe tokens, written down: other input embeddings, or a tokenizer without them."""

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
from embaudit.errors import CheckpointError, MeasureError, NotMeasurable, UsageError
from embaudit.mitigation.prune import prunable, pruned
from embaudit.mitigation.rows import Way, replaced

if TYPE_CHECKING:
    import torch

# Its rows stay as they are in both; what is left is the order in which a processor adds.
TOLERANCE = 1e-6
WORDS = {
    "mean": "the mean of all others",
    "unk": "the row of the unknown token",
    "scale": "their own direction at the median length of the others",
}


@dataclass(frozen=True)
class Mitigated:
    """What was written.

    Attributes:
        tokens: replaced, or no longer produced, by id.
        kept: ids of tokens that the tokenizer cannot do without, and still produces.
        tensors: names of the changed tensors, in the files; more than one where copies of the embeddings are stored.
        norms: median norm of the replaced rows before and after; None where none is.
        difference: largest difference of vectors of ``texts`` sample texts without these tokens.
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
    """Write a checkpoint in which severe tokens have other input embeddings, or none, ready for sentence-transformers.

    Args:
        reference: the source, as for ``load_checkpoint``.
        how: what the rows become; ``prune``: the tokenizer no longer produces the tokens.
        folder: where to; it must be empty or missing.
        device: where the check runs.

    Raises:
        UsageError: if the folder is taken, a token stands in every text, there is no unknown token, or the tokenizer
            cannot do without any of the tokens.
        CheckpointError: if the source cannot be read, or its embeddings are nowhere in its files.
        MeasureError: if texts without these tokens have other vectors afterwards.
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
    """Rewrite the tokenizer of a copied checkpoint; the tokens that it no longer produces, and those that it must.

    Raises:
        UsageError: if the tokenizer can do without none of them.
    """
    file = folder / "tokenizer.json"
    backend = getattr(source.tokenizer, "backend_tokenizer", None)
    name = source.resolved.ref
    if backend is None:
        raise UsageError(
            f"The tokenizer of {name} runs in Python and has no vocabulary of its own.", next_step="Take --how unk."
        )
    declared = file.read_text(encoding="utf-8") if file.is_file() else backend.to_str()
    try:
        possible = prunable(declared, ids)
    except NotMeasurable as error:
        raise UsageError(f"{name}: {error.happened}", next_step="Take --how unk.") from error
    if not possible:
        raise UsageError(
            f"The tokenizer of {name} cannot do without any of these tokens: they are special, or signs of its "
            "alphabet.",
            next_step="Take --how unk.",
        )
    file.write_text(json.dumps(json.loads(pruned(declared, possible)), ensure_ascii=False, indent=2), encoding="utf-8")
    return tuple(sorted(possible)), tuple(token for token in ids if token not in possible)


def _require_gone(source: Checkpoint, written: Checkpoint, ids: tuple[int, ...]) -> None:
    """Texts of the tokens become others, alone and behind a letter.

    Raises:
        MeasureError: if the tokenizer still produces one.
    """
    alone = [source.tokenizer.decode([token]) for token in ids]
    found = written.prompted_ids([*alone, *(f"a{text}" for text in alone)])
    left = sorted({token for one in found for token in one} & set(ids))
    if left:
        raise MeasureError(
            f"The tokenizer of {source.resolved.ref} still produces {len(left)} of the tokens, {left[0]} for one.",
            kept="What was written was removed again; the source is untouched.",
            next_step="Take --how unk, which changes the weights instead.",
        )


def _require_replaceable(source: Checkpoint, severe: Collection[int], how: Way) -> int | None:
    """The unknown token's id, where it is needed."""
    tokenizer = source.tokenizer
    if not severe:
        raise UsageError("There is no token to replace.", next_step="Name some: --tokens TOKEN,…")
    everywhere = {*source.prefix_ids, *source.suffix_ids}
    if named := sorted(everywhere & set(severe)):
        tokens = ", ".join(map(repr, tokenizer.convert_ids_to_tokens(named)))
        raise UsageError(f"{tokens} stands in every text: replaced, every vector would change.")
    if how != "unk":
        return None
    unknown = tokenizer.unk_token_id
    if unknown is None or unknown in severe:
        raise UsageError(
            f"{source.resolved.ref} has no unknown token that could stand for others.", next_step="Take --how mean."
        )
    return int(unknown)


def _places(source: Checkpoint, stored: list[StoredTensor]) -> list[StoredTensor]:
    """Where the input embeddings are stored: the tensors that hold the same numbers, tied copies included."""
    import torch

    weight = source.model.get_input_embeddings().weight.detach().cpu()
    found = [
        one for one in stored if one.shape == tuple(weight.shape) and torch.equal(one.read().to(weight.dtype), weight)
    ]
    if not found:
        raise CheckpointError(
            f"The input embeddings of {source.resolved.ref} are not in its weight files as the model has them.",
            next_step="Save it anew with save_pretrained(FOLDER), and give that folder.",
        )
    return found


def _as_stored(place: StoredTensor, row: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(row)[None].to(place.read(0, 1).dtype)


def _compare(source: Checkpoint, written: Checkpoint, ids: tuple[int, ...]) -> tuple[int, float]:
    """How many sample texts hold none of the tokens, and the largest difference of their vectors."""
    encoder = Encoder(source)
    texts = [text for text, own in zip(SAMPLE, encoder.tokenize(SAMPLE), strict=True) if not set(own) & set(ids)]
    if not texts:
        return 0, 0.0
    before = encoder.encode_texts(texts)
    difference = float(np.abs(Encoder(written).encode_texts(texts) - before).max())
    if difference > TOLERANCE * max(1.0, float(np.abs(before).max())):
        raise MeasureError(
            f"Texts without these tokens have other vectors than {source.resolved.ref} gives them: {difference:.1e}.",
            kept="What was written was removed again; the source is untouched.",
            next_step="Report this with the versions that `embaudit doctor` prints.",
        )
    return len(texts), difference


def _section(reference: str, source: Checkpoint, ids: tuple[int, ...], how: Way, changed: list[StoredTensor]) -> str:
    # Ids: a token may be anything, Markdown too.
    names = "\n".join(f"- {token}" for token in ids)
    if how == "prune":
        change = f"the tokenizer no longer produces {len(ids)} tokens (`prune`) and writes texts with the others"
        where = "the names of the ids below in `tokenizer.json`, and merges that make them"
    else:
        change = f"the input embeddings of {len(ids)} tokens are **{WORDS[how]}** (`{how}`)"
        where = f"{', '.join(f'`{place.name}`' for place in changed)}, rows of the ids below"
    return f"""## Severe tokens

`{reference}` (weights with sha256 `{source.identity.weights_sha256}`)
with one change, made by embaudit {version("embaudit")}: {change}. Nothing was trained; all else is the source's, byte
for byte. Texts without these tokens have the same vectors; figures above are of the source.

Changed: {where}.

<details><summary>{len(ids)} tokens</summary>

{names}

</details>
"""
