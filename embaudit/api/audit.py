"""``embaudit.audit``: audit a checkpoint from Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.api.loaded_model import save_model
from embaudit.api.notebook import shown_to_caller
from embaudit.api.reading import Audit
from embaudit.api.run import refuse_early, run_audit
from embaudit.questions.audit import AuditRequest
from embaudit.system.address import warehouse_at
from embaudit.words.errors import DoNotServe, EmbauditError
from embaudit_flows.server.lost import expected_failure
from embaudit_flows.server.settings import defaults_for_call

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def audit(
    checkpoint: str | Path | SentenceTransformer,
    profile: str | Path = "quick",
    *,
    warehouse: str | Path | None = None,
    backbone: str | None = None,
    **settings: Any,
) -> Audit:
    """Audit a checkpoint like ``embaudit audit``; repeating the call continues and recomputes nothing.

    Flows run on the server at ``PREFECT_API_URL``; without it, the first call starts a server that is shared by later
    calls and ends with this process. A notebook shows the progress.

    Args:
        checkpoint: packaged:NAME, a local folder, owner/name@revision on the hub, or a loaded ``SentenceTransformer``,
            which is written to ``EMBAUDIT_HOME/models/CHECKPOINT_ID`` and audited from there.
        profile: quick, probes, standard, paper, or a TOML file.
        warehouse: where to publish it; by default ``EMBAUDIT_WAREHOUSE``, or warehouse.duckdb in ``EMBAUDIT_HOME``.
        backbone: also audit this checkpoint and store the differences; ``card``: the one named in the model card.
        settings: fields of ``embaudit.questions.audit.AuditSettings``: measures, corpora, device, seed, …

    Raises:
        EmbauditError: as the command would; ``GateTripped`` for a tripped gate, after publishing. A verdict not to
            serve the checkpoint is no error here: it is the first of the audit's findings.
    """
    asked: dict[str, Any] = {"profile": str(profile), "warehouse": str(warehouse) if warehouse else None, **settings}
    name = str(checkpoint) if isinstance(checkpoint, str | Path) else None
    # Report invalid settings before writing a model.
    request = AuditRequest.of(checkpoint=name or "a loaded model", **asked)
    if name is None:
        request = request.changed(checkpoint=str(save_model(checkpoint, request)))
    refuse_early(request, backbone)
    try:
        with defaults_for_call(), shown_to_caller():
            outcome, _ = run_audit(request, backbone)
    except DoNotServe as error:
        # A verdict, which whoever reads the audit sees first.
        outcome = error.audit
    except EmbauditError:
        raise
    except Exception as error:
        failure = expected_failure(error)
        if failure is None:
            raise
        raise failure from error
    return Audit(warehouse_at(outcome.warehouse), outcome.audit_id, tuple(outcome.warnings))
