"""Watches a forward pass layer by layer: hands over each layer's H, A, Z, Y and X when it ends, then releases them.

So only one layer's attention weights are in memory at a time.

Temporarily switches to the eager attention kernel, the only one that returns attention weights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

from embaudit.checkpoint.anatomy.family import Anatomy
from embaudit.checkpoint.model import quiet_transformers
from embaudit.words.errors import NotMeasurable, one_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The kernel is a setting of the shared model: a second thread would restore it while the first is still using it.
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def eager_attention(model: PreTrainedModel) -> Iterator[None]:
    """Run a model with the eager kernel and restore the previous one afterwards.

    A model whose kernel is part of its class only warns and stays as it is (most encoders of transformers 4, and custom
    code): those of transformers leave their kernel for a call with ``output_attentions``. Whoever uses this looks at
    what comes back.

    Does not nest: a second use, even for another model, waits for the first to end.

    Raises:
        NotMeasurable: if the model refuses to switch kernels, or computes another function with the eager one.
    """
    with _ONE_AT_A_TIME:
        former = model.config._attn_implementation
        if former == "sdpa" and model.config.get_text_config().model_type == "gemma2":
            raise no_attention(
                model, "transformers 4 runs it without the soft-capping of its logits, which the eager kernel applies."
            )
        try:
            _switch_to_eager(model)
            yield
        finally:
            if model.config._attn_implementation != former:
                model.set_attn_implementation(former)
                # ModernBERT of transformers 4 switches its own config in such a call, and cannot be told to go back.
                model.config._attn_implementation = former


def no_attention(model: PreTrainedModel, reason: str) -> NotMeasurable:
    """The error for a model that does not return attention weights."""
    return NotMeasurable(
        f"{type(model).__name__} cannot return its attention weights: {reason}",
        kept="The other measures are unaffected.",
        next_step="Leave the attention measure out for this checkpoint.",
    )


def _switch_to_eager(model: PreTrainedModel) -> None:
    try:
        with quiet_transformers():
            model.set_attn_implementation("eager")
    except Exception as error:  # custom model code may raise anything
        raise no_attention(model, f"it cannot switch to the eager kernel: {one_line(error)}") from error


# Relative tolerance between A·V·W_o from the declared weights and the model's own result.
TOLERANCE = {"float32": 1e-4, "float64": 1e-6, "bfloat16": 5e-2, "float16": 1e-2}
PARTS_OF_A_LAYER = {"H", "read", "attention", "projected", "Z"}


@dataclass(frozen=True)
class LayerState:
    """One layer's tensors for a batch of B texts of n tokens, on the model's device and in its dtype.

    Attributes:
        H: (B, n, d), the layer's input.
        read: (B, n, d), the input of attention: H, or its norm.
        attention: A, (B, heads, n, n), rows are queries.
        projected: (B, n, d), Σ_h A_h V_h W_o^hᵀ + b_o.
        Z: (B, n, d), the branch added to the residual: ``projected``, or its norm.
        X: (B, n, d), the layer's output.
    """

    layer: int
    H: torch.Tensor
    read: torch.Tensor
    attention: torch.Tensor
    projected: torch.Tensor
    Z: torch.Tensor
    X: torch.Tensor

    @property
    def Y(self) -> torch.Tensor:  # noqa: N802 (the paper's name)
        """(B, n, d): Z + H."""
        return self.Z + self.H


OnLayer = Callable[[LayerState], None]
Run: TypeAlias = Callable[["torch.Tensor", OnLayer], "torch.Tensor"]


@contextmanager
def watching(anatomy: Anatomy) -> Iterator[Run]:
    """Yields ``run(ids, on_layer)``, which runs one batch and passes every layer's state to ``on_layer`` as it ends.

    ``ids`` are token ids (B, n) of texts of equal length, so without padding, on the model's device. ``run`` returns
    the states that are pooled, (B, n, d): the last layer's X, or its norm if the model ends with one. Within the block
    the model uses its eager kernel (``checkpoint.eager``).

    Raises:
        NotMeasurable: if the model does not return its attention weights, or runs different layers than declared.
    """
    import torch

    watcher = _Watcher(anatomy)
    asked = what_to_ask(anatomy)

    def run(ids: torch.Tensor, on_layer: OnLayer) -> torch.Tensor:
        watcher.start(on_layer)
        with torch.inference_mode():
            pooled: torch.Tensor = anatomy.model(
                input_ids=ids, attention_mask=torch.ones_like(ids), **asked
            ).last_hidden_state
        if watcher.done != len(anatomy.layers):
            raise _unexpected_run(anatomy, f"ran {watcher.done} of {len(anatomy.layers)} layers")
        return pooled

    with ExitStack() as stack:
        stack.enter_context(eager_attention(anatomy.model))
        for handle in watcher.hooks():
            stack.callback(handle.remove)
        yield run


def what_to_ask(anatomy: Anatomy) -> dict[str, bool]:
    """Arguments of the model's call: some layers return attention weights on request only, and take it as an argument.

    MPNet's do, and most of transformers 4. In the others, attention returns them whenever it runs the eager kernel.
    """
    taken = signature(anatomy.layers[0].forward).parameters
    return {"output_attentions": True} if "output_attentions" in taken else {}


def require_fit(anatomy: Anatomy, state: LayerState) -> None:
    """Compare A·V·W_o from the declared weights with the model's own result.

    Raises:
        NotMeasurable: if they differ by more than rounding: the model's layers are not as the family declares.
    """
    difference = state.projected - anatomy.attend(state.layer, state.attention, state.read)
    error = float(difference.float().norm() / state.projected.float().norm().clamp(min=1e-30))
    if not error <= TOLERANCE[str(state.projected.dtype).removeprefix("torch.")]:
        raise NotMeasurable(
            f"The layers of {type(anatomy.model).__name__} are not built as declared for {anatomy.family.name}: in "
            f"layer {state.layer} A·V·W_o differs from the attention branch by {error:.1e} of its norm.",
            kept="Measures that do not need layers are unaffected.",
            next_step="Report this with the versions that `embaudit doctor` prints.",
        )


class _Watcher:
    """Hooks on every distinct layer; layers run one after another, so one set of parts is enough."""

    def __init__(self, anatomy: Anatomy) -> None:
        self.anatomy = anatomy
        self.start(lambda state: None)

    def start(self, on_layer: OnLayer) -> None:
        self.on_layer, self.done = on_layer, 0
        self.parts: dict[str, torch.Tensor] = {}

    def hooks(self) -> list[Any]:
        family = self.anatomy.family
        handles = []
        for layer in {id(layer): layer for layer in self.anatomy.layers}.values():
            attention = layer.get_submodule(family.attention)
            handles += [
                layer.register_forward_pre_hook(self._keep_input("H"), with_kwargs=True),
                attention.register_forward_pre_hook(self._keep_input("read"), with_kwargs=True),
                attention.register_forward_hook(self._keep_weights),
                layer.get_submodule(family.output).register_forward_hook(self._keep_output("projected")),
                layer.get_submodule(family.branch or family.output).register_forward_hook(self._keep_output("Z")),
                layer.register_forward_hook(self._finish),
            ]
        return handles

    def _keep_input(self, name: str) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self.parts[name] = args[0] if args else kwargs[next(iter(signature(module.forward).parameters))]

        return hook

    def _keep_output(self, name: str) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Any, ...], output: Any) -> None:
            self.parts[name] = output

        return hook

    def _keep_weights(self, module: Any, args: tuple[Any, ...], output: tuple[Any, ...]) -> tuple[Any, ...]:
        place = self.anatomy.family.weights_at
        weights = output[place] if isinstance(output, tuple) and len(output) > place else None
        batch, n = self.parts["read"].shape[:2]
        if weights is None or tuple(weights.shape) != (batch, self.anatomy.heads, n, n):
            raise no_attention(self.anatomy.model, "its attention module does not return them.")
        self.parts["attention"] = weights
        # Hand the model an empty tensor instead, so that nothing else keeps them alive.
        return (*output[:place], weights.new_empty(0), *output[place + 1 :])

    def _finish(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        parts, self.parts = self.parts, {}
        if self.done >= len(self.anatomy.layers) or module is not self.anatomy.layers[self.done]:
            raise _unexpected_run(
                self.anatomy, f"did not run its layers in the declared order, from layer {self.done} on"
            )
        if missing := sorted(PARTS_OF_A_LAYER - parts.keys()):
            raise _unexpected_run(self.anatomy, f"skipped the modules that compute {', '.join(missing)}")
        # A layer may also return a position bias, or attention weights (emptied above) before or after its states.
        X = next(part for part in output if part.shape == parts["H"].shape) if isinstance(output, tuple) else output
        self.done += 1
        self.on_layer(LayerState(layer=self.done - 1, X=X, **parts))


def _unexpected_run(anatomy: Anatomy, what: str) -> NotMeasurable:
    return NotMeasurable(
        f"{type(anatomy.model).__name__} is declared as a {anatomy.family.name} model but {what}.",
        kept="Measures that do not need layers are unaffected.",
        next_step="Report this with the versions that `embaudit doctor` prints.",
    )
