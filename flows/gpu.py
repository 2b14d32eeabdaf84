"""Limits how many measures use a GPU at a time, across a server's workers, by a Prefect concurrency limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from embaudit.system.settings import Settings
from embaudit.words.errors import ServerError

GPU_LIMIT = "embaudit-gpu"


@contextmanager
def gpu_slot(device: str) -> Iterator[None]:
    """Hold one of the server's GPU slots while a measure computes.

    Only if ``EMBAUDIT_GPU_LIMIT`` names a limit (set in prefect.yaml; not needed for a command on your own machine) and
    the device is a GPU. A limit that is named must exist: Prefect's default is to go on without it, and two audits
    could then share a GPU although someone took care to prevent it.

    Raises:
        ServerError: if the server has no limit of that name.
    """
    limit = Settings().gpu_limit
    if not limit or not device.startswith("cuda"):
        yield
        return
    from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
    from prefect.concurrency.sync import concurrency

    slot = concurrency(limit, strict=True)
    try:
        slot.__enter__()
    except ConcurrencySlotAcquisitionError as error:
        raise ServerError(
            f"The Prefect server has no concurrency limit {limit!r}, which EMBAUDIT_GPU_LIMIT asks for.",
            kept="All computed results are staged; nothing is lost.",
            next_step="Make it (embaudit setup-server) or unset EMBAUDIT_GPU_LIMIT, and run the same command again.",
        ) from error
    with ExitStack() as held:
        held.push(slot)
        yield
