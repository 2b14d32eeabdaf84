"""Prefect's temporary server, in a process that ends with the command that started it, however that one ends.

``python -m embaudit.server.process SOCKET COMMAND``: the number of the listening socket that it inherits, and the
id of the command's process, for whoever looks at a list of processes. Standard input is a pipe whose other end the
command alone holds: the system closes it when the command is gone, killed with -9 or for its memory too. (Linux'
parent-death signal would come when the thread ends that started the server, and macOS has none.)
"""

from __future__ import annotations

import os
import socket
import sys
import threading

MODULE = "embaudit.server.process"


def main() -> None:
    """Serve until the command stops this process or is gone."""
    threading.Thread(target=_end_with_command, name="end with command", daemon=True).start()
    # Only now, since it takes seconds: the command may be killed meanwhile.
    import uvicorn

    config = uvicorn.Config("prefect.server.api.server:create_app", factory=True, log_level="error", lifespan="on")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])


def _end_with_command() -> None:
    while os.read(0, 1024):
        pass
    # Nobody is left to be told, and a server that shuts down politely may wait for ever. SQLite survives this.
    os._exit(0)


if __name__ == "__main__":
    main()
