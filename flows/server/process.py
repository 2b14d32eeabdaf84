"""Prefect's temporary server in a process that ends with the command that started it, however that ends.

``python -m embaudit_flows.server.process SOCKET COMMAND``: the number of the inherited listening socket, and
the command's process id, so that it shows in ``ps``. Standard input is a pipe whose other end is held only by the
command: the system closes it when the command is gone, even if it was killed. (Linux's parent-death signal would come
when the thread that started the server ends, and macOS has none.)
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

MODULE = "embaudit_flows.server.process"
DATABASE = "prefect.db"


def main() -> None:
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
    main()
