"""The gate: checks a published audit, or answers that are kept, against a policy.

A policy (TOML) says what is allowed: absolute limits, change against a baseline, severity, required measures.
``policy`` and ``load`` read it, ``facts`` and ``answers`` read what it is about from the warehouse, ``evaluate``
compares them, ``run`` puts it all together. A missing figure never makes a gate pass, unless the policy says so.
"""

from embaudit.warehouse.gate.policy import Policy, load_audit_policy, load_policy
from embaudit.warehouse.gate.run import run_gate
from embaudit.warehouse.gate.verdict import GateFinding, GateTripped, GateVerdict

__all__ = ["GateFinding", "GateTripped", "GateVerdict", "Policy", "load_audit_policy", "load_policy", "run_gate"]
