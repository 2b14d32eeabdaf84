"""What a watch would do, without doing it: no server, nothing fetched, nothing written."""

from __future__ import annotations

from embaudit.watch.history import History, read_watched
from embaudit.watch.hub import list_organisation
from embaudit.watch.look import SourceState, every_source, look
from embaudit.watch.watch_list import WatchList


def preview(entries: WatchList, warehouse: str, *, again: bool) -> list[SourceState]:
    """The findings for everything on the list, given what the warehouse knows."""
    history = History(read_watched(warehouse))
    sources, findings = every_source(entries, list_organisation)
    return findings + [look(source, history, again=again) for source in sources]
