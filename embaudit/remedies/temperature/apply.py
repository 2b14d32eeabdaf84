"""Writes a checkpoint at another temperature: the same folder, with scaled rows in its weight files.

It is built in a temporary folder, loaded, compared with the source at that temperature, and only then renamed.

A model's parameter is found in the files by name and always by content.
Files use the tensor names of the class that saved them (``bert.encoder…``), and older layouts store W_q, W_k and W_v in
one tensor that transformers splits. So a match must contain the parameter bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, load_checkpoint
from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.checkpoint.rewrite import SAMPLE, add_section, copied, open_source
from embaudit.checkpoint.tensors import StoredTensor
from embaudit.remedies.temperature import temperature
from embaudit.remedies.temperature.plan import Scaling, Support, Temperatures, plan_scalings, support_of
from embaudit.words.errors import CheckpointError, MeasureError, UsageError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Note:
    """What users of the scaled checkpoint need to know.

    Attributes:
        source: the checkpoint as the user named it.
        weights_sha256: hash of the source's weights.
        tau: the temperatures in readable form.
        divided: names of the scaled tensors in the files.
        is_bias_divided: whether the position bias was divided, too.
        offset: what the model adds to a stored gain before using it (Gemma: 1).
    """

    source: str
    weights_sha256: str
    tau: str
    divided: tuple[str, ...]
    is_bias_divided: bool
    offset: float
    version: str


def section(note: Note) -> str:
    """The note as a section of a model card."""
    gain = f" (for gains w, w + {note.offset:g} was divided)" if note.offset else ""
    undo = f"w becomes (w + {note.offset:g})·τ − {note.offset:g}" if note.offset else "multiply the same values by τ"
    bias = " The position bias was divided, too, as in the paper's code." if note.is_bias_divided else ""
    names = "\n".join(f"- `{name}`" for name in note.divided)
    return f"""## Attention temperature

The weights of `{note.source}` (sha256 `{note.weights_sha256}`)
with one change, made by embaudit {note.version}: attention is softmax(QKᵀ/(τ√d)) with **τ = {note.tau}**.
Nothing was trained.{bias}

In the tensors below, the values that produce queries were divided by τ{gain}. Everything else is identical to the
source, byte for byte; the figures above are those of the source. To undo the change: {undo}.

<details><summary>{len(note.divided)} tensors</summary>

{names}

</details>
"""


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


# Tolerance between vectors of the written checkpoint and the source's at that temperature.
VECTOR_TOLERANCE = {"float32": 1e-5, "bfloat16": 5e-2, "float16": 1e-2}


@dataclass(frozen=True)
class ApplyResult:
    """What was written.

    Attributes:
        divided: names of the scaled tensors in the files.
        others: number of unchanged tensors.
        difference: largest difference between vectors of ``texts`` sample texts and the source's under τ.
    """

    folder: Path
    support: Support
    layers: int
    divided: tuple[str, ...]
    others: int
    texts: int
    difference: float
    dtype: str


def apply_temperature(
    reference: str,
    tau: Temperatures,
    folder: Path,
    *,
    divide_position_bias: bool = False,
    device: str = "auto",
    allow_pickle: bool = False,
) -> ApplyResult:
    """Write a checkpoint whose attention is softmax(QKᵀ/(τ√d)), ready for sentence-transformers.

    Args:
        reference: the source, as for ``load_checkpoint``.
        tau: the temperatures.
        folder: destination; must be empty or missing.
        divide_position_bias: as in ``temperature``.
        device: device for the check.
        allow_pickle: read pickled weights; they are written as safetensors.

    Raises:
        UsageError: if the folder is not empty, or the temperatures do not match the checkpoint.
        CheckpointError: if the source cannot be read, or its files do not contain its weights.
        NotMeasurable: if the family does not support a temperature.
        MeasureError: if the written checkpoint does not behave like the source under τ.
        StorageError: if it cannot be written.
    """
    folder = folder.expanduser().absolute()
    opened = open_source(reference, folder, device=device, allow_pickle=allow_pickle)
    source, resolved = opened.checkpoint, opened.resolved
    anatomy = anatomy_of(source.model)
    scalings = plan_scalings(anatomy, tau, divide_position_bias=divide_position_bias)
    if not scalings:
        raise UsageError("A temperature of 1 would change nothing.", next_step="Copy the folder, or give another τ.")
    with copied(opened, folder) as (building, tensors):
        places = find_places(scalings, tensors)
        for place in places:
            place.scale()
        divided = tuple(place.stored.name for place in places)
        note = Note(
            source=str(resolved.ref),
            weights_sha256=source.identity.weights_sha256,
            tau=str(tau),
            divided=divided,
            is_bias_divided=divide_position_bias and support_of(anatomy).kind == "option",
            offset=anatomy.family.query_norm_offset,
            version=version("embaudit"),
        )
        add_section(building / "README.md", section(note), resolved)
        written = load_checkpoint(str(building), opened.options)
        difference = _compare(source, written, tau, divide_position_bias)
    return ApplyResult(
        folder=folder,
        support=support_of(anatomy),
        layers=len(anatomy.layers),
        divided=divided,
        others=len(tensors) - len(set(divided)),
        texts=len(SAMPLE),
        difference=difference,
        dtype=source.dtype,
    )


def _compare(source: Checkpoint, written: Checkpoint, tau: Temperatures, divide_position_bias: bool) -> float:
    """The largest difference between sample vectors of the written checkpoint and of the source under τ.

    Raises:
        MeasureError: if weights or vectors differ by more than rounding.
    """
    import torch

    resolution = torch.finfo(source.model.dtype).eps
    with temperature(source, tau, divide_position_bias=divide_position_bias):
        expected = dict(source.model.named_parameters())
        for name, parameter in written.model.named_parameters():
            if name.startswith(UNUSED_WEIGHTS):  # random if the file has none
                continue
            gap = (parameter.detach().double() - expected[name].detach().double()).norm()
            if not float(gap) <= 2 * resolution * float(expected[name].detach().double().norm()):
                raise _mismatch(source, f"{name} differs")
        vectors = Encoder(source).encode_texts(SAMPLE)
    difference = float(np.abs(Encoder(written).encode_texts(SAMPLE) - vectors).max())
    scale = max(1.0, float(np.abs(vectors).max()))
    if difference > VECTOR_TOLERANCE[source.dtype] * scale:
        raise _mismatch(source, f"vectors differ by {difference:.1e}")
    return difference


def _mismatch(source: Checkpoint, what: str) -> MeasureError:
    return MeasureError(
        f"The written checkpoint does not behave like {source.resolved.ref} at that temperature: {what}.",
        kept="It was removed again; the source is untouched.",
        next_step="Report this with the versions that `embaudit doctor` prints.",
    )
