"""The precision of a scan, decided once for an audit."""

from __future__ import annotations

from typing import NamedTuple

from embaudit.checkpoint.precision import faster_precision, half_precision, machine
from embaudit.measures.sticky.settings import StickySettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.precision import measure_precision


class ScanPrecision(NamedTuple):
    """A dtype, and how many times as fast as float32 half precision was; None where nothing was measured."""

    dtype: str
    speedup: float | None


def scan_precision(plan: AuditPlan) -> ScanPrecision:
    """The settings' precision; for ``auto`` half precision where it is clearly faster here.

    A checkpoint that is audited in half precision (``--dtype``) is scanned in it too.
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
