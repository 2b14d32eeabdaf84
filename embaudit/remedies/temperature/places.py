"""Finds a model's parameter in its checkpoint's files, by name and always by content.

Files use the tensor names of the class that saved them (``bert.encoder…``), and older layouts store W_q, W_k and W_v in
one tensor that transformers splits. So a match must contain the parameter bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embaudit.checkpoint.tensors import StoredTensor
from embaudit.remedies.temperature.plan import Scaling
from embaudit.words.errors import CheckpointError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Place:
    """Rows of a stored tensor, from ``first`` on, that equal one parameter of the model."""

    stored: StoredTensor
    first: int
    scaling: Scaling

    def scale(self) -> None:
        """Apply the plan's division to the file."""
        own = self.stored.read(self.first, len(self.scaling.parameter))
        scaled = own.clone()
        self.scaling.write_rows(scaled, self.scaling.divided(own))
        self.stored.overwrite(self.first, scaled)


def find_places(scalings: Sequence[Scaling], tensors: Mapping[str, StoredTensor]) -> list[Place]:
    """The place of each parameter that a plan divides.

    Raises:
        CheckpointError: if a parameter is not in the files, or in several places.
    """
    found: dict[str, Place] = {}
    for scaling in scalings:
        stem, _, leaf = scaling.name.rpartition(".")
        weight = found.get(f"{stem}.weight")
        if leaf == "bias" and weight is not None:
            # Biases may be all zero in every layer, so take the one stored next to the weight.
            beside = tensors.get(weight.stored.name.removesuffix("weight") + "bias")
            places = [Place(beside, weight.first, scaling)] if beside and _holds(beside, weight.first, scaling) else []
        else:
            named = [stored for name, stored in tensors.items() if _is_same(name, scaling.name)]
            places = list(_of_content(scaling, named)) or list(_of_content(scaling, tensors.values()))
        if len(places) != 1:
            raise CheckpointError(
                f"{scaling.name} is in {len(places)} places in the weight files instead of one: embaudit cannot tell "
                "what to scale.",
                kept="Nothing was written.",
                next_step="Save it again with transformers (model.save_pretrained), and scale that.",
            )
        found[scaling.name] = places[0]
    return list(found.values())


def _is_same(stored: str, name: str) -> bool:
    return stored == name or stored.endswith("." + name) or name.endswith("." + stored)


def _of_content(scaling: Scaling, among: Iterable[StoredTensor]) -> Iterator[Place]:
    shape = tuple(scaling.parameter.shape)
    for stored in among:
        if stored.shape[1:] == shape[1:] and stored.shape and stored.shape[0] % shape[0] == 0:
            for first in range(0, stored.shape[0], shape[0]):
                if _holds(stored, first, scaling):
                    yield Place(stored, first, scaling)


def _holds(stored: StoredTensor, first: int, scaling: Scaling) -> bool:
    parameter = scaling.parameter.detach().cpu()
    if stored.shape[1:] != tuple(parameter.shape[1:]) or stored.shape[0] < first + len(parameter):
        return False
    # Compare one row first: it is cheap to read and rules out most others.
    return _equal(stored.read(first, 1), parameter[:1]) and _equal(stored.read(first, len(parameter)), parameter)


def _equal(stored: torch.Tensor, parameter: torch.Tensor) -> bool:
    import torch

    return torch.equal(stored.to(parameter.dtype), parameter)
