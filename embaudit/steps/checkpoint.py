"""A checkpoint's own row, as a step."""

from __future__ import annotations

from embaudit.checkpoint.card import describe_row
from embaudit.steps.results import CheckpointSpec, checkpoint_of
from embaudit.steps.step import Outputs, step
from embaudit.steps.tables import CheckpointRow


@step("checkpoint", version=3, tables=(CheckpointRow,), name="describe checkpoint")
def describe_checkpoint(out: Outputs, spec: CheckpointSpec, source: str, reference: str) -> None:
    """The checkpoint's own row.

    Args:
        source: what the user calls it.
        reference: the same, pinned; only for the key: another commit with the same content is staged separately.
    """
    out.rows(CheckpointRow, [{**describe_row(checkpoint_of(spec)), "source": source}])
