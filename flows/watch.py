"""The nightly job: looks at everything on a watch list, audits what is new, and compares it with what was there before.

Nothing is audited twice. Unreadable sources, an unreachable hub and failed audits are recorded and tried again next
time; none of them stops the others. Whatever is wrong ends the run red, under its name (``embaudit.watch.happening``),
and stays so, watch after watch, until it is mended or somebody accepts it. Then come the questions of the list: of
endpoints, since what they serve may change without a new checkpoint, and of indexes, since rows come into them.
"""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from embaudit.system.address import warehouse_at
from embaudit.system.settings import Settings
from embaudit.warehouse.gate import load_audit_policy
from embaudit.watch.history import History
from embaudit.watch.outcome import WatchOutcome
from embaudit.watch.watch_list import read_watch_list
from embaudit.watch.watched import read_watched
from embaudit_flows.ending import ends_in_words
from embaudit_flows.notify import Notifier, notify_on_failure
from embaudit_flows.watch_audits import in_this_process, on_workers, require_deployment
from embaudit_flows.watch_hub import RETRY_DELAYS, HubTasks
from embaudit_flows.watch_record import WatchRecord


def _run_name() -> str:
    from prefect.runtime import flow_run

    return f"watch {flow_run.parameters.get('watch_list') or 'watch.toml'}"


@flow(name="watch", flow_run_name=_run_name, persist_result=False)
@ends_in_words("Watch failed")
def watch(
    watch_list: str | None = None,
    warehouse: str | None = None,
    again: bool = False,
    deployment: str | None = None,
    timeout_seconds: float = 6 * 3600,
    retry_delays: list[float] | None = None,
    notify: str | None = None,
) -> WatchOutcome:
    """Look at a watch list once, and audit what is new.

    Args:
        watch_list: TOML file; default: ``EMBAUDIT_WATCH_LIST``, or ``watch.toml`` in ``EMBAUDIT_HOME``.
        warehouse: as in the flow ``audit``.
        again: audit every source's current revision, seen or not: what a new version of embaudit computes differently
            is computed again, everything else is reused as staged.
        deployment: run audits as runs of this deployment (``audit/on-demand``) on workers instead of in this process.
        timeout_seconds: how long to wait for such runs.
        retry_delays: seconds between attempts to reach a hub that does not answer.
        notify: a Prefect notification block to notify of a watch that failed or found a problem; by default the one
            that the server was set up with. The watch list names those of audits.
    """
    with notify_on_failure(Notifier(notify), f"Watch of {watch_list or 'watch.toml'}"):
        return _watch(watch_list, warehouse, again, deployment, timeout_seconds, retry_delays)


def _watch(
    watch_list: str | None,
    warehouse: str | None,
    again: bool,
    deployment: str | None,
    timeout_seconds: float,
    retry_delays: list[float] | None,
) -> WatchOutcome:
    settings = Settings()
    path = Path(watch_list) if watch_list else settings.watch_list_path
    entries = read_watch_list(path)
    for policy in sorted({entry.settings.policy for entry in entries.all if entry.settings.policy}):
        load_audit_policy(policy)
    if deployment:
        require_deployment(deployment)
    place = str(warehouse_at(warehouse or settings.warehouse_path))
    hub = HubTasks(list(RETRY_DELAYS) if retry_delays is None else retry_delays)
    record = WatchRecord(place, settings, read_history(place), loads=deployment is None)
    sources, unlisted = hub.sources(entries)
    findings = unlisted + [hub.look(source, record.history, again=again) for source in sources]
    record.write([finding for finding in findings if not finding.needs_audit])
    auditor = (
        on_workers(deployment, place, warehouse, timeout_seconds, again) if deployment else in_this_process(warehouse)
    )
    record.audit([finding for finding in findings if finding.needs_audit], auditor)
    record.forget({finding.source.name for finding in findings})
    record.answer(entries.questions)
    return record.finish(str(path))


def read_history(warehouse: str) -> History:
    """What earlier watches saw."""
    return History(read_watched(warehouse))
