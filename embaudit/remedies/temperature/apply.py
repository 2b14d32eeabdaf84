"""Writes a checkpoint at another temperature: the same folder, with scaled rows in its weight files.

It is built in a temporary folder, loaded, compared with the source at that temperature, and only then renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, load_checkpoint
from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.checkpoint.rewrite import SAMPLE, add_section, copied, open_source
from embaudit.remedies.temperature.card import Note, section
from embaudit.remedies.temperature.context import temperature
from embaudit.remedies.temperature.places import find_places
from embaudit.remedies.temperature.plan import plan_scalings
from embaudit.remedies.temperature.support import Support, support_of
from embaudit.remedies.temperature.temperatures import Temperatures
from embaudit.words.errors import MeasureError, UsageError

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
