"""``embaudit doctor``: check this machine, or how a checkpoint is read, and say how to fix problems.

Finds temporary servers of this user that outlived their command (which ``server/temporary.py`` should prevent).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from embaudit.cli.options import as_text, warehouse_option, warehouse_path
from embaudit.system.settings import Lake, Warehouse
from embaudit.words.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE, EmbauditError, HubUnreachable
from embaudit.words.masking import without_credentials
from embaudit_flows.server.temporary import MODULE

# Age of a process as ps prints it: [[dd-]hh:]mm:ss.
ELAPSED = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)")
UNITS = ("d", "h", "min", "s")


@dataclass(frozen=True)
class TemporaryServerProcess:
    """A running temporary server of embaudit.

    ``command`` is the process that started it, ``age`` its age in the largest unit ("3 d"), ``memory`` its resident
    bytes.
    """

    pid: int
    parent: int
    command: int
    age: str
    memory: int

    @property
    def is_leftover(self) -> bool:
        """Whether the command has ended: an orphaned process gets another parent."""
        return self.parent != self.command


def temporary_servers() -> list[TemporaryServerProcess]:
    """Temporary servers of this user, from any command and environment; not Prefect servers of other programs.

    Raises:
        OSError: if there is no ``ps``, or it does not behave as POSIX says.
    """
    columns = [word for column in ("pid", "ppid", "etime", "rss", "args") for word in ("-o", f"{column}=")]
    listed = subprocess.run(
        ["ps", "-ww", "-U", str(os.getuid()), *columns], capture_output=True, text=True, errors="replace", check=False
    )
    if listed.returncode:
        raise OSError(listed.stderr.strip() or f"ps ended with {listed.returncode}")
    server = re.compile(rf"(\d+) +(\d+) +(\S+) +(\d+) .* -m {re.escape(MODULE)} \d+ (\d+)")
    found = (server.fullmatch(line.strip()) for line in listed.stdout.splitlines())
    return [
        TemporaryServerProcess(int(one[1]), int(one[2]), int(one[5]), _age(one[3]), int(one[4]) * 1024)
        for one in found
        if one
    ]


def _age(elapsed: str) -> str:
    match = ELAPSED.fullmatch(elapsed)
    numbers = [int(number or 0) for number in match.groups()] if match else []
    return next((f"{number} {unit}" for number, unit in zip(numbers, UNITS, strict=False) if number), "0 s")


LIBRARIES = (
    "torch",
    "transformers",
    "datasets",
    "numpy",
    "scipy",
    "duckdb",
    "prefect",
    "great-expectations",
    "fastapi",
)
GIB = 1024**3
MIN_FREE_BYTES = 2 * GIB


@dataclass(frozen=True)
class Checked:
    """One line of the result; the ``advice`` of a bad finding says what to type."""

    what: str
    found: str
    is_good: bool = True
    advice: str = ""


@click.command()
@click.argument("checkpoint", required=False)
@click.option("--trust-remote-code", is_flag=True, help="Run code shipped with the checkpoint.")
@warehouse_option
def doctor(checkpoint: str | None, trust_remote_code: bool, warehouse: Warehouse | None) -> int:
    """Check versions, device, hub, warehouse, disk and servers, and say how to fix problems.

    With CHECKPOINT, check instead that embaudit reads it as sentence-transformers does: the vectors of encode,
    encode_query and encode_document for texts of many kinds. Exit code 1 if they differ by more than 1e-5.

    Without it, exit code 2 if an audit of a local checkpoint cannot run here; an unreachable hub alone does not count.
    """
    if checkpoint is not None:
        return _compare(checkpoint, trust_remote_code)
    place = warehouse_path(warehouse)
    findings = [
        _versions(),
        _device(),
        _packaged_checkpoint(),
        _hub(),
        _warehouse(place),
        _disk(place.data_path if isinstance(place, Lake) else place),
        *_server(),
        _leftovers(),
    ]
    table = Table("", "what", "found", "what to do")
    for finding in findings:
        table.add_row("ok" if finding.is_good else "!", finding.what, as_text(finding.found), as_text(finding.advice))
    Console(width=None if Console().is_terminal else 160).print(table)
    needed = {"libraries", "warehouse", "disk"}
    return EXIT_DONE if all(finding.is_good or finding.what not in needed for finding in findings) else EXIT_USAGE


def _compare(reference: str, trust_remote_code: bool) -> int:
    from embaudit.checkpoint import LoadOptions, load_checkpoint
    from embaudit.checkpoint.agreement import METHODS, SAME, Agreement, compare_readings

    checkpoint = load_checkpoint(reference, LoadOptions(dtype="float32", trust_remote_code=trust_remote_code))
    table = Table(
        "",
        "texts",
        *METHODS.values(),
        "what failed",
        caption=f"Largest difference in a component of unit vectors; at most {SAME:g} is rounding.",
    )
    kinds: dict[str, list[Agreement]] = {}
    for row in compare_readings(checkpoint, trust_remote_code=trust_remote_code):
        kinds.setdefault(row.kind, []).append(row)
    for kind, rows in kinds.items():
        shown = ["not compared" if row.difference is None else f"{row.difference:.1e}" for row in rows]
        failures = "; ".join(dict.fromkeys(row.failure for row in rows if row.failure))
        table.add_row("ok" if all(row.is_same for row in rows) else "!", kind, *shown, as_text(failures))
    Console(width=None if Console().is_terminal else 160).print(table)
    different = [kind for kind, rows in kinds.items() if not all(row.is_same for row in rows)]
    click.echo(
        f"{reference} (checkpoint {checkpoint.checkpoint_id}) is read as sentence-transformers reads it."
        if not different
        else f"{reference} is read otherwise than by sentence-transformers: {', '.join(different)}. An audit would not "
        "be of the vectors that it serves. Please report this with the checkpoint's settings files."
    )
    return EXIT_TRIPPED if different else EXIT_DONE


def _versions() -> Checked:
    from packaging.requirements import Requirement

    wrong = []
    for line in requires("embaudit") or []:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            wrong.append(f"{requirement.name} {installed} is not {requirement.specifier}")
    if wrong:
        return Checked("libraries", "; ".join(wrong), False, "pip install -c requirements.lock -e . (or: make audit)")
    return Checked("libraries", ", ".join(f"{name} {version(name)}" for name in LIBRARIES))


def _device() -> Checked:
    import torch

    from embaudit.checkpoint.load import choose_device

    device = choose_device("auto")
    if device == "cpu":
        return Checked(
            "device",
            f"cpu, {torch.get_num_threads()} threads",
            advice="the full profiles run much faster on a GPU",
        )
    return Checked("device", f"{device}: {torch.cuda.get_device_name(0) if device == 'cuda' else 'Apple GPU'}")


def _packaged_checkpoint() -> Checked:
    from embaudit.checkpoint import LoadOptions, resolve
    from embaudit.checkpoint.load import describe
    from embaudit.checkpoint.reference import PACKAGED

    name = next(iter(PACKAGED))

    def state() -> str:
        _, identity = describe(resolve(f"packaged:{name}"), LoadOptions())
        return f"packaged:{name}, weights as published (checkpoint {identity.checkpoint_id})"

    return _check("packaged checkpoint", state)


def _hub() -> Checked:
    from embaudit.system.hub import answering_address

    try:
        return Checked("model hub", f"{answering_address()} answers")
    except HubUnreachable as error:
        return Checked("model hub", error.happened, False, error.next_step)


def _warehouse(place: Warehouse) -> Checked:
    from embaudit.warehouse.connect import open_reader

    if isinstance(place, Path) and not place.exists():
        return Checked(
            "warehouse", f"none yet at {place}", advice="embaudit audit packaged:all-MiniLM-L6-v2 creates it"
        )

    def state() -> str:
        with open_reader(place) as connection:
            schema, audits = connection.execute(
                "SELECT (SELECT max(version) FROM schema_migration), "
                "(SELECT count(*) FROM audit WHERE status = 'published')"
            ).fetchone() or (0, 0)
        size = f", {place.stat().st_size / 1024**2:.0f} MiB" if isinstance(place, Path) else ""
        return f"{place}: schema {schema}, audits published: {audits}{size}"

    return _check("warehouse", state)


def _disk(path: Path) -> Checked:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    writable = os.access(existing, os.W_OK)
    if not writable:
        return Checked(
            "disk",
            f"{existing} is not writable",
            False,
            "point EMBAUDIT_HOME or --warehouse to a writable folder",
        )
    if free < MIN_FREE_BYTES:
        return Checked(
            "disk",
            f"{free / GIB:.1f} GiB free at {existing}",
            False,
            "free some space, or point EMBAUDIT_HOME elsewhere",
        )
    return Checked("disk", f"{free / GIB:.0f} GiB free at {existing}")


def _server() -> list[Checked]:
    """The configured server, and whether it does at night what it should."""
    import httpx

    from embaudit_flows.server.settings import loopback_exempt, require_usable_proxies, set_defaults

    try:
        require_usable_proxies()
        set_defaults(show_logs=False)
    except EmbauditError as error:
        return [Checked("Prefect", error.happened, False, error.next_step)]
    from prefect.settings import PREFECT_API_URL

    # From the environment, or from where `prefect config set` keeps it.
    url = PREFECT_API_URL.value()
    if not url:
        return [
            Checked(
                "Prefect",
                "no server configured: audits start a temporary one",
                advice="keeping `prefect server start` running saves 10 s per audit",
            )
        ]
    os.environ.update(loopback_exempt())
    try:
        httpx.get(f"{url}/health", timeout=5.0).raise_for_status()
    except httpx.HTTPError as error:
        return [
            Checked(
                "Prefect",
                f"{without_credentials(url)} does not answer ({type(error).__name__})",
                False,
                "start it (prefect server start) or unset PREFECT_API_URL (prefect config unset PREFECT_API_URL)",
            )
        ]
    from embaudit_flows.health import server_facts

    facts = (Checked(one.what, one.found, one.is_good, one.advice) for one in server_facts())
    return [Checked("Prefect", f"{without_credentials(url)} answers"), *facts]


def _leftovers() -> Checked:
    what = "temporary servers"
    try:
        servers = temporary_servers()
    except OSError as error:
        return Checked(what, f"cannot be listed: {error}")
    left = [server for server in servers if server.is_leftover]
    if not left:
        return Checked(what, f"{len(servers)} running, none left over" if servers else "none running")
    named = [f"process {one.pid} ({one.age} old, {one.memory / 1024**2:.0f} MiB)" for one in left]
    pids = " ".join(str(server.pid) for server in left)
    return Checked(what, f"left over: {', '.join(named)}", False, f"kill {pids}")


def _check(what: str, state: Callable[[], str]) -> Checked:
    try:
        return Checked(what, state())
    except EmbauditError as error:
        return Checked(what, error.happened, False, error.next_step)
