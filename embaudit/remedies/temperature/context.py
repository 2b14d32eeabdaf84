"""Runs a checkpoint at another temperature temporarily: its weights are scaled, then restored bit for bit."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.remedies.temperature.plan import Scaling, plan_scalings
from embaudit.remedies.temperature.probe import first_layer, require_effect, run_probe
from embaudit.remedies.temperature.temperatures import Temperatures
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@contextmanager
def temperature(
    checkpoint: Checkpoint | PreTrainedModel,
    tau: Temperatures | float | Iterable[float] | Iterable[Iterable[float]],
    *,
    divide_position_bias: bool = False,
) -> Iterator[None]:
    """Run a checkpoint with softmax(QKᵀ/(τ√d)), under any attention kernel; its weights are restored afterwards.

    The weights are scaled in place: within the block, everything that runs this model in this process gets τ, and the
    checkpoint's hashes do not show it. A second thread waits until the first is done; within a thread, temperatures do
    not nest. Division is in float64 and rounded once to the weights' dtype, so half precision adds one rounding of
    W_q. With τ = 1 nothing is changed.

    Args:
        checkpoint: the checkpoint, or its model.
        tau: one number, one per layer, a table (layers, heads), or ``Temperatures.per_head``.
        divide_position_bias: for T5, UMT5 and MPNet: divide the position bias, too, as the published code does.

    Raises:
        NotMeasurable: if no family is declared for the architecture, or it does not support a temperature.
        UsageError: if τ is not positive, does not match the checkpoint, or a temperature is already set.
        MeasureError: if scaling the weights had no effect, or the result does not fit into their dtype.
    """
    model = checkpoint.model if isinstance(checkpoint, Checkpoint) else checkpoint
    temperatures = Temperatures.of(tau)
    anatomy = anatomy_of(model)
    if model.training:
        raise UsageError(f"{type(model).__name__} is in training mode.", next_step="Call its eval() first.")
    with _turn(model):
        scalings = plan_scalings(anatomy, temperatures, divide_position_bias=divide_position_bias)
        if not scalings:
            yield
            return
        first = first_layer(scalings)
        before = run_probe(anatomy, first)
        with ExitStack() as stack:
            for scaling in scalings:
                own = scaling.rows_of(scaling.parameter.detach())
                stack.callback(_write, scaling, own)
                _write(scaling, scaling.divided(scaling.parameter.detach()))
            require_effect(anatomy, scalings, before, run_probe(anatomy, first))
            del before
            yield


def _write(scaling: Scaling, rows: torch.Tensor) -> None:
    import torch

    with torch.no_grad():
        scaling.write_rows(scaling.parameter.detach(), rows)


class _Turn:
    """The thread that currently scales a model."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.thread: int | None = None


_TURNS: WeakKeyDictionary[PreTrainedModel, _Turn] = WeakKeyDictionary()
_FINDING = threading.Lock()


@contextmanager
def _turn(model: PreTrainedModel) -> Iterator[None]:
    with _FINDING:
        turn = _TURNS.setdefault(model, _Turn())
    if turn.thread == threading.get_ident():
        raise UsageError(
            f"A temperature is already set on this {type(model).__name__}, and temperatures do not nest.",
            kept="The first one stays in effect.",
            next_step="Leave the first block before entering the next; for two temperatures, use their product.",
        )
    with turn.lock:
        turn.thread = threading.get_ident()
        try:
            yield
        finally:
            turn.thread = None
