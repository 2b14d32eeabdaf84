"""Reads and overwrites tensors of safetensors files in place, leaving every other byte unchanged.

The format: eight bytes with the header's length, a JSON header with each tensor's dtype, shape and offsets, the data.

Tensors without a number in them were saved before their pieces were gathered.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embaudit.checkpoint.files import is_pickle, read_object, weight_files
from embaudit.system.small_files import MOST_BYTES, parsed
from embaudit.words.errors import CheckpointError, one_line

if TYPE_CHECKING:
    import torch

LENGTH_BYTES = 8


@dataclass(frozen=True)
class StoredTensor:
    """One tensor in a file: its dtype in safetensors notation (F32); its data are ``size`` bytes from ``start`` on."""

    file: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int

    def read(self, first: int = 0, count: int | None = None) -> torch.Tensor:
        """Rows from ``first`` on; all of them without a ``count``. A tensor without dimensions is read whole."""
        # Heavy, and not needed where a Python object alone is asked.
        from safetensors import safe_open

        with safe_open(self.file, framework="pt") as opened:
            if not self.shape:
                whole: torch.Tensor = opened.get_tensor(self.name)
                return whole
            rows: torch.Tensor = opened.get_slice(self.name)[first : self.shape[0] if count is None else first + count]
        return rows

    def overwrite(self, first: int, rows: torch.Tensor) -> None:
        """Replace rows from ``first`` on; they must have the tensor's dtype."""
        import torch

        data = rows.cpu().contiguous().view(torch.uint8).numpy().tobytes()
        with self.file.open("r+b") as opened:
            opened.seek(self.start + first * (len(data) // len(rows)))
            opened.write(data)


def stored_tensors(files: Sequence[Path]) -> dict[str, StoredTensor]:
    """The tensors of safetensors files, by name.

    Raises:
        CheckpointError: if a header cannot be read.
    """
    found: dict[str, StoredTensor] = {}
    for file in files:
        try:
            with file.open("rb") as opened:
                length = int.from_bytes(opened.read(LENGTH_BYTES), "little")
                if length > MOST_BYTES:
                    raise ValueError(f"its header would have {length:,} bytes")
                header = parsed(opened.read(length))
            for name, entry in header.items():
                if name != "__metadata__":
                    start, end = (LENGTH_BYTES + length + int(offset) for offset in entry["data_offsets"])
                    shape = tuple(entry["shape"])
                    found[name] = StoredTensor(file, name, str(entry["dtype"]), shape, start, end - start)
        except (
            OSError,
            UnicodeDecodeError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            MemoryError,
        ) as error:
            raise CheckpointError(
                f"{file} cannot be read as safetensors: {one_line(error)}", next_step="Download the checkpoint again."
            ) from error
    return found


def unpickle(pickles: Sequence[Path], index: Path | None, folder: Path) -> list[Path]:
    """Convert pickled weights, which the user trusts, to safetensors in ``folder``.

    Args:
        pickles: the weights, one file or shards.
        index: the file that lists the shards, if there are several.
        folder: where the new files go.

    Raises:
        CheckpointError: if a pickle contains more than tensors, or cannot be read.
    """
    import torch
    from safetensors.torch import save_file

    renamed = {
        path.name: path.name.replace("pytorch_model", "model").removesuffix(".bin") + ".safetensors" for path in pickles
    }
    for path in pickles:
        try:
            content = torch.load(path, weights_only=True, map_location="cpu")
            # Clone: tensors in a pickle may share memory, those in safetensors may not.
            tensors = {str(name): tensor.detach().clone().contiguous() for name, tensor in content.items()}
        except Exception as error:  # pickle and torch raise their own exceptions
            raise CheckpointError(
                f"{path} cannot be read as a pickle of tensors only.",
                next_step="Convert it to safetensors where it was made.",
            ) from error
        save_file(tensors, folder / renamed[path.name], metadata={"format": "pt"})
    if index is not None:
        named = read_object(index)
        named["weight_map"] = {name: renamed[Path(file).name] for name, file in named["weight_map"].items()}
        (folder / "model.safetensors.index.json").write_text(json.dumps(named, indent=2) + "\n", encoding="utf-8")
    return [folder / name for name in renamed.values()]


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
