"""Rows of the table ``weight``: the load certificate with the size and spread of each tensor."""

from __future__ import annotations

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
        deviation, largest = _spread(tensors[record.name]) if record.name else (None, None)
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
        }


def _spread(tensor: torch.Tensor) -> tuple[float | None, float | None]:
    values = tensor.detach().float()
    found = float(values.std(correction=0)), float(values.abs().max())
    return (found[0] if isfinite(found[0]) else None), (found[1] if isfinite(found[1]) else None)
