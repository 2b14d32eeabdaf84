"""The temporary Prefect server of a process without a configured one; it ends with the process, however that ends.

``python -m embaudit_flows.server.temporary SOCKET COMMAND`` is the server: the number of the inherited listening
socket, and the command's process id, so that it shows in ``ps``. Standard input is a pipe whose other end is held only
by the command: the system closes it when the command is gone, even if it was killed. (Linux's parent-death signal would
come when the thread that started the server ends, and macOS has none.)

A server that is lost is reported in one paragraph instead of its client's traceback. The hub's network errors have been
translated by the time they get here, so a bare transport error comes from Prefect's client.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path

from embaudit.words.errors import EmbauditError, ServerError, StorageError, causes_of, machine_failure, one_line

MODULE, DATABASE = "embaudit_flows.server.temporary", "prefect.db"
SECONDS_TO_STOP = 5
# It takes 9 to 16 s to answer on two cores, more on a busy machine.
SECONDS_TO_START = 120
# The numbers of a process's standard streams end here.
FIRST_FREE_DESCRIPTOR = 3
# All that the server is configured by: it takes nothing that was meant for the user's own Prefect server.
ENVIRONMENT = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    # It writes task runs once a second instead of one by one: with SQLite, concurrent writers were rejected and only
    # retried two seconds later.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}
LAST_OF_TRACEBACK = re.compile(r"([a-z_][\w.]*\.)?[A-Z]\w*(Error|Exception): .")
_started: list[TemporaryServer] = []


def temporary_server(home: Path) -> TemporaryServer:
    """This process's server: started by the first call, and restarted if it has died.

    Args:
        home: ``EMBAUDIT_HOME``, which keeps its database.
    """
    if not _started or not _started[-1].is_running:
        _started.append(TemporaryServer(home))
    return _started[-1]


def started_server() -> TemporaryServer | None:
    """This process's server, running or not."""
    return _started[-1] if _started else None


def await_server() -> None:
    """Wait until this process's server answers, if that is the one in use: what keeps it from starting is known here.

    Raises:
        ServerError: if it ends or does not answer, with the reason that it gave.
    """
    from prefect.settings import PREFECT_API_URL

    server = started_server()
    # An earlier call from Python may have had none named.
    if server is not None and server.api_url == PREFECT_API_URL.value():
        server.wait()


class TemporaryServer:
    """Prefect's server in a child process, started while the command still imports what it needs.

    Prefect would start one when it first needs it, but it imports the whole server into the command for that (4 s and
    78 MB), and after a kill -9 of the command the server (230 MB) would keep running forever.

    The command opens the socket and hands it over: clients that connect before the server is up wait in the socket's
    queue, no other program can take the port, and if the server dies, so does its socket.

    It has a session of its own: a terminal sends Ctrl-C to everything in the command's, and the command still has to
    tell the server how its runs ended.
    """

    def __init__(self, home: Path) -> None:
        # One folder per version of Prefect, which refuses a database that a newer one has migrated.
        self.folder = home.expanduser().absolute() / "prefect" / f"server-{version('prefect')}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._output = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (read when the server has failed)
        except OSError as error:
            raise StorageError(
                f"The Prefect server of this command cannot keep its records in {self.folder}: {one_line(error)}",
                kept="Nothing was computed.",
                next_step="Set EMBAUDIT_HOME to a folder that can be written.",
            ) from error
        own = {
            **{name: value for name, value in os.environ.items() if not name.upper().startswith("PREFECT_")},
            **ENVIRONMENT,
            "PREFECT_HOME": str(self.folder),
            # In its current folder: an address has no place for every character that a path may have.
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{DATABASE}",
        }
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self._port = listening.getsockname()[1]
            self.api_url = f"http://127.0.0.1:{self._port}/api"
            # In a process whose standard input is closed the socket may have its number, which the pipe takes.
            inherited = fcntl.fcntl(listening.fileno(), fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR)
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", MODULE, str(inherited), str(os.getpid())],
                    env=own,
                    stdin=subprocess.PIPE,
                    stdout=self._output,
                    stderr=self._output,
                    pass_fds=(inherited,),
                    start_new_session=True,
                )
            finally:
                os.close(inherited)
        self._has_answered = False
        atexit.register(self.stop)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Wait for its first answer: the request waits in the socket's queue, so nothing polls."""
        if self._has_answered:
            return
        # Not httpx, which would read the proxies in the environment.
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS_TO_START)
        try:
            connection.request("GET", "/api/health")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            raise self.failure(error) from error
        finally:
            connection.close()
        self._has_answered = True

    def failure(self, error: BaseException) -> ServerError:
        """What happened to it, with its own words if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its socket closes a moment before it has ended.
            self._process.wait(SECONDS_TO_STOP)
        if self.is_running:
            happened = f"The Prefect server of this command does not answer ({type(error).__name__}: {error})."
        else:
            verb = "has ended" if self._has_answered else "could not start"
            happened = f"The Prefect server of this command {verb}: {self.last_words()}"
        return ServerError(
            happened,
            kept="Every finished step is staged, and the published tables are consistent.",
            next_step="Run the same command again: it continues where it stopped. If the server fails again, delete "
            f"its records, {self.folder}, or start one that lasts: prefect server start.",
        )

    def last_words(self) -> str:
        """The error that it printed last; a signal or exit code if it printed none."""
        self._output.seek(0)
        lines = [line for line in self._output.read().decode(errors="replace").splitlines() if line.strip()]
        # Libraries add lines to theirs, and uvicorn one that only says that there was an error.
        told = [line for line in lines if LAST_OF_TRACEBACK.match(line)] or lines
        return one_line(Exception(told[-1])) if told else f"its exit code is {self._process.returncode}."

    def stop(self) -> None:
        """Let it write what it received last."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_STOP)
        self._process.kill()
        self._process.wait()


