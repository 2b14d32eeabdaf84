"""Whether a Prefect server does at night what it should: runs are scheduled, a worker polls, its services are at work.

Its UI says *Ready* while its scheduler dies every minute, and runs that are started by hand do not show it. So this
asks for what a service that works must have left behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from embaudit.words.errors import one_line
from embaudit.words.sentences import duration
from embaudit_flows.server.set_up import DIED, LATE, MISSED, WORK_POOL, ZOMBIES

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

# A worker that has said nothing for so long, and a run that should have begun so long ago, and is not called late.
STALE = timedelta(seconds=90)
DEPLOY, WORK = "prefect --no-prompt deploy --all", "embaudit worker"
DEAD = (
    "its scheduler is not running or fails: look into the log of `prefect server start`; with Prefect 3.8 the server "
    "needs SQLAlchemy below 2.1 (pip install -c requirements.lock -e .)"
)


@dataclass(frozen=True)
class ServerFact:
    """One thing about a server; ``advice`` says what to type where it is not good."""

    what: str
    found: str
    is_good: bool = True
    advice: str = ""


def server_facts() -> Iterator[ServerFact]:
    """What the configured server does; what cannot be asked is said as that."""
    from prefect.client.orchestration import get_client

    now = datetime.now(UTC)
    for what, ask in (
        ("schedules", _schedules),
        ("workers", _workers),
        ("services", _services),
        ("calls", _calls),
    ):
        try:
            with get_client(sync_client=True) as client:
                yield ask(client, now)
        except Exception as error:
            yield ServerFact(
                what, f"cannot be asked: {type(error).__name__}: {one_line(error)}", False, "embaudit doctor"
            )


def _schedules(client: SyncPrefectClient, now: datetime) -> ServerFact:
    """Whether each schedule has become runs, and when the next of them is."""
    own = {one.id: one for one in client.read_deployments() if "embaudit" in one.tags}
    if not own:
        return ServerFact("schedules", "nothing is deployed: no night will run", False, DEPLOY)
    planned = {one.id for one in own.values() if not one.paused and any(part.active for part in one.schedules)}
    if not planned:
        return ServerFact(
            "schedules", "no schedule is active: no night will run", False, "prefect deployment schedule ls"
        )
    runs = _runs(
        client, {"state": {"type": {"any_": ["SCHEDULED"]}}, "next_scheduled_start_time": {"after_": _at(now)}}
    )
    have = {run["deployment_id"] for run in runs}
    without = sorted(own[key].name for key in planned if str(key) not in have)
    # The scheduler looks every minute, and a deployment that was just made waits for it.
    young = [own[key] for key in planned if str(key) not in have and now - _time(own[key].updated) < 2 * STALE]
    if without and len(young) < len(without):
        return ServerFact("schedules", f"no run is scheduled of {', '.join(without)}", False, DEAD)
    if without:
        return ServerFact("schedules", f"{', '.join(without)} just deployed; runs appear within a minute")
    first = min(runs, key=lambda run: str(run["next_scheduled_start_time"]))
    at = datetime.fromisoformat(str(first["next_scheduled_start_time"]))
    name = own[next(key for key in own if str(key) == first["deployment_id"])].name
    return ServerFact(
        "schedules",
        f"{len(runs)} runs are scheduled; the next is {name}, in {duration((at - now).total_seconds())} "
        f"({at:%Y-%m-%d %H:%M} UTC)",
    )


def _workers(client: SyncPrefectClient, now: datetime) -> ServerFact:
    from prefect.exceptions import ObjectNotFound

    try:
        workers = client.read_workers_for_work_pool(WORK_POOL)
    except ObjectNotFound:
        return ServerFact("workers", f"there is no work pool {WORK_POOL}", False, "embaudit setup-server")
    seen = [_time(one.last_heartbeat_time) for one in workers if one.last_heartbeat_time]
    alive = sum(now - at < STALE for at in seen)
    if alive:
        return ServerFact("workers", f"{alive} poll{'s' if alive == 1 else ''} the pool {WORK_POOL}")
    last = f"; the last one was seen {duration((now - max(seen)).total_seconds())} ago" if seen else ""
    return ServerFact("workers", f"none polls the pool {WORK_POOL}: runs will wait{last}", False, WORK)


def _services(client: SyncPrefectClient, now: datetime) -> ServerFact:
    """What each of the server's services last did, by what it left behind."""
    due = {"before_": _at(now - STALE)}
    overdue = _runs(client, {"state": {"name": {"any_": ["Scheduled"]}}, "next_scheduled_start_time": due})
    if overdue:
        return ServerFact("services", f"{len(overdue)} runs are overdue and not called late", False, DEAD)
    events = _newest(client, {})
    acted = _newest(client, {"event": {"prefix": ["prefect.automation.triggered"]}})
    if events is None:
        return ServerFact(
            "services", "no event was ever kept: automations cannot see anything", False, "look into the server's log"
        )
    said = f"the last event was kept {duration((now - events).total_seconds())} ago"
    done = "none was triggered yet" if acted is None else f"triggered {duration((now - acted).total_seconds())} ago"
    return ServerFact("services", f"{said}; automations: {done}; no run is overdue")


def _calls(client: SyncPrefectClient, now: datetime) -> ServerFact:
    """Whether anybody is called when something is wrong."""
    from prefect.variables import Variable

    from embaudit_flows.notify import VARIABLE

    there = {name for name in (ZOMBIES, DIED, LATE, MISSED) if client.read_automations_by_name(name)}
    if ZOMBIES not in there:
        return ServerFact("calls", "dead runs are never ended", False, "embaudit setup-server --notify KIND/NAME")
    block = Variable.get(VARIABLE)
    if not block or len(there) < 4:
        return ServerFact("calls", "nobody is called", False, "embaudit setup-server --notify KIND/NAME")
    return ServerFact("calls", f"{block} is called for problems, dead and late runs, and a night that did not run")


def _runs(client: SyncPrefectClient, flow_runs: dict[str, Any]) -> list[dict[str, Any]]:
    tagged = {"tags": {"all_": ["embaudit"]}}
    answer = client.request("POST", "/flow_runs/filter", json={"flow_runs": flow_runs | tagged, "limit": 200})
    answer.raise_for_status()
    return list(answer.json())


def _newest(client: SyncPrefectClient, chosen: dict[str, Any]) -> datetime | None:
    answer = client.request("POST", "/events/filter", json={"filter": {"order": "DESC", **chosen}, "limit": 1})
    answer.raise_for_status()
    found = answer.json()["events"]
    return datetime.fromisoformat(found[0]["occurred"]) if found else None


def _time(at: Any) -> datetime:
    return at if isinstance(at, datetime) else datetime.min.replace(tzinfo=UTC)


def _at(time: datetime) -> str:
    return time.isoformat()
