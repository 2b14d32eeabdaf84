"""The nightly job: looks at everything on a watch list, audits what is new, and compares it with what was there before.

Nothing is audited twice. Unreadable sources, an unreachable hub and failed audits are recorded and tried again next
time; none of them stops the others. Whatever is wrong ends the run red, under its name (``embaudit.watch.happening``),
and stays so, watch after watch, until it is mended or somebody accepts it. Then come the questions of the list: of
endpoints, since what they serve may change without a new checkpoint, and of indexes, since rows come into them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from embaudit.system.settings import Settings, warehouse_at
from embaudit.warehouse.gate import load_audit_policy
from embaudit.watch.history import History, read_watched
from embaudit.watch.look import Source, SourceState, every_source, look
from embaudit.watch.outcome import WatchOutcome
from embaudit.watch.watch_list import OrganisationEntry, WatchList, read_watch_list
from embaudit.words.errors import HubUnreachable
from embaudit_flows.ending import ends_in_words
from embaudit_flows.notify import Notifier, notify_on_failure
from embaudit_flows.watch_record import WatchRecord, in_this_process, on_workers, require_deployment
from embaudit_tasks.watch import ask_for_commit, ask_for_content, ask_for_models


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


# Nine minutes: a hub that restarts is back by then, and a night is long enough to wait.
RETRY_DELAYS = (10.0, 60.0, 480.0)


class HubTasks:
    """The questions as tasks; after the hub has not answered in all attempts, later questions are asked only once."""

    def __init__(self, delays: list[float]) -> None:
        self._delays = delays

    def look(self, source: Source, history: History, *, again: bool) -> SourceState:
        return look(source, history, commit_of=self._commit_of, content_of=self._content_of, again=again)

    def sources(self, entries: WatchList) -> tuple[list[Source], list[SourceState]]:
        return every_source(entries, self._models_of)

    def _models_of(self, entry: OrganisationEntry) -> list[str]:
        return list(self._call(ask_for_models, entry))

    def _commit_of(self, name: str, branch: str | None) -> str:
        return str(self._call(ask_for_commit, name, branch))

    def _content_of(self, source: Source, reference: str) -> str:
        return str(self._call(ask_for_content, source, reference))

    def _call(self, asking: Any, *arguments: Any) -> Any:
        configured = asking.with_options(retries=len(self._delays), retry_delay_seconds=self._delays or None)
        try:
            return configured(*arguments)
        except HubUnreachable:
            self._delays = []
            raise
