"""Watches a forward pass layer by layer: each layer's H, A, Z, Y and X are handed over as it ends, and let go.

So no more than one layer's attention weights are held at a time, however many layers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from embaudit.anatomy.model import Anatomy
from embaudit.checkpoint.eager import eager_attention, no_attention
from embaudit.errors import NotMeasurable

if TYPE_CHECKING:
    import torch

# How far A·V·W_o from the declared weights may be from what the model computed, relative to its size.
TOLERANCE = {"float32": 1e-4, "float64": 1e-6, "bfloat16": 5e-2, "float16": 1e-2}
PARTS_OF_A_LAYER = {"H", "read", "attention", "projected", "Z"}


@dataclass(frozen=True)
class LayerState:
    """What one layer did with a batch of B texts of n tokens; all on the model's device, in its dtype.

    Attributes:
        H: (B, n, d), the layer's input.
        read: (B, n, d), what attention reads: H, or its norm.
        attention: A, (B, heads, n, n), rows are queries.
        projected: (B, n, d), Σ_h A_h V_h W_o^hᵀ + b_o.
        Z: (B, n, d), what enters the residual: ``projected``, or its norm.
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
    """A function ``run(ids, on_layer)`` that runs one batch and hands over every layer's state as it ends.

    ``ids`` are the token ids (B, n) of texts of one length, so that nothing is padded, on the model's device. It
    returns the states that pooling averages, (B, n, d): the last layer's X, or its norm where the model ends with one.
    Within the block the model is under its eager kernel (``checkpoint.eager``).

    Raises:
        NotMeasurable: if the model does not give its attention weights, or runs other layers than declared.
    """
    import torch

    watcher = _Watcher(anatomy)
    asked: dict[str, Any] = {"output_attentions": True} if anatomy.family.needs_output_attentions else {}

    def run(ids: torch.Tensor, on_layer: OnLayer) -> torch.Tensor:
        watcher.start(on_layer)
        with torch.inference_mode():
            pooled: torch.Tensor = anatomy.model(
                input_ids=ids, attention_mask=torch.ones_like(ids), **asked
            ).last_hidden_state
        if watcher.done != len(anatomy.layers):
            raise _other_run(anatomy, f"ran {watcher.done} of {len(anatomy.layers)} layers")
        return pooled

    with ExitStack() as stack:
        stack.enter_context(eager_attention(anatomy.model))
        for handle in watcher.hooks():
            stack.callback(handle.remove)
        yield run


def require_fit(anatomy: Anatomy, state: LayerState) -> None:
    """Compare A·V·W_o from the declared weights with what the model computed.

    Raises:
        NotMeasurable: if they differ by more than rounding: this model's layers are not what the family says.
    """
    difference = state.projected - anatomy.attend(state.layer, state.attention, state.read)
    error = float(difference.float().norm() / state.projected.float().norm().clamp(min=1e-30))
    if not error <= TOLERANCE[str(state.projected.dtype).removeprefix("torch.")]:
        raise NotMeasurable(
            f"The layers of {type(anatomy.model).__name__} are not built as declared for {anatomy.family.name}: in "
            f"layer {state.layer} A·V·W_o differs from the attention branch by {error:.1e} of its size.",
            kept="Measures that need no layers are unaffected.",
            next_step="Report this with the versions that `embaudit doctor` prints.",
        )


class _Watcher:
    """Hooks on every distinct layer; layers run one after another, so that one set of parts is enough."""

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
            self.parts[name] = args[0] if args else kwargs["hidden_states"]

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
        # The model gets an empty tensor in their place, so that nothing else holds on to them.
        return (*output[:place], weights.new_empty(0), *output[place + 1 :])

    def _finish(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        parts, self.parts = self.parts, {}
        if self.done >= len(self.anatomy.layers) or module is not self.anatomy.layers[self.done]:
            raise _other_run(self.anatomy, f"did not run its layers in the declared order, from layer {self.done} on")
        if missing := sorted(PARTS_OF_A_LAYER - parts.keys()):
            raise _other_run(self.anatomy, f"passed over the modules that give {', '.join(missing)}")
        X = output[0] if isinstance(output, tuple) else output
        self.done += 1
        self.on_layer(LayerState(layer=self.done - 1, X=X, **parts))


def _other_run(anatomy: Anatomy, what: str) -> NotMeasurable:
    return NotMeasurable(
        f"{type(anatomy.model).__name__} is declared as a {anatomy.family.name} model and {what}.",
        kept="Measures that need no layers are unaffected.",
        next_step="Report this with the versions that `embaudit doctor` prints.",
    )
