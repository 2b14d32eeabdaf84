"""Commands that can be killed at any moment, and what they left: files, rows, words.

A command starts in a process forked from one that has torch, Great Expectations and the rest loaded already: it is the
same command in a process of its own, some seconds sooner, so that a test can afford to kill many of them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import IO, Any

import duckdb

from embaudit.warehouse.tables import TABLES

HEAVY = (
    *("torch", "transformers.models.bert.modeling_bert", "sklearn.linear_model", "great_expectations"),
    *("pandas", "duckdb", "pyarrow.parquet", "scipy.stats"),
)
# They say when, and how long: of no meaning for whether a row is the same.
VOLATILE = {"started", "finished", "seconds", "ingested", "applied", "imported", "published"}
State = dict[Path, int]
Rows = dict[str, list[tuple[Any, ...]]]
Make = Callable[..., "Command"]
# As long as a file is open, no other one gets its number.
_held: dict[int, IO[bytes]] = {}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str

    def refused(self) -> Ended:
        """What ended with an error that it tells."""
        assert self.returncode == 2, self.stdout + self.stderr
        assert "Traceback" not in self.stderr, self.stderr
        return self

    @property
    def paragraph(self) -> str:
        """The error paragraph, with the places of this machine taken out."""
        # Prefect's own complaint about its log may stand before it without a line's end.
        found = re.findall(r"(?:Error: |Interrupted\.).*", self.stderr)
        assert found, self.stderr
        return shortened(found[-1])


@dataclass(frozen=True)
class Stroke:
    """A signal that comes at a point of a command's way: the command itself sends it, so that no load moves the point.

    Args:
        number: to the command and whatever it has started, as a terminal does.
        staging: when the first file of this table is whole, and does not have its name yet.
        named: when it has just got its name, and Prefect does not know that the task is done.
        publishing: when the rows of this table are about to be written into the warehouse, after those of others.
    """

    number: signal.Signals
    staging: str = ""
    named: bool = False
    publishing: str = ""

    def prepare(self) -> None:
        if self.staging:
            sys.addaudithook(self._watch_files())
            return
        from embaudit.warehouse import publish

        write = publish.write_table

        def write_table(connection: Any, audit_id: str, staged: publish.StagedTable) -> int:
            if staged.table == self.publishing:
                self._fall()
            return write(connection, audit_id, staged)

        publish.write_table = write_table

    def _watch_files(self) -> Callable[[str, tuple[Any, ...]], None]:
        naming: set[int] = set()
        fallen: list[bool] = []

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            if fallen or event not in ("os.rename", "open"):
                return
            thread = threading.get_ident()
            is_naming = event == "os.rename" and Path(os.fsdecode(arguments[1])).name.startswith(f"{self.staging}-")
            if is_naming and self.named:
                naming.add(thread)
            elif is_naming or thread in naming:
                fallen.append(True)
                self._fall()

        return watch

    def _fall(self) -> None:
        os.killpg(0, self.number)


@dataclass
class Command:
    """``embaudit`` with its words, environment and folder."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    started: list[ForkServerProcess] = field(default_factory=list)

    def start(self, stroke: Stroke | None = None) -> Running:
        number = len(list(self.folder.glob(".run-*.out")))
        output, errors = (self.folder / f".run-{number}.{kind}" for kind in ("out", "err"))
        process = _context().Process(
            target=_command,
            args=(self.arguments, dict(self.environment), str(self.folder), str(output), str(errors), stroke),
        )
        process.start()
        self.started.append(process)
        return Running(process, output, errors)

    def run(self, timeout: float = 600) -> Ended:
        return self.start().wait(timeout)


@dataclass
class Running:
    """A started command."""

    process: ForkServerProcess
    output: Path
    errors: Path

    def is_running(self) -> bool:
        return self.process.is_alive()

    def kill(self) -> None:
        """kill -9 for it and everything that it has started."""
        self.send(signal.SIGKILL)
        self.process.join()

    def send(self, number: int) -> None:
        assert self.process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait_for(self, condition: Callable[[], Any], seconds: float = 600) -> Any:
        """The condition's first true value; the command must not end before."""

        def is_so() -> Any:
            # In this order: it may be so, and the command over, between the two.
            runs = self.is_running()
            found = condition()
            assert found or runs, f"the command ended before: {self.errors.read_text()}"
            return found

        return wait_for(is_so, seconds)

    def wait(self, timeout: float = 600) -> Ended:
        self.process.join(timeout)
        if self.process.is_alive():
            self.kill()
            raise AssertionError(f"it did not end in {timeout} s: {self.errors.read_text()}")
        return Ended(self.process.exitcode or 0, self.output.read_text(), self.errors.read_text())


