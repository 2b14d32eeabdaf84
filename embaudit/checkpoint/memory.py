"""Batches that are too large for the memory: tried again in halves, down to a single text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from embaudit.words.errors import MeasureError, is_out_of_memory, one_line

if TYPE_CHECKING:
    import torch

Result = TypeVar("Result")


def in_halves(
    run: Callable[[torch.Tensor, torch.Tensor], Result],
    ids: torch.Tensor,
    mask: torch.Tensor,
    lower: Callable[[int], None],
) -> Iterator[tuple[slice, Result]]:
    """``run(ids, mask)`` and its rows; if that takes more memory than there is, each half of the rows, and so on.

    How much fits is not known beforehand: other programs share a GPU, and models differ in what they keep.

    Args:
        run: a forward pass; what it returns should not stay on the device, where the other half is still to run.
        ids, mask: (B, n).
        lower: told how many tokens fit at most, so that later batches are not too large first.

    Raises:
        MeasureError: if a single text is too large.
    """
    import torch

    waiting = [slice(0, len(ids))]
    while waiting:
        rows = waiting.pop()
        try:
            result = run(ids[rows], mask[rows])
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if rows.stop - rows.start == 1:
                raise MeasureError(
                    f"The memory of {ids.device} is not enough for one text of {ids.shape[1]:,} tokens: "
                    f"{one_line(error)}",
                    kept="Every finished step is staged.",
                    next_step="Free some, or lower --max-length, or choose another --dtype or --device, and run the "
                    "same command again: it continues where it stopped.",
                ) from error
        else:
            yield rows, result
            continue
        # Not in the handler: the error's frames hold what the failed pass had computed.
        if ids.is_cuda:
            torch.cuda.empty_cache()
        middle = (rows.start + rows.stop) // 2
        lower((middle - rows.start) * ids.shape[1])
        waiting += [slice(middle, rows.stop), slice(rows.start, middle)]
