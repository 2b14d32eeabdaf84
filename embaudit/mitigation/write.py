"""A checkpoint without its severe tokens, written down: a copy in which their input embeddings are replaced."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, load_checkpoint
from embaudit.checkpoint.rewrite import SAMPLE, add_section, copied, open_source
from embaudit.checkpoint.tensors import StoredTensor
from embaudit.errors import CheckpointError, MeasureError, UsageError
from embaudit.mitigation.rows import How, replaced

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
        tokens: replaced, by id.
        tensors: names of the changed tensors, in the files; more than one where copies of the embeddings are stored.
        norms: median norm of the replaced rows before and after.
        difference: largest difference of vectors of ``texts`` sample texts without these tokens.
    """

    folder: Path
    tokens: tuple[int, ...]
    tensors: tuple[str, ...]
    norms: tuple[float, float]
    texts: int
    difference: float


def write_mitigated(
    reference: str, severe: Collection[int], how: How, folder: Path, *, device: str = "auto", allow_pickle: bool = False
) -> Mitigated:
    """Write a checkpoint in which severe tokens have other input embeddings, ready for sentence-transformers.

    Args:
        reference: the source, as for ``load_checkpoint``.
        folder: where to; it must be empty or missing.
        device: where the check runs.

    Raises:
        UsageError: if the folder is taken, a token stands in every text, or there is no unknown token.
        CheckpointError: if the source cannot be read, or its embeddings are nowhere in its files.
        MeasureError: if texts without these tokens have other vectors afterwards.
        StorageError: if it cannot be written.
    """
    folder = folder.expanduser().absolute()
    opened = open_source(reference, folder, device=device, allow_pickle=allow_pickle)
    source, resolved = opened.checkpoint, opened.resolved
    unknown = _require_replaceable(source, severe, how)
    ids = tuple(sorted(severe))
    before = source.model.get_input_embeddings().weight.detach()
    rows = replaced(before.float().cpu().numpy(), ids, how, unknown)
    with copied(opened, folder) as (building, tensors):
        changed = _places(source, list(tensors.values()))
        for place in changed:
            for token, row in zip(ids, rows, strict=True):
                place.overwrite(token, _as_stored(place, row))
        note = _section(str(resolved.ref), source, ids, how, changed)
        add_section(building / "README.md", note, resolved)
        written = load_checkpoint(str(building), opened.options)
        texts, difference = _compare(source, written, ids)
    old = before[list(ids)].double().norm(dim=1).median()
    return Mitigated(
        folder=folder,
        tokens=ids,
        tensors=tuple(place.name for place in changed),
        norms=(float(old), float(np.median(np.linalg.norm(rows, axis=1)))),
        texts=texts,
        difference=difference,
    )


def _require_replaceable(source: Checkpoint, severe: Collection[int], how: How) -> int | None:
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


def _section(reference: str, source: Checkpoint, ids: tuple[int, ...], how: How, changed: list[StoredTensor]) -> str:
    # Ids: a token may be anything, Markdown too.
    names = "\n".join(f"- {token}" for token in ids)
    return f"""## Severe tokens

The weights of `{reference}` (sha256 `{source.identity.weights_sha256}`)
with one change, made by embaudit {version("embaudit")}: the input embeddings of {len(ids)} tokens are **{WORDS[how]}**
(`{how}`). Nothing was trained; all else is the source's, byte for byte. Texts without these tokens have the same
vectors; figures above are of the source.

Changed: {", ".join(f"`{place.name}`" for place in changed)}, rows of the ids below.

<details><summary>{len(ids)} tokens</summary>

{names}

</details>
"""
