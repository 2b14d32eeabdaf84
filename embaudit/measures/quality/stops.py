"""The states between a model's layers, each reduced as soon as it is computed: never those of all layers at once.

transformers returns them together (``output_hidden_states``), which for a batch of 2 048 tokens of a decoder of 24
layers and 896 dimensions is .18 GB, and grows with depth and width. The state after a layer is what the next one is
given; where each is found among what modules are given, on two texts and bit by bit, it is taken from there. Where one
is not (no layers of its own, states that are cut or scaled in between), they are asked for together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import torch

Reduced = TypeVar("Reduced")
# Texts and their tokens by which a model's layers are found: more than one, so that padding is looked at, too.
TEXTS, TOKENS = 2, 16


@dataclass(frozen=True)
class LayerInputs:
    """Where the states before each layer are met.

    Attributes:
        modules: those that are given one.
        calls: which calls of these modules, counted together, are given the state after the embeddings, the first
            layer, …, the last but one.
        whole: how many calls there are in a pass.
    """

    modules: tuple[torch.nn.Module, ...]
    calls: tuple[int, ...]
    whole: int


_KNOWN: WeakKeyDictionary[torch.nn.Module, LayerInputs | None] = WeakKeyDictionary()


def last_and_stops(
    model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], reduce: Callable[[torch.Tensor], Reduced]
) -> tuple[torch.Tensor, list[Reduced]]:
    """The last state (B, n, d), and each state reduced: after the embeddings, the first layer, …, the last.

    The last one is what the model returns, after a final norm. Empty if a model returns no states.
    """
    where = _found(model, inputs)
    if where is not None:
        with _reducing(where, reduce) as found:
            last = model(**inputs).last_hidden_state
        if len(found) == len(where.calls):
            return last, [*found, reduce(last)]
    given = model(**inputs, output_hidden_states=True)
    states = getattr(given, "hidden_states", None) or ()
    last = given.last_hidden_state
    return last, [*(reduce(state) for state in states[:-1]), reduce(last)] if states else []


def _found(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> LayerInputs | None:
    """Looked for once in a model's life; None if its states are not what modules are given."""
    if model not in _KNOWN:
        rows = {name: tensor[-TEXTS:, :TOKENS] for name, tensor in inputs.items() if tensor.dim() > 1}
        is_plain = len(rows) == len(inputs) and all(tensor.dim() == 2 for tensor in rows.values())
        _KNOWN[model] = _look(model, rows) if is_plain else None
    return _KNOWN[model]


def _look(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> LayerInputs | None:
    import torch

    layers = [
        layer for stack in model.modules() if isinstance(stack, torch.nn.ModuleList) for layer in stack.children()
    ]
    met: list[tuple[torch.nn.Module, torch.Tensor, torch.Tensor]] = []

    def note(layer: torch.nn.Module, state: torch.Tensor) -> None:
        # A copy beside it: a layer may write into what it is given.
        met.append((layer, state, state.clone()))

    with _told(layers, note):
        given = model(**inputs, output_hidden_states=True)
    states: Sequence[torch.Tensor] = getattr(given, "hidden_states", None) or ()
    places: list[int] = []
    for state in states[:-1]:
        start = places[-1] + 1 if places else 0
        place = next((at for at in range(start, len(met)) if met[at][1] is state), None)
        if place is None or not torch.equal(met[place][2], state):
            return None
        places.append(place)
    if not places or states[-1].shape != given.last_hidden_state.shape:
        return None
    modules = tuple(dict.fromkeys(met[place][0] for place in places))
    calls = [place for place, (layer, *_) in enumerate(met) if layer in modules]
    return LayerInputs(modules, tuple(calls.index(place) for place in places), len(calls))


@contextmanager
def _reducing(where: LayerInputs, reduce: Callable[[torch.Tensor], Reduced]) -> Iterator[list[Reduced]]:
    """What is found of the states while a model runs; nothing if it ran in another way than it was looked at."""
    found: list[Reduced] = []
    count = 0
    wanted = frozenset(where.calls)

    def note(_: torch.nn.Module, state: torch.Tensor) -> None:
        nonlocal count
        if count in wanted:
            found.append(reduce(state))
        count += 1

    with _told(where.modules, note):
        yield found
    if count != where.whole:
        found.clear()


@contextmanager
def _told(layers: Sequence[torch.nn.Module], note: Callable[[torch.nn.Module, torch.Tensor], None]) -> Iterator[None]:
    """Call ``note`` with each of these modules and what it is given first, whenever it is called."""
    import torch

    def before(layer: torch.nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        state = args[0] if args else named.get("hidden_states")
        if isinstance(state, torch.Tensor):
            note(layer, state)

    with ExitStack() as hooks:
        for layer in dict.fromkeys(layers):
            hooks.callback(layer.register_forward_pre_hook(before, with_kwargs=True).remove)
        yield
