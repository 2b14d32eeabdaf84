"""Rows of the table ``weight``: the load certificate with the size and spread of each tensor."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint import Checkpoint
from embaudit.measures.integrity.certificate import TensorRecord, in_memory

if TYPE_CHECKING:
    import torch

NUMBER = re.compile(r"\.(\d+)\.")


def weight_rows(checkpoint: Checkpoint, records: Iterable[TensorRecord]) -> Iterator[dict[str, Any]]:
    """One row per record of ``trace``."""
    tensors = in_memory(checkpoint)
    for record in records:
        name = record.name or record.stored_name
        number = NUMBER.search(name.removeprefix("after_pooling"))
        deviation, largest, content = _values_of(tensors[record.name]) if record.name else (None, None, None)
        yield {
            "tensor": record.name or f"{record.file}: {record.stored_name}",
            "layer": int(number[1]) if number else None,
            "status": record.status,
            "file": record.file or None,
            "stored_name": record.stored_name or None,
            "stored_dtype": record.stored_dtype or None,
            "shape": " × ".join(map(str, record.shape)),
            "entries": prod(record.shape),
            "deviation": deviation,
            "largest": largest,
            "content": content,
        }


def _values_of(tensor: torch.Tensor) -> tuple[float | None, float | None, str]:
    """Standard deviation, largest absolute value and hash."""
    import torch

    values = tensor.detach().float().cpu().contiguous()
    deviation, largest = float(values.std(correction=0)), max(abs(float(end)) for end in torch.aminmax(values))
    # Of the values where they are: their bytes would be the tensor a second time.
    content = hashlib.blake2b(values.numpy().reshape(-1).data, digest_size=8).hexdigest()
    return (deviation if isfinite(deviation) else None), (largest if isfinite(largest) else None), content