@dataclass(frozen=True)
class Finished:
    """An audit that is done: its command, its home and every row that it published."""

    command: Command
    home: Path
    content: Rows

    @property
    def warehouse(self) -> Path:
        return self.home / "warehouse.duckdb"

    def file(self, table: str, corpus: str) -> Path:
        """The staged file of a table that holds a corpus' rows."""
        import pyarrow.parquet as pq

        for path in sorted(self.home.glob(f"staging/socm/*/{table}-*.parquet")):
            if corpus in set(pq.read_table(path, columns=["corpus"], partitioning=None).column("corpus").to_pylist()):
                return path
        raise AssertionError(f"no staged {table} of {corpus}")


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(HEAVY))
    return context


def _command(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    folder: str,
    output: str,
    errors: str,
    stroke: Stroke | None,
) -> None:
    os.setsid()
    for path, number in ((output, 1), (errors, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["embaudit", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if stroke is not None:
        stroke.prepare()
    from embaudit.cli.main import main

    main()


def wait_for(condition: Callable[[], Any], seconds: float = 600, pause: float = 0.005) -> Any:
    """The condition's first true value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(pause)
    raise AssertionError("it did not happen in time")


def staged_files(home: Path) -> list[Path]:
    """Staged files that a step computes, without what records an audit or a corpus, which is written anew."""
    return [path for path in home.glob("staging/**/*.parquet") if path.parts[-3] not in ("audit", "corpus")]


def staged(home: Path) -> State:
    """The inode of every staged file, which stays its own until ``release``.

    A file that is computed again is another inode under the old name. Its time says nothing: publishing touches files.
    """
    found = {}
    for path in staged_files(home):
        with contextlib.suppress(FileNotFoundError):
            if (number := path.stat().st_ino) not in _held:
                file = path.open("rb")
                number = os.fstat(file.fileno()).st_ino
                _held[number] = file
            found[path] = number
    return found


def release() -> None:
    for file in _held.values():
        file.close()
    _held.clear()


def rewritten(before: State, after: State) -> set[Path]:
    """Files that were computed once more."""
    return {path for path, state in before.items() if after.get(path) != state}


def steps(files: Any) -> set[Path]:
    """What one task writes lies in one folder."""
    return {path.parent for path in files}


def rows(warehouse: Path) -> dict[str, int]:
    """Rows of every published table."""
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return {name: _one(connection, f"SELECT count(*) FROM {name}") for name in TABLES}


def content(warehouse: Path) -> Rows:
    """Every row of every published table and of the log, without times."""
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        found = {}
        for name in (*TABLES, "audit", "measure_run"):
            columns = [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall() if row[0] not in VOLATILE]
            quoted = ", ".join(f'"{column}"' for column in columns)
            found[name] = connection.execute(f"SELECT {quoted} FROM {name} ORDER BY ALL").fetchall()
        return found


def statuses(warehouse: Path) -> list[str]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return [row[0] for row in connection.execute("SELECT status FROM audit ORDER BY audit_id").fetchall()]


def is_whole_or_empty(warehouse: Path, tables: tuple[str, ...] = ("socm_pair", "socm_text", "socm_summary")) -> bool:
    """Whether an audit's tables are all filled or all empty."""
    found = rows(warehouse)
    return len({found[table] > 0 for table in tables}) == 1


def hold(warehouse: Path) -> subprocess.Popen[str]:
    """Another program that has the warehouse open for writing."""
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(warehouse)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == "held"
    return holder


def shortened(text: str) -> str:
    """A message without this machine's folders."""
    return re.sub(r"(/[^\s:;,)]*)?/(home|staging|tiny|checkpoint|disk)(?=[/\s.:,;)])", r"…/\2", text)


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    row = connection.execute(sql).fetchone()
    return int(row[0]) if row else 0
