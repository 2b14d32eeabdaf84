"""TempScale: softmax(QKᵀ/(τ√d)) on an existing checkpoint, by scaling its weights (arXiv 2410.24200, §5).

``plan`` has the requested values, says whether a family allows them, and which rows to divide; ``apply`` writes a
scaled checkpoint. Here a checkpoint runs at another temperature temporarily: its weights are scaled, then restored bit
for bit.

A short run before and after scaling checks that the temperature took effect. The published code silently patches
nothing on several families. So this asserts that every declared layer runs, in
order; that the first scaled layer's queries are divided by τ; and, if all heads of all layers have a τ ≠ 1, that the
outputs change (a single head may be pruned and change nothing).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.anatomy import Anatomy, anatomy_of
from embaudit.checkpoint.tokenizer import position_limit
from embaudit.remedies.temperature.plan import Scaling, Support, Temperatures, plan_scalings, support_of
from embaudit.words.errors import MeasureError, UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


__all__ = ["Scaling", "Support", "Temperatures", "plan_scalings", "support_of", "temperature"]


TOKENS = 12
# Relative tolerance of the divided queries: rounding of weights and of products.
TOLERANCE = {"float32": 1e-4, "float64": 1e-6, "bfloat16": 5e-2, "float16": 1e-2}


@dataclass(frozen=True)
class Probe:
    """Results of running one short text.

    Attributes:
        queries: queries of the first scaled layer, (…, out), on the model's device.
        output: final token embeddings X, (1, n, d).
    """

    queries: torch.Tensor
    output: torch.Tensor


def run_probe(anatomy: Anatomy, first: int) -> Probe:
    """Run a few tokens spread over the vocabulary; ``first`` is the layer whose queries are kept."""
    import torch

    model, modules = anatomy.model, _query_modules(anatomy)
    ran: list[int] = []
    kept: list[torch.Tensor] = []

    def keep(module: Any, args: Any, output: torch.Tensor) -> None:
        if len(ran) == first:
            kept.append(output.detach().clone())
        ran.append(id(module))

    vocabulary = int(model.get_input_embeddings().weight.shape[0])
    n = min(TOKENS, position_limit(model) or TOKENS)
    ids = (torch.arange(1, n + 1, device=model.device) * vocabulary // (n + 2)).unsqueeze(0)
    handles = [module.register_forward_hook(keep) for module in {id(one): one for one in modules}.values()]
    try:
        with torch.inference_mode():
            output = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    finally:
        for handle in handles:
            handle.remove()
    if ran != [id(module) for module in modules]:
        raise _failed(anatomy, f"computed queries in {len(ran)} of {len(modules)} layers, or in another order.")
    return Probe(kept[0], output)


def require_effect(anatomy: Anatomy, scalings: Sequence[Scaling], before: Probe, after: Probe) -> None:
    """Compare probes before and after scaling.

    Raises:
        MeasureError: if queries were not divided by τ, or the outputs did not change or are not finite.
    """
    import torch

    if not (torch.isfinite(after.queries).all() and torch.isfinite(after.output).all()):
        raise MeasureError(
            f"With a temperature of {float(scalings[0].divisors.min()):g} {type(anatomy.model).__name__} gives NaN or "
            f"infinity in {anatomy.model.dtype}.",
            kept="The weights are unchanged.",
            next_step="Choose a larger τ, or --dtype float32.",
        )
    scaling = scalings[0]
    rows = scaling.rows.to(before.queries.device)
    was, now = before.queries[..., rows].double().cpu(), after.queries[..., rows].double().cpu()
    tolerance = TOLERANCE.get(str(anatomy.model.dtype).removeprefix("torch."), 1e-2)
    if not float((now * scaling.divisors - was).norm()) <= tolerance * float(was.norm()):
        raise _failed(anatomy, f"does not compute its queries from {scaling.name} alone: they are not divided by τ.")
    layers = {layer for one in scalings for layer in one.layers}
    is_whole = len(layers) == len(anatomy.layers) and all(bool((one.divisors != 1).all()) for one in scalings)
    if is_whole and torch.equal(before.output, after.output):
        raise _failed(anatomy, f"gives the same outputs as before: τ changed nothing in {anatomy.model.dtype}.")


def first_layer(scalings: Sequence[Scaling]) -> int:
    """The first layer that a plan scales."""
    return min(layer for scaling in scalings for layer in scaling.layers)


def _query_modules(anatomy: Anatomy) -> list[Any]:
    path = anatomy.family.query_norm or anatomy.family.query.path
    return [anatomy.part_of(layer, path) for layer in range(len(anatomy.layers))]


def _failed(anatomy: Anatomy, what: str) -> MeasureError:
    return MeasureError(
        f"{type(anatomy.model).__name__} ({anatomy.family.name}) {what}",
        kept="The weights are unchanged.",
        next_step="Unless τ rounds to 1, report this with the versions that `embaudit doctor` prints.",
    )


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
