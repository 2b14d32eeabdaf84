"""The validation in half precision: used where it is faster and moves no figure by a tenth of its interval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from warehouse_rows import rows

from embaudit.checkpoint.precision import ProductSeconds
from embaudit.measures import sticky
from embaudit.measures.sticky.effects import Effect
from embaudit.measures.sticky.steps import candidates, verdicts
from embaudit.measures.sticky.steps.verdicts import FIGURES, differences
from embaudit.questions.audit import AuditRequest
from embaudit_flows.audit import audit

EFFECT = Effect(
    **{"points": 10, "rho": 0.1, "rho_0": 0.1, "excess_pull": 0.0, "sticks_to": None, "severity": "weak"},
    **{"pull": 0.2, "pull_low": 0.1, "pull_high": 0.3, "slope": 0.7, "slope_low": 0.6, "slope_high": 0.8},
    **{"loss": 0.3, "loss_low": 0.2, "loss_high": 0.4, "focal_point": 0.5, "focal_low": 0.4, "focal_high": 0.6},
    **{"shift": 0.0, "compression": None, "near_u_05": 0.0, "near_u_10": 0.0, "p_pull": 0.5, "p_slope": 0.5},
)


@pytest.mark.parametrize("name", FIGURES)
def test_a_difference_is_in_widths_of_the_interval(name: str) -> None:
    moved = replace(EFFECT, **{name: getattr(EFFECT, name) + 0.05})
    assert max(differences([EFFECT, EFFECT], [EFFECT, moved])) == pytest.approx(0.25)
    lost = replace(EFFECT, **{name: float("nan")})
    assert max(differences([EFFECT], [lost])) == 1.0
    # An interval that no resample defines tells nothing.
    unknown = replace(EFFECT, **{f"{name}_low": None, f"{name}_high": None})
    assert max(differences([unknown], [moved])) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("accepted", "dtype"), [(0.1, "bfloat16"), (0.0, "float32")])
def test_it_is_used_where_it_moves_no_figure(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, monkeypatch: pytest.MonkeyPatch, accepted: float, dtype: str
) -> None:
    monkeypatch.setattr(candidates, "product_seconds", lambda *given: ProductSeconds(0.008, 0.002, 128))
    monkeypatch.setattr(verdicts, "ACCEPTED_SHARE", accepted)
    # With few candidates all of them are validated as the rest of the audit.
    monkeypatch.setattr(verdicts, "COMPARED_TOKENS", 5)
    monkeypatch.setattr(sticky, "COMPARED_TOKENS", 5)
    request = AuditRequest.of(
        checkpoint=str(tiny_checkpoint),
        profile=str(tiny_profile),
        measures=["sticky"],
        measure_settings={"sticky": {"scan_dtype": "auto"}},
        device="cpu",
    )
    outcome = audit.fn(request)
    (found,) = rows(
        outcome.warehouse, "SELECT DISTINCT validation_dtype, validation_difference, encodes FROM sticky_summary"
    )
    assert found[0] == dtype
    assert 0 < found[1] < 0.1
    validated = f"SELECT count(DISTINCT token_id) FROM sticky_validation WHERE audit_id = '{outcome.audit_id}'"
    assert rows(outcome.warehouse, validated)[0][0] > 40
