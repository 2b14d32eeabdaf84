"""Prefect's temporary server in a process that ends with the command that started it, however that ends.

``python -m embaudit.server.process SOCKET COMMAND``: the number of the inherited listening socket, and the command's
process id, so that it shows in ``ps``. Standard input is a pipe whose other end is held only by the command: the system
closes it when the command is gone, even if it was killed. (Linux's parent-death signal would come when the thread that
started the server ends, and macOS has none.)
"""

from __future__ import annotations

import os
import socket
import sys
import threading

MODULE = "embaudit.server.process"


def main() -> None:
    """Serve until the command stops this process or has ended."""
    threading.Thread(target=_end_with_command, name="end with command", daemon=True).start()
    # Imported after starting the thread: it takes seconds, and the command may be killed meanwhile.
    import uvicorn

    config = uvicorn.Config("prefect.server.api.server:create_app", factory=True, log_level="error", lifespan="on")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])


def _end_with_command() -> None:
    while os.read(0, 1024):
        pass
    # A graceful shutdown may wait forever, and nobody is left to serve. SQLite survives this.
    os._exit(0)


if __name__ == "__main__":
    main()
