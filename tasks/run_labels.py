"""Labels of a flow run: what it says about itself to whoever reads the run from the server."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.runtime import flow_run

# The audit that a run makes, as soon as it is known; and what its gate found.
AUDIT_LABEL = "embaudit.audit_id"
GATE_LABEL = "embaudit.gate"


def label_run(labels: Mapping[str, str]) -> None:
    """Add labels to the flow run that this is called in."""
    run_id = flow_run.get_id()
    if run_id is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run_labels(UUID(run_id), dict(labels))
