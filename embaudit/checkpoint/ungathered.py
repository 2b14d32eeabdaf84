"""Weights that were saved before their pieces were gathered: tensors without a number in them."""

from __future__ import annotations

from pathlib import Path

from embaudit.checkpoint.files import is_pickle, weight_files
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.words.errors import CheckpointError


def refuse_ungathered(folder: Path) -> None:
    """To be asked once a folder's weights did not fit its model.

    Raises:
        CheckpointError: if some of them are empty.
    """
    shapes = _shapes(folder)
    empty = [name for name, shape in shapes.items() if 0 in shape]
    if empty:
        first = "" if len(empty) == 1 else " first"
        raise CheckpointError(
            f"{len(empty):,} of {len(shapes):,} tensors in the weights of {folder} are empty, {empty[0]}{first}: they "
            "were saved without being gathered, as DeepSpeed's ZeRO-3 keeps them in training.",
            next_step="If DeepSpeed's own files of that step are there (global_step…), put them together: python -m "
            f"deepspeed.utils.zero_to_fp32 {folder} OUT --safe_serialization. If not, save it again with "
            "stage3_gather_16bit_weights_on_model_save (accelerate: zero3_save_16bit_model) set to true.",
        )


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """By name; of pickles, which whoever loads them trusts, without their numbers."""
    import torch

    files = weight_files(folder)
    try:
        if not any(is_pickle(file) for file in files):
            return {name: one.shape for name, one in stored_tensors(files).items()}
        tensors = [torch.load(file, weights_only=True, map_location="meta") for file in files]
        return {name: tuple(one.shape) for some in tensors for name, one in some.items()}
    except Exception:  # broken files, and pickles of other things: the error of the load says so
        return {}
