"""The gate: does a published audit keep to a policy?

A policy (TOML) says what is allowed: absolute limits, change against a baseline, severity, required measures.
``policy`` and ``load`` read it, ``facts`` reads what it is about from the warehouse, ``evaluate`` compares, ``run``
puts the three together. A gate never passes because a figure is missing, unless the policy says so.
"""

from embaudit.gate.load import load_policy
from embaudit.gate.policy import Policy
from embaudit.gate.run import run_gate
from embaudit.gate.verdict import Finding, GateTripped, GateVerdict

__all__ = ["Finding", "GateTripped", "GateVerdict", "Policy", "load_policy", "run_gate"]
