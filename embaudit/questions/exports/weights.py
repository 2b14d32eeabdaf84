"""The tensors of an ONNX file beside the checkpoint's: of which revision is it?

Exporters keep the names of embeddings, norms and biases, and quantisation leaves norms and biases as they are. Of a
revision that was trained further nearly all of them differ, so that even a rounded file tells whose it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint.onnx_file import FLOATS, OnnxFile, Precision

if TYPE_CHECKING:
    import torch

# ‖Δ‖ / ‖W‖ that a shorter format leaves, with room for values near its smallest.
ROUNDED: dict[Precision, float] = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
# Values of a tensor that are compared: a table of words need not be read whole.
MOST = 1 << 20
# Fewer tensors say nothing of a whole network.
FEWEST = 2


@dataclass(frozen=True)
class WeightsBeside:
    """How many of a file's tensors have a counterpart of the same name and size, and how many of those differ.

    Gains that are all 1 and biases that are all 0 are not counted: every checkpoint may have them.

    Attributes:
        largest: ‖Δ‖ / ‖W‖ of the one that differs most.
    """

    compared: int
    differing: int
    largest: float

    @property
    def are_the_same(self) -> bool:
        return self.compared >= FEWEST and not self.differing

    @property
    def are_others(self) -> bool:
        """Whether most differ. Optimisers fold scales into some norms, and leave the rest."""
        return self.compared >= FEWEST and 2 * self.differing > self.compared


def weights_beside(file: OnnxFile, model: torch.nn.Module) -> WeightsBeside:
    """Compare the floating-point tensors of a file with a model's, by name."""
    own = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if tensor.dim() and tensor.is_floating_point() and bool((tensor != tensor.flatten()[0]).any())
    }
    apart = []
    for stored in file.weights:
        name = _name_in(own, stored.name)
        if name is None or not stored.has_values:
            continue
        tensor, shape = own[name], tuple(own[name].shape)
        # Matrices are stored as they multiply: the other way round.
        if stored.shape not in (shape, shape[::-1]):
            continue
        ways = [tensor.flatten()] if stored.shape == shape else []
        ways += [tensor.T.flatten()] if stored.shape == shape[::-1] and tensor.dim() == 2 else []
        values = file.values(stored, MOST)
        distance = min(_relative(values, way[:MOST].float().cpu().numpy()) for way in ways)
        apart.append((distance, distance > ROUNDED[FLOATS[stored.kind][0]]))
    return WeightsBeside(len(apart), sum(differs for _, differs in apart), max((one for one, _ in apart), default=0.0))


def _name_in(own: dict[str, torch.Tensor], name: str) -> str | None:
    """A model's tensor that a file's is, whatever the exporter put in front of its name."""
    rest = name
    while rest not in own:
        _, dot, rest = rest.partition(".")
        if not dot:
            return None
    return rest


def _relative(values: np.ndarray, own: np.ndarray) -> float:
    if values.shape != own.shape:
        return float("inf")
    difference = float(np.linalg.norm(values.astype(np.float64) - own))
    size = float(np.linalg.norm(own.astype(np.float64)))
    return difference / size if size else (0.0 if not difference else float("inf"))
