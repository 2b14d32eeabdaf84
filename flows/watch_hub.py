"""What a watch asks of the hub, as tasks with retries."""

from __future__ import annotations

from typing import Any

from embaudit.watch.history import History
from embaudit.watch.look import Source, SourceState, every_source, look
from embaudit.watch.watch_list import OrganisationEntry, WatchList
from embaudit.words.errors import HubUnreachable
from embaudit_tasks.watch import ask_for_commit, ask_for_content, ask_for_models

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