TRANSPORTS = ("httpx", "httpcore")
# Prefect's client raises this if its very first call fails.
UNREACHED = "Failed to reach API"
# What the system refuses, and no program can help.
REFUSED = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE),
    *(errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.ELOOP),
)


def expected_failure(error: BaseException) -> EmbauditError | None:
    """The error to print for one that is not an ``EmbauditError``: its cause, or what was lost; None for a bug."""
    causes = causes_of(error)
    own = next((cause for cause in causes if isinstance(cause, EmbauditError)), None)
    if own is not None:
        return own
    if (failure := machine_failure(error)) is not None:
        return failure
    for cause in causes:
        is_of_transport = type(cause).__module__.split(".")[0] in TRANSPORTS
        if is_of_transport or UNREACHED in str(cause) or type(cause).__name__ == "PrefectHTTPStatusError":
            return _lost(cause)
    return _refused(error) if isinstance(error, OSError) else None


def _lost(cause: BaseException) -> ServerError:
    """A temporary server says itself why it ended."""
    from prefect.settings import PREFECT_API_URL

    named, own = PREFECT_API_URL.value(), started_server()
    if not named and own is not None:
        return own.failure(cause)
    return ServerError(
        f"The Prefect server {named or 'of this command'} is no longer responding ({type(cause).__name__}: {cause}).",
        kept="Every finished step is staged, and the published tables are consistent.",
        next_step="Start it, or unset PREFECT_API_URL, and run the same command again: it continues where it stopped.",
    )


def _refused(error: OSError) -> StorageError | None:
    """A file or folder that the system refuses; also a current folder that was deleted."""
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        return StorageError("The current folder no longer exists.", next_step="Change to another one.")
    if error.errno not in REFUSED:
        return None
    return StorageError(
        f"The system refuses access: {one_line(error)}",
        kept="Every finished step is staged, and the published tables are consistent.",
        next_step="Free some space or fix the permissions, or point EMBAUDIT_HOME to another folder.",
    )


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def serve() -> None:
    """Serve until the command stops this process or has ended."""
    threading.Thread(target=_end_with_command, name="end with command", daemon=True).start()
    # Prefect reads .env and prefect.toml in its current folder; those of the command's are for the user's own server.
    folder = Path(os.environ["PREFECT_HOME"])
    os.chdir(folder)
    # Imported after starting the thread: it takes seconds, and the command may be killed meanwhile.
    import uvicorn
    from filelock import FileLock

    is_migrated = folder / "migrated"
    lock = FileLock(folder / "starting.lock")

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            # One at a time: a new database is migrated, and two servers would both create its tables.
            with lock:
                if not is_migrated.exists():
                    # Absent or half-migrated: a command that is interrupted takes its server with it.
                    for file in folder.glob(f"{DATABASE}*"):
                        file.unlink()
                await super().startup(sockets)
                is_migrated.touch()

    # One worker, whatever WEB_CONCURRENCY says of the user's own servers.
    application = "prefect.server.api.server:create_app"
    config = uvicorn.Config(application, factory=True, log_level="error", lifespan="on", workers=1)
    Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])


def _end_with_command() -> None:
    while os.read(0, 1024):
        pass
    # A graceful shutdown may wait forever, and nobody is left to serve. SQLite survives this.
    os._exit(0)


if __name__ == "__main__":
    serve()
