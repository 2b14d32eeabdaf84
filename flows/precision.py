"""Decides the precision of a scan, once per audit."""

from __future__ import annotations

from typing import NamedTuple

from embaudit.checkpoint.precision import faster_precision, half_precision, machine
from embaudit.measures.sticky.settings import StickySettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.precision import measure_precision


class ScanPrecision(NamedTuple):
    """A dtype, and the measured speedup of half precision over float32; None if not measured."""

    dtype: str
    speedup: float | None


def scan_precision(plan: AuditPlan) -> ScanPrecision:
    """The precision in the settings; for ``auto``, half precision if it is clearly faster here.

    With ``auto``, a checkpoint that is audited in half precision (``--dtype``) is also scanned in it.
    """
    wanted, device = plan.profile.of(StickySettings).scan_dtype, plan.spec.device
    if wanted != "auto":
        return ScanPrecision(wanted, None)
    half = half_precision(device) if plan.spec.dtype == "float32" else None
    if half is None:
        return ScanPrecision(plan.spec.dtype, None)
    (measured,) = measure_precision.compute(plan.staging, device, half, plan.widths, machine(device))
    speedup = measured.detail["speedup"]
    return ScanPrecision(faster_precision(half, speedup), speedup)
