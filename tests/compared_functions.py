"""A checkpoint beside a client or a server of it, as parity compares them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from role_clients import opened

from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.opened import CallOptions, open_function
from embaudit.measures.quality.material import Material
from embaudit.questions.parity.parity import ParityReport, compare_with


@contextmanager
def endpoint_of(served: Served, **asked: Any) -> Iterator[Any]:
    """An address as embaudit asks it, without a pause between attempts."""
    with (
        serving(served) as address,
        open_function(address, LoadOptions(device="cpu"), CallOptions(**asked)) as endpoint,
    ):
        endpoint.wait_at_most = 0  # type: ignore[attr-defined]
        yield endpoint


def compared(
    checkpoint: Checkpoint, other: object, material: Material | None = None, *, with_explanation: bool = True
) -> ParityReport:
    """What is said of a server, or of a client that is an object of a program.

    Where nothing explains it, the search for an explanation takes seconds: a test of other findings goes without.
    """
    known, material = CheckpointFunction(checkpoint), material or Material()
    if not isinstance(other, Served):
        return compare_with(known, opened(other), material, with_explanation=with_explanation)
    with endpoint_of(other) as endpoint:
        return compare_with(known, endpoint, material, with_explanation=with_explanation)
