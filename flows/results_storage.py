"""Where Prefect remembers finished tasks: on this machine, or beside staged files that other machines reach too."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any

from embaudit.warehouse.files import is_remote

FOLDER = "prefect-results"


@lru_cache
def results_beside(staging: str) -> Any:
    """The block to keep results in, if the staging is no folder of this machine; None keeps them in HOME/cache.

    A record says which file a key stands for, so a machine that sees the files but not the records would compute them
    again. The block holds an address and no credentials: fsspec finds those as it does for the files.
    """
    if not is_remote(staging):
        return None
    from prefect.filesystems import RemoteFileSystem

    block = RemoteFileSystem(basepath=f"{staging}/{FOLDER}")
    # Prefect takes a block that its server knows; one name for one address.
    block.save(f"embaudit-{sha256(staging.encode()).hexdigest()[:12]}", overwrite=True)
    return block
