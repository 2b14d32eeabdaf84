"""How the rows of checkpoints, corpora, vocabularies, gates and watches are broken, and what fails for it."""

from __future__ import annotations

import pandas as pd
from broken_rows import Broken, broken

EARLY = pd.Timestamp("2026-01-01", tz="UTC")
RECORDS: dict[str, list[Broken]] = {
    "watched_revision": [
        broken(0, "in_set done_rows_have_audit", audit_id=None),
        broken(1, "in_set done_rows_have_audit", status="audited"),
        broken(2, "in_set status", "in_set done_rows_have_audit", status="seen"),
        broken(2, "in_set times_are_in_order", last_seen=EARLY),
    ],
    "regression": [
        broken(1, "in_set delta_is_difference", delta=0.2),
        broken(0, "in_set worse_is_beyond_tolerance", is_worse=False),
        broken(2, "in_set worse_is_beyond_tolerance", is_worse=True),
        broken(3, "in_set audits_differ", predecessor_audit_id="a3"),
        broken(0, "between tolerance", tolerance=-0.1),
    ],
    "gate_result": [
        broken(0, "in_set outcome_agrees_with_limits", value=0.45),
        broken(1, "in_set outcome_agrees_with_limits", "in_set tripping_rows_have_failed", outcome="tripped"),
        broken(0, "in_set tripping_rows_have_failed", trips=False),
        broken(1, "in_set tripping_rows_have_failed", trips=True),
        broken(0, "in_set kind", kind="wish"),
        broken(0, "greater highest, lowest", highest=0.3),
    ],
    "finding": [
        broken(0, "in_set values_lie_in_intervals", value=0.7),
        broken(0, "in_set values_lie_in_intervals", value=None),
        broken(0, "in_set values_lie_in_intervals", high=None),
    ],
    "token": [
        broken(5, "in_set category", category="strange"),
        broken(5, "between embedding_norm", embedding_norm=-1.0),
        broken(5, "between cosine_to_mean", cosine_to_mean=1.1),
    ],
    "corpus": [
        broken(1, "in_set counts_add_up", broken=2),
        broken(1, "in_set kind", kind="sounds"),
        broken(1, "between kept", "in_set counts_add_up", kept=0),
    ],
    "text": [
        broken(3, "between position", position=-2),
        broken(3, "null text", text=None),
    ],
    "text_pair": [
        broken(1, "between position", position=-2),
    ],
    "checkpoint": [
        broken(0, "between max_length", max_length=0),
    ],
}
