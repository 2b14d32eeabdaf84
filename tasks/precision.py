"""How fast half precision is here: measured once per kind of machine, and staged like any other result."""

from __future__ import annotations

from embaudit.checkpoint.precision import product_seconds
from embaudit_tasks.steps import Outputs, step

PRODUCT_SECONDS = {"rows": "int64", "float32": "float64", "half": "float64"}


@step("precision", version=1, tables=("product_seconds",), name="measure precision", not_in_key=("device",))
def measure_precision(out: Outputs, device: str, half: str, widths: tuple[int, int], machine: dict[str, str]) -> None:
    """Seconds of matrix products in float32 and in half precision.

    The precision is part of a scan's key, and near the limit a second measurement could change it, so that an audit
    would not find its own staged files. So the first measurement stands, for all machines of its kind that share the
    staging folder.

    Args:
        machine: what the ratio of the two precisions depends on.
    """
    found = product_seconds(device, half, widths)
    row = {"rows": found.rows, "float32": found.float32, "half": found.half}
    out.rows("product_seconds", [row], PRODUCT_SECONDS, detail={"speedup": found.speedup})
