"""The precision of a scan: how fast half precision is here, measured once per kind of machine and staged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from embaudit.checkpoint.precision import faster_precision, half_precision, machine, product_seconds
from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.steps.step import Outputs, step

PRODUCT_SECONDS = {"rows": "int64", "float32": "float64", "half": "float64"}


@dataclass(frozen=True)
class HalfSpeedup:
    """How many times as fast half precision is as float32."""

    speedup: float


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
    out.rows("product_seconds", [row], PRODUCT_SECONDS, detail=HalfSpeedup(found.speedup))


class ScanPrecision(NamedTuple):
    """A dtype, and the measured speedup of half precision over float32; None if not measured."""

    dtype: str
    speedup: float | None


def scan_precision(run: Run) -> ScanPrecision:
    """The precision in the settings; for ``auto``, half precision if it is clearly faster here.

    With ``auto``, a checkpoint that is audited in half precision (``--dtype``) is also scanned in it, and an audit that
    runs the published code's protocol is all in its own: its figures are held against published ones.
    """
    settings, device = run.settings(StickySettings), run.spec.device
    if settings.scan_dtype != "auto":
        return ScanPrecision(settings.scan_dtype, None)
    half = half_precision(device) if run.spec.dtype == "float32" and not settings.reference else None
    if half is None:
        return ScanPrecision(run.spec.dtype, None)
    (measured,) = measure_precision.compute(run.staging, device, half, run.widths, machine(device))
    speedup = measured.found(HalfSpeedup).speedup
    return ScanPrecision(faster_precision(half, speedup), speedup)
