"""An audit that was made before: the same flow as a plain call, if every step's files exist.

A Prefect run costs more than all the rest of such an audit: its server has to start, and each of some seventy tasks is
reported to it. Where the server is the command's own, nobody watches that run either.
"""

from __future__ import annotations

from embaudit.checkpoint.reference import CheckpointRef
from embaudit.measures.profile import load_profile
from embaudit.questions.audit import AuditRequest
from embaudit.steps.progress import NoDisplay, show, shown_on
from embaudit.steps.step import NotStaged, only_staged
from embaudit.warehouse.connect import open_reader
from embaudit.words.errors import ProblemFound, WarehouseError
from embaudit_flows.audit import audit
from embaudit_flows.plan import AuditOutcome
from embaudit_tasks.audit_task import in_a_run

PUBLISHED = """
SELECT 1 FROM audit
WHERE status = 'published' AND profile = ? AND json_extract_string(settings, '$.source') = ?
    AND list_has_all(CAST(json_extract(settings, '$.measures') AS VARCHAR[]), ?)
LIMIT 1
"""


def audit_again(request: AuditRequest) -> AuditOutcome | None:
    """Everything that the flow does (names resolved, sources read, tables checked and published, gate, page), no run.

    None if something has to be computed, or if it fails: a run can retry it, and reports it.

    Raises:
        ProblemFound: as the flow.
    """
    # A notification block is on a server. Within somebody's flow, the audit's tasks are tasks of that run.
    if request.notify or in_a_run() or not _was_published(request):
        return None
    try:
        # A run that follows would show the same measures again.
        with only_staged(), shown_on(NoDisplay()):
            outcome = audit.fn(request)
    except ProblemFound:
        raise
    except (NotStaged, Exception):
        return None
    show("Nothing to compute: every result was staged by an earlier audit.")
    return outcome


def _was_published(request: AuditRequest) -> bool:
    """Whether an audit measured the same of this checkpoint: without one, its corpora need not be read."""
    source = CheckpointRef.parse(request.checkpoint)
    asked = [load_profile(request.profile).name, str(source), list(request.chosen_measures)]
    try:
        with open_reader(request.published_to, wait_seconds=0) as connection:
            return connection.execute(PUBLISHED, asked).fetchone() is not None
    except WarehouseError:
        return False
